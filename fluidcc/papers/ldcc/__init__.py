"""LDCC, with NADA, GCC, TCP and UDP beside it.

``claims.toml`` says what the paper claims; the function of a claim's name tests it.
"""
