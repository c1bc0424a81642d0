"""Equilibria: of one network or of one at many points, and the utility they maximise."""
