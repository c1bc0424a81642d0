"""Statements about laws and formulas: proved, checked or refuted.

Whoever writes a law states `claims`, and need know nothing of how these are looked at.
"""
