"""The studies behind the figures of the documentation."""
