"""Formulas as data: lists of scalar operations on registers, run by one compiled loop.

A formula so written needs no compilation of its own, so that a law which was never seen before
costs nothing but the writing, and every point of a sweep runs the same instructions in the same
order.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.numerics.compiling import njit


class Op(IntEnum):
    """What an instruction does to its up to three arguments."""

    ADD = 0
    SUB = 1
    MUL = 2
    DIV = 3
    POW = 4
    WHOLE = 5  # a to the whole number b, by products
    MAX = 6
    MIN = 7
    NEG = 8
    SQRT = 9
    EXP = 10
    LOG = 11
    ABS = 12
    SIGN = 13
    STEP = 14  # 0 below 0, 1 above, 1/2 at 0
    GREATER = 15
    NOT_LESS = 16
    EQUAL = 17
    AND = 18
    OR = 19
    NOT = 20
    SELECT = 21  # b where a, else c
    SIN = 22
    COS = 23
    TAN = 24
    ATAN = 25
    TANH = 26
    SINH = 27
    COSH = 28
    FLOOR = 29
    ASIN = 30
    ACOS = 31
    EXPM1 = 32
    LOG1P = 33
    ASINH = 34
    ACOSH = 35
    ATANH = 36


@dataclass(frozen=True, eq=False)
class Tape:
    """Instructions (n, 5): operation, register of the result, registers of the arguments.

    Registers hold first the `inputs`, then the `constants`, then the results. `outputs` says where
    the values stand.
    """

    instructions: NDArray[np.int64]
    inputs: int
    constants: NDArray[np.float64]
    outputs: NDArray[np.int64]

    def __call__(self, *values: float) -> NDArray[np.float64]:
        """The values of the formulas, for tests and single evaluations."""
        first = self.inputs + len(self.constants)
        r = np.empty(first + len(self.instructions))
        r[: self.inputs], r[self.inputs : first] = values, self.constants
        with np.errstate(all="ignore"):
            run(self.instructions.ravel(), 0, self.instructions.size, r, 0, 0.0)
        return r[self.outputs]


@njit(entry=True, counted=False)
def run(I: Any, first: int, last: int, D: Any, r: int, shake: float) -> None:
    """Run the instructions I[first] to I[last], five numbers each, on registers that stand in D
    from `r` on.

    Unless `shake` is 0, each result is off by an ulp or two, up or down as it tells: formulas
    shaken in several ways show what rounding makes of them (Vignes, "A stochastic arithmetic for
    reliable scientific computation", Math. Comput. Simul. 35, 1993).
    """
    for i in range(first, last, 5):
        o = I[i]
        a, b = D[r + I[i + 2]], D[r + I[i + 3]]
        if o == 0:
            v = a + b
        elif o == 1:
            v = a - b
        elif o == 2:
            v = a * b
        elif o == 3:
            v = a / b
        elif o == 4:
            v = np.power(a, b)
        elif o == 5:
            v = 1.0
            for _ in range(int(abs(b))):
                v *= a
            if b < 0:
                v = 1.0 / v
        elif o == 6:
            v = a if a >= b or a != a else b
        elif o == 7:
            v = a if a <= b or a != a else b
        elif o == 8:
            v = -a
        elif o == 9:
            v = np.sqrt(a)
        elif o == 10:
            v = np.exp(a)
        elif o == 11:
            v = np.log(a)
        elif o == 12:
            v = abs(a)
        elif o == 13:
            v = 1.0 if a > 0 else (-1.0 if a < 0 else a)
        elif o == 14:
            v = 1.0 if a > 0 else (0.0 if a < 0 else a + 0.5)
        elif o == 15:
            v = 1.0 if a > b else 0.0
        elif o == 16:
            v = 1.0 if a >= b else 0.0
        elif o == 17:
            v = 1.0 if a == b else 0.0
        elif o == 18:
            v = a * b
        elif o == 19:
            v = a if a > b else b
        elif o == 20:
            v = 1.0 - a
        elif o == 21:
            v = b if a > 0.5 else D[r + I[i + 4]]
        elif o == 22:
            v = np.sin(a)
        elif o == 23:
            v = np.cos(a)
        elif o == 24:
            v = np.tan(a)
        elif o == 25:
            v = np.arctan(a)
        elif o == 26:
            v = np.tanh(a)
        elif o == 27:
            v = np.sinh(a)
        elif o == 28:
            v = np.cosh(a)
        elif o == 29:
            v = np.floor(a)
        elif o == 30:
            v = np.arcsin(a)
        elif o == 31:
            v = np.arccos(a)
        elif o == 32:
            v = np.expm1(a)
        elif o == 33:
            v = np.log1p(a)
        elif o == 34:
            v = np.arcsinh(a)
        elif o == 35:
            v = np.arccosh(a)
        else:
            v = np.arctanh(a)
        if shake != 0.0:
            v *= 1.0 + np.copysign(3.3e-16, np.sin(shake * (i + 1.0)))
        D[r + I[i + 1]] = v
