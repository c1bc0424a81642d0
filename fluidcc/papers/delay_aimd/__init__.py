"""Delay-based AIMD, with H-TCP."""
