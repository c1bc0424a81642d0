"""The colours of every picture, so that a flow has the same one in all of them."""

from __future__ import annotations

# Okabe and Ito's, which the colour-blind can tell apart, neighbours of unlike greys for print; then
# two dark ones of Paul Tol's. Black is for capacities and boundaries, red for margins and -1.
COLOURS = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#56B4E9", "#CC79A7", "#332288", "#882255",
)  # fmt: skip
BLACK, GREY, RED = "#000000", "#737373", "#C00000"


def colour(k: int) -> str:
    """Return the colour of the k-th flow, link or curve."""
    return COLOURS[k % len(COLOURS)]
