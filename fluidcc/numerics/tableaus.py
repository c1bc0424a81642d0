"""Explicit Runge-Kutta pairs of order 5(4) with dense output, as literal tableaus.

Both pairs have seven stages, the last of which is the first of the next step ("first same as
last"), and a continuous extension of order four that costs no further evaluation and is
continuously differentiable.

References
----------
.. [1] Ch. Tsitouras, "Runge-Kutta pairs of order 5(4) satisfying only the first column simplifying
assumption",
       Computers & Mathematics with Applications 62 (2011) 770-775.
.. [2] J. R. Dormand, P. J. Prince, "A family of embedded Runge-Kutta formulae", Journal of
Computational and
       Applied Mathematics 6 (1980) 19-26.
.. [3] L. F. Shampine, "Some practical Runge-Kutta formulas", Mathematics of Computation 46 (1986)
135-150.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Tableau:
    """An explicit pair with seven stages, the last at the new point, and its dense output.

    Attributes
    ----------
    name : str
        What ``method=`` calls it.
    order : int
        Order of the solution that is carried on.
    error_order : int
        Order of the embedded solution, whose difference is the error estimate.
    A : ndarray, shape (7, 7)
        Strictly lower triangular stage matrix; its last row is `B`.
    B : ndarray, shape (7,)
        Weights of the solution; the last is zero.
    C : ndarray, shape (7,)
        Nodes; the last is one.
    E : ndarray, shape (7,)
        Error weights: the estimate of the local error is ``h * E @ k``.
    P : ndarray, shape (7, 4)
        Dense output: ``y(t0 + u h) = y0 + h * sum_i k_i * sum_j P[i, j] * u**(j + 1)`` for u in [0,
        1].
    """

    name: str
    order: int
    error_order: int
    A: Array
    B: Array
    C: Array
    E: Array
    P: Array

    def __post_init__(self) -> None:
        for array in (self.A, self.B, self.C, self.E, self.P):
            array.setflags(write=False)


def _square(rows: list[list[float]]) -> Array:
    matrix = np.zeros((len(rows), len(rows)))
    for i, row in enumerate(rows):
        matrix[i, : len(row)] = row
    return matrix


_TSIT5_ROWS: list[list[float]] = [
    [],
    [0.161],
    [-0.008480655492356989, 0.335480655492357],
    [2.8971530571054935, -6.359448489975075, 4.3622954328695815],
    [5.325864828439257, -11.748883564062828, 7.4955393428898365, -0.09249506636175525],
    [
        5.86145544294642,
        -12.92096931784711,
        8.159367898576159,
        -0.071584973281401,
        -0.028269050394068383,
    ],
    [
        0.09646076681806523,
        0.01,
        0.4798896504144996,
        1.379008574103742,
        -3.290069515436081,
        2.324710524099774,
    ],
]

TSIT5 = Tableau(
    name="Tsit5",
    order=5,
    error_order=4,
    A=_square(_TSIT5_ROWS),
    B=np.array([*_TSIT5_ROWS[6], 0.0]),
    C=np.array([0.0, 0.161, 0.327, 0.9, 0.9800255409045097, 1.0, 1.0]),
    E=np.array(
        [
            -0.00178001105222577714,
            -0.0008164344596567469,
            0.007880878010261995,
            -0.1447110071732629,
            0.5823571654525552,
            -0.45808210592918697,
            1 / 66,
        ]
    ),
    P=np.array(
        [
            [1.0, -2.763706197274826, 2.9132554618219126, -1.0530884977290216],
            [0.0, 0.1317, -0.2234, 0.1017],
            [0.0, 3.9302962368947516, -5.941033872131505, 2.490627285651253],
            [0.0, -12.411077166933676, 30.33818863028232, -16.548102889244902],
            [0.0, 37.50931341651104, -88.1789048947664, 47.37952196281928],
            [0.0, -27.896526289197286, 65.09189467479366, -34.87065786149661],
            [0.0, 1.5, -4.0, 2.5],
        ]
    ),
)

_DP5_ROWS: list[list[float]] = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0.0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
]

DORMAND_PRINCE = Tableau(
    name="DP5",
    order=5,
    error_order=4,
    A=_square(_DP5_ROWS),
    B=np.array([*_DP5_ROWS[6], 0.0]),
    C=np.array([0.0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1.0, 1.0]),
    E=np.array([-71 / 57600, 0.0, 71 / 16695, -71 / 1920, 17253 / 339200, -22 / 525, 1 / 40]),
    # The extension with Shampine's optimal c6, [3].
    P=np.array(
        [
            [1.0, -8048581381 / 2820520608, 8663915743 / 2820520608, -12715105075 / 11282082432],
            [0.0, 0.0, 0.0, 0.0],
            [
                0.0,
                131558114200 / 32700410799,
                -68118460800 / 10900136933,
                87487479700 / 32700410799,
            ],
            [0.0, -1754552775 / 470086768, 14199869525 / 1410260304, -10690763975 / 1880347072],
            [
                0.0,
                127303824393 / 49829197408,
                -318862633887 / 49829197408,
                701980252875 / 199316789632,
            ],
            [0.0, -282668133 / 205662961, 2019193451 / 616988883, -1453857185 / 822651844],
            [0.0, 40617522 / 29380423, -110615467 / 29380423, 69997945 / 29380423],
        ]
    ),
)

METHODS: dict[str, Tableau] = {"Tsit5": TSIT5, "DP5": DORMAND_PRINCE, "RK45": DORMAND_PRINCE}
