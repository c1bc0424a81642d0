"""FAST and Vegas under persistent congestion."""
