"""TCP and its queues as they run today: what RFCs and their sources claim.

``claims.toml`` says what they claim; the function of a claim's name tests it.
"""
