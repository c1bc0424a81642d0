"""Delay-differential equations of any kind: `fluidcc.solve_dde`."""
