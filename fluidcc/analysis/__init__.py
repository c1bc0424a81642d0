"""Networks near their equilibrium: linearisation, verdicts, margins, sensitivities and
boundaries of stability.
"""
