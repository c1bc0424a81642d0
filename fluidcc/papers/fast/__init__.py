"""FAST and Vegas under persistent congestion.

``claims.toml`` says what the paper claims; the function of a claim's name tests it.
"""
