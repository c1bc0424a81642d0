"""Runs of many points side by side by fixed steps: the method, and statistics of what it leaves."""
