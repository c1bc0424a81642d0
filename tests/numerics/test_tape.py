"""Instructions on registers against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fluidcc.numerics.tape import Op, Tape

MEANING: dict[Op, Any] = {
    Op.ADD: np.add, Op.SUB: np.subtract, Op.MUL: np.multiply, Op.DIV: np.divide, Op.POW: np.power,
    Op.WHOLE: np.power, Op.MAX: np.maximum, Op.MIN: np.minimum, Op.NEG: np.negative,
    Op.SQRT: np.sqrt, Op.EXP: np.exp,
    Op.LOG: np.log, Op.ABS: np.abs, Op.SIGN: np.sign, Op.STEP: lambda a: np.heaviside(a, 0.5),
    Op.GREATER: np.greater,
    Op.NOT_LESS: np.greater_equal, Op.EQUAL: np.equal, Op.AND: np.logical_and, Op.OR: np.logical_or,
    Op.NOT: np.logical_not, Op.SELECT: lambda a, b, c: b if a else c, Op.SIN: np.sin,
    Op.COS: np.cos, Op.TAN: np.tan,
    Op.ATAN: np.arctan, Op.TANH: np.tanh, Op.SINH: np.sinh, Op.COSH: np.cosh, Op.FLOOR: np.floor,
    Op.ASIN: np.arcsin,
    Op.ACOS: np.arccos, Op.EXPM1: np.expm1, Op.LOG1P: np.log1p, Op.ASINH: np.arcsinh,
    Op.ACOSH: np.arccosh,
    Op.ATANH: np.arctanh,
}  # fmt: skip
LOGIC = (Op.AND, Op.OR, Op.NOT, Op.SELECT)


@pytest.mark.parametrize("op", list(Op), ids=lambda op: op.name)
def test_every_operation_is_numpys(op: Op) -> None:
    tape = Tape(np.array([[int(op), 4, 0, 1, 2]]), 3, np.array([7.0]), np.array([4, 3]))
    rng = np.random.default_rng(int(op))
    for _ in range(20):
        a, b, c = rng.normal(size=3)
        if op in LOGIC:
            a, b = float(a > 0), float(b > 0)
        if op is Op.WHOLE:
            b = float(rng.integers(-4, 5))
        with np.errstate(all="ignore"):
            meaning = MEANING[op]
            wanted = (
                meaning(a, b, c)
                if op is Op.SELECT
                else meaning(a, b)
                if getattr(meaning, "nin", 1) == 2
                else meaning(a)
            )
        np.testing.assert_allclose(tape(a, b, c), [wanted, 7.0], rtol=1e-14)


@pytest.mark.parametrize(("op", "wanted"), [(Op.STEP, 0.5), (Op.SIGN, 0.0), (Op.MAX, 0.0)])
def test_at_zero(op: Op, wanted: float) -> None:
    assert (
        Tape(np.array([[int(op), 2, 0, 1, 0]]), 2, np.array([]), np.array([2]))(0.0, 0.0) == wanted
    )


def test_nan_is_not_lost() -> None:
    for op in (Op.MAX, Op.MIN, Op.STEP, Op.SIGN, Op.WHOLE):
        assert np.isnan(
            Tape(np.array([[int(op), 2, 0, 1, 0]]), 2, np.array([]), np.array([2]))(np.nan, 1.0)
        )[0]
