"""The network solver: steps, modes, breaking points and samples on flat arrays, compiled with
numba.
"""
