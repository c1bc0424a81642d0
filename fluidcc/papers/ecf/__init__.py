"""P-AQM with explicit congestion feedback, against DCCP over RED.

``claims.toml`` says what the paper claims; the function of a claim's name tests it.
"""
