"""Binomial congestion control: AIMD, IIAD, SQRT and ISCC."""
