"""Notions updated at every step, for n environments at once."""
