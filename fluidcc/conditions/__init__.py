"""Conditions for stability from the literature, tested beside the exact verdict; passivity."""
