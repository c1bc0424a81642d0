"""What follows from a law by algebra: its linearisation, its equilibrium relations, and whether its claims hold."""
