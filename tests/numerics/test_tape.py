"""Instructions on registers against NumPy."""

from typing import Any

import numpy as np
import pytest

from fluidcc.numerics.tape import Op, Tape

NAMES = (
    "ADD add SUB subtract MUL multiply DIV divide POW power WHOLE power MAX maximum MIN minimum "
    "NEG negative SQRT sqrt EXP exp LOG log ABS abs SIGN sign GREATER greater "
    "NOT_LESS greater_equal EQUAL equal AND logical_and OR logical_or NOT logical_not SIN sin "
    "COS cos TAN tan ATAN arctan TANH tanh SINH sinh COSH cosh FLOOR floor ASIN arcsin "
    "ACOS arccos EXPM1 expm1 LOG1P log1p ASINH arcsinh ACOSH arccosh ATANH arctanh"
)
PAIRS = zip(NAMES.split()[::2], NAMES.split()[1::2], strict=True)
MEANING: dict[Op, Any] = {Op[name]: getattr(np, numpys) for name, numpys in PAIRS}
MEANING[Op.STEP] = lambda a: np.heaviside(a, 0.5)
MEANING[Op.SELECT] = lambda a, b, c: b if a else c
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
            count = 3 if op is Op.SELECT else getattr(meaning, "nin", 1)
            wanted = meaning(*(a, b, c)[:count])
        np.testing.assert_allclose(tape(a, b, c), [wanted, 7.0], rtol=1e-14)


def once(op: Op, a: float, b: float) -> Any:
    return Tape(np.array([[int(op), 2, 0, 1, 0]]), 2, np.array([]), np.array([2]))(a, b)


@pytest.mark.parametrize(("op", "wanted"), [(Op.STEP, 0.5), (Op.SIGN, 0.0), (Op.MAX, 0.0)])
def test_at_zero(op: Op, wanted: float) -> None:
    assert once(op, 0.0, 0.0) == wanted


def test_nan_is_not_lost() -> None:
    for op in (Op.MAX, Op.MIN, Op.STEP, Op.SIGN, Op.WHOLE):
        assert np.isnan(once(op, np.nan, 1.0))[0]
