"""P-AQM with explicit congestion feedback, against DCCP over RED."""
