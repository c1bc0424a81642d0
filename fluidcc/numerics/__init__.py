"""Numerical methods on plain arrays: no computer algebra and no law is known here."""
