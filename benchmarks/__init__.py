"""Speed and accuracy of fluidcc, measured against others: ``python -m benchmarks``."""
