"""Independent solutions that the engine is compared with: a spectral method of steps, and
JiTCDDE.
"""
