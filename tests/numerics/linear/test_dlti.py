"""DelayLTI: responses and interconnection against transfer functions written out by hand."""

from typing import Any

import numpy as np
import pytest

import fluidcc as fc
from fluidcc.base.errors import InvalidInput, UnknownName

OMEGA = np.geomspace(1e-2, 1e2, 40)
S = 1j * OMEGA


def lag(gain: float, pole: float, delay: float) -> fc.DelayLTI:
    return fc.DelayLTI.transfer([gain], [1, pole], delay)


def lag_at(gain: float, pole: float, delay: float) -> np.ndarray:
    return gain * np.exp(-S * delay) / (S + pole)


def near(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.allclose(a, b, rtol=1e-12, atol=1e-14))


def test_interconnections_are_those_of_transfer_functions() -> None:
    g, h = lag(2, 1, 0.1), lag(3, 0.5, 0.2)
    a, b = lag_at(2, 1, 0.1), lag_at(3, 0.5, 0.2)
    second = (2 * S**2 + 3 * S + 5) / (S**2 + 4 * S + 6) * np.exp(-0.3 * S)
    for system, value in (
        (fc.DelayLTI.transfer([2, 3, 5], [1, 4, 6], 0.3), second),
        (g * h, a * b),
        (np.eye(1) @ g @ h @ [[1.0]], a * b),
        (g**3, a**3),
        (g + h, a + b),
        (g - h, a - b),
        (-g, -a),
        (2 * g, 2 * a),
        (g * 2, 2 * a),
        (g + 1, a + 1),
        (1 - g, 1 - a),
        (g.feedback(h), a / (1 + a * b)),
        (g.feedback(), a / (1 + a)),
        (g.feedback(h, sign=1), a / (1 - a * b)),
        (g.feedback(0.5), a / (1 + 0.5 * a)),
        (g.delayed(0.7), a * np.exp(-0.7 * S)),
    ):
        assert near(system(S)[0, 0], value)
    assert near(g.frequency_response(OMEGA), g(S))


def test_append_select_and_named_delay() -> None:
    both = lag(2, 1, 0.1).append(lag(3, 0.5, 0.2))
    assert both.inputs == ("u0_0", "u0_1")
    values = both(S)
    assert near(values[1, 1], lag_at(3, 0.5, 0.2))
    assert near(values[0, 1], 0 * S)
    late = both.delayed(0.4, inputs="u0_1")
    assert near(late(S)[0, 0], values[0, 0])
    assert near(late(S)[1, 1], values[1, 1] * np.exp(-0.4 * S))
    assert near(both.select(outputs=1, inputs="u0_1")(S)[0, 0], values[1, 1])
    with pytest.raises(UnknownName, match="there is no input 'nothing'"):
        both.select(inputs="nothing")


def test_characteristic_is_the_quasipolynomial() -> None:
    loop = lag(2, 1, 0.1).feedback()
    s = np.array([[0.3 + 1j, -2 + 5j], [0, 1]])
    assert near(loop.characteristic(s), s + 1 + 2 * np.exp(-0.1 * s))
    A0, A1 = np.array([[0.0, 1], [-2, -1]]), np.array([[0.0, 0], [-1, 0]])
    equation = fc.DelayLTI.retarded(A0, (A1, 0.5))
    assert len(equation.delays) == 1  # one channel a rank
    at = s[..., None, None]
    value = np.linalg.det(at * np.eye(2) - A0 - A1 * np.exp(-0.5 * at))
    assert near(equation.characteristic(s), value)


def test_zero_delays_are_algebraic() -> None:
    D = np.array([[0, 0], [0.25, 0.5]])
    g = fc.DelayLTI([[-1.0]], [[1.0, 0.5]], [[1.0], [2.0]], D, delays=[0.0])
    assert not len(g.delays)
    v = np.linalg.solve([[0.5]], [[2.0, 0.25]])  # v = 2 x + 0.25 u + 0.5 v
    assert near(g(S)[0, 0], (1 + 0.5 * v[0, 1]) / (S + 1 - 0.5 * v[0, 0]))
    # through a delay a loop is not algebraic
    assert fc.DelayLTI.transfer([-1, 0], [1, 1], 0.1).feedback().n_states == 1


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"B": [[1.0, 2, 3]]}, "B must have shape"),
        ({"delays": [-1.0]}, "negative"),
        ({"A": [[np.nan]]}, "finite"),
        ({"delays": [1.0, 1, 1]}, "do not fit"),
        ({"inputs": ["a", "b"]}, "1 different names"),
        ({"D": [[0, 0], [0, 1.0]], "delays": [0.0]}, "zero delay form an algebraic loop"),
    ],
)
def test_malformed_blocks_say_what_is_wrong(change: dict, text: str) -> None:
    parts: dict[str, Any] = {"A": [[-1.0]], "B": [[1.0, 1]], "C": [[1.0], [1]], "delays": [0.5]}
    lists = {**parts, "D": [[0.0, 0], [0, 0]], **change}
    arrays = {k: part if k == "inputs" else np.array(part) for k, part in lists.items()}
    said = []
    for given in (lists, arrays):
        with pytest.raises(InvalidInput, match=text) as refused:
            fc.DelayLTI(**given)
        said.append(str(refused.value).replace("array(", "").replace(")", ""))
    assert said[0] == said[1]


def test_a_block_has_arrays_of_its_own() -> None:
    parts: Any = [[-1.0]], [[1.0, 1]], [[1.0], [1]], np.zeros((2, 2)), [0.5]
    given = [np.array(part) for part in parts]
    block = fc.DelayLTI(*given[:4], delays=given[4])
    for part in given:
        part[:] = 7.0
    assert block.A == -1
    assert block.delays == 0.5
    blocks = (np.asfortranarray(part) for part in given[:4])
    turned = fc.DelayLTI(*blocks, delays=given[4].astype(np.float32))
    assert turned.D.tolist() == [[7.0, 7.0], [7.0, 7.0]]


def test_frozen_and_shown() -> None:
    g = lag(1, 1, 0.5)
    with pytest.raises(ValueError):
        g.A[0, 0] = 2
    assert repr(g) == "DelayLTI(1 states, 1 inputs, 1 outputs, 1 delays of 0.5 s)"
    assert "500" in g._repr_html_()


two = lag(1, 1, 0).append(lag(1, 1, 0))


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda g: g + "a", "the other block is 'a'"),
        (lambda g: g * None, "the other block is None"),
        (lambda g: g.append(2), "a block to append is 2; give a DelayLTI"),
        (lambda g: two * g, "g has 2 inputs and h has 1 outputs"),
        (lambda g: two + g, r"blocks of one shape, here \(2, 2\) and \(1, 1\)"),
        (lambda g: two.feedback(g), "needs a block of 2 inputs and 2 outputs, got 1 and 1"),
        (lambda g: two.select([0], None).feedback(), "as many outputs as inputs, here 1 and 2"),
        (lambda g: two.connect([[1.0]]), r"connect needs back of shape \(2, 2\)"),
        (lambda g: two.delayed([1.0, 2.0, 3.0]), "give one time in seconds, or one for each of 2"),
        (lambda g: g.to_control(), "give the frequencies omega=, or the order pade= .*; got nei"),
        (lambda g: g.to_control([1.0], 3), "got both"),
        (lambda g: g.transfer([[1]], [1, 1]), r"num is \[\[1\.0\]\]; give coefficients by falling"),
        (lambda g: g.transfer([1], [0]), r"den is \[0\.0\]; give coefficients by falling powers"),
        (lambda g: g.transfer([1, 0, 0], [1, 0]), "num of degree 2 over den of degree 1 is no"),
        (lambda g: g.transfer([-1, 0], [1, 1]).feedback(), "the connection is an algebraic loop"),
        (lambda g: g.feedback().roots(region=(1, -3)), r"region is \(1, -3\); give a finite box"),
        (lambda g: g.step([-1.0, 0.0]), "is .-1.0, 0.0.; give the times of a response"),
        (lambda g: g.step(), r"step\(\) lacks t; give t \(array_like\)"),
        (lambda g: g.impulse(), r"impulse\(\) lacks t; give t \(array_like\)"),
        (lambda g: g.frequency_response(), r"frequency_response\(\) lacks omega; give omega \("),
        (
            lambda g: g.delayed(),
            r"delayed\(\) lacks extra; give extra \(float, str or arr",
        ),
        (lambda g: g.connect(), r"connect\(\) lacks back"),
        (lambda g: g.transfer([1.0]), r"transfer\(\) lacks den; give den"),
    ],
)
def test_a_block_used_wrongly_says_how_to_use_it(call: Any, says: str) -> None:
    with pytest.raises(InvalidInput, match=says):
        call(fc.DelayLTI.transfer([1], [1, 0], 1.0))


@pytest.mark.parametrize("a", [1.0, 1e8, 1e15])
def test_a_small_entry_of_a_delayed_term_is_kept_beside_a_large_one(a: float) -> None:
    system = fc.DelayLTI.retarded(-np.eye(2), ([[0, a], [-4 / a, -1]], 1.0))
    s = np.array([0.3 + 1j, 2j])
    assert near(system.characteristic(s), (s + 1) ** 2 + (s + 1) * np.exp(-s) + 4 * np.exp(-2 * s))
    assert system.count_unstable().unstable == 2


def test_delayed_terms_give_back_their_matrices_bit_by_bit_or_to_rounding() -> None:
    rng = np.random.default_rng(5)
    scale = 10 ** rng.uniform(-150, 150, (6, 1))
    column, row = rng.normal(size=(6, 1)) * scale, rng.normal(size=(1, 6)) / scale.T
    for matrix, channels in (
        (rng.normal(size=(6, 6)) * scale / scale.T, 6),
        (np.triu(np.ones((6, 6)), 3), 3),
        (column @ row, 1),
        (np.outer([1, 0, 2, 3, 1, 7], row), 1),
        (np.zeros((6, 6)), 0),
    ):
        system = fc.DelayLTI.retarded(-np.eye(6), (matrix, 1.0))
        assert len(system.delays) == channels
        term = system.B[:, system.n_inputs :] @ system.C[system.n_outputs :]
        np.testing.assert_allclose(term, matrix, rtol=1e-15, atol=0)


def test_a_loop_is_algebraic_by_its_gain_and_not_by_units() -> None:
    g = lag(2, 1, 0.1)
    assert near((g * 1e13)(S)[0, 0], 1e13 * lag_at(2, 1, 0.1))
    gain = fc.DelayLTI.transfer([1], [1])
    both = gain.append(gain)
    for a in (1.0, 1e13):
        closed = both.connect([[0, a], [-1 / a, 0]])
        np.testing.assert_allclose(closed.D, [[0.5, a / 2], [-0.5 / a, 0.5]], rtol=1e-14)
        with pytest.raises(InvalidInput, match="algebraic loop"):
            both.connect([[0, a], [1 / a, 0]])
    with pytest.raises(InvalidInput, match="algebraic loop"):
        gain.connect([[1 - 1e-14]])
