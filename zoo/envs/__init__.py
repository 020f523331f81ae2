"""The scenarios, one World each."""
