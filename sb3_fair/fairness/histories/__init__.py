"""Histories of interactions: which of them count, and how much."""
