"""The 3/8 rule, with an error estimate that costs no evaluation, and the cubic between nodes.

The estimate is that of all pairs of order 4(3) on the four stages of the rule and the slope at the new point, which
is the first stage of the next step ("first same as last"): they differ by a factor only. Where the slope depends on
time alone, as it mostly does where delayed signals drive it, the estimate is the third difference of the four slopes;
stages at the middle of a step, as the classical rule has them, would not see such an error at all.

References
----------
.. [1] W. Kutta, "Beitrag zur naeherungsweisen Integration totaler Differentialgleichungen", Zeitschrift fuer
       Mathematik und Physik 46 (1901) 435-453.
.. [2] E. Hairer, S. P. Norsett, G. Wanner, Solving Ordinary Differential Equations I, Section II.4.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["A", "B", "C", "E", "hermite"]

#: stages, the last of which is the new point
A = ((), (1 / 3,), (-1 / 3, 1.0), (1.0, -1.0, 1.0))
B = (1 / 8, 3 / 8, 3 / 8, 1 / 8)
#: times of the stages, as shares of the step
C = (0.0, 1 / 3, 2 / 3, 1.0)
#: the estimate of the local error is ``h * E @ k``, with the slope at the new point the fifth
E = (1 / 8, -3 / 8, 3 / 8, 3 / 8, -1 / 2)


def hermite(u: NDArray[np.float64]) -> NDArray[np.float64]:
    """Weights of the cubic between two nodes at the shares `u` of the way: shape (..., 4).

    They belong to the value and the slope (times the step) at the first node, and those at the second one.
    """
    v = 1.0 - u
    return np.stack([(1.0 + 2.0 * u) * v * v, u * v * v, u * u * (3.0 - 2.0 * u), -u * u * v], axis=-1)
