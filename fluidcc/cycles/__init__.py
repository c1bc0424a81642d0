"""Limit cycles of networks: the orbit that a run settles on, and what disturbances of it become."""
