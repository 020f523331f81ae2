"""Which claims does the documentation make, and which runs show them?"""
