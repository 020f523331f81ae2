"""Policies evaluated, shown and filmed."""
