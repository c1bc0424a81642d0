"""Delay-based AIMD, with H-TCP.

``claims.toml`` says what the paper claims; the function of a claim's name tests it.
"""
