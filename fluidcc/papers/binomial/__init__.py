"""Binomial congestion control: AIMD, IIAD, SQRT and ISCC.

``claims.toml`` says what the paper claims; the function of a claim's name tests it.
"""
