"""Formulas: vectorised, with their expression at hand, and strict about their domain."""

import inspect
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sympy import Rational, limit, symbols

from fluidcc.base.errors import InvalidInput, NotFinite, UnitsError
from fluidcc.formulas import binomial, delay_aimd, ecf, fast, gcc, ldcc, response
from fluidcc.formulas._formula import Bound, Formula, deficit
from fluidcc.proofs.prove import Proof, prove
from fluidcc.symbols import plain

q, z = symbols("q z", positive=True)


def formulas(*rooms: Any) -> list[Formula]:
    found = [getattr(room, name) for room in rooms for name in room.__all__]
    return [f for f in found if isinstance(f, Formula)]


FORMULAS = formulas(binomial, response, delay_aimd, fast)
OTHERS = formulas(ecf, gcc, ldcc)
INSIDE = {
    "k": 0.4, "l": 0.8, "lam": 0.3, "sigma": 0.6, "U": 3.0, "C": 6.0, "n": 2.0, "R": 0.7,
    "alpha": 1.1, "beta": 0.4, "mtu": 12e3, "rtt": 0.1, "m_I": 20.0, "m_D": 3.0, "p": 0.01,
    "T0": 0.4, "b": 2.0, "W_max": 9.0, "packet": 8e3, "T": 3.0, "delta": 1.0, "theta": -0.5,
    "t_eps": 0.1, "delta_r": -0.02, "x0": 2.0, "d_hat": 1.3, "tau0": 0.2, "RTT_min": 3.1,
    "RTT_max": 4.0, "cwnd": 9.0, "offset": 1.0, "gamma": 0.3, "Delta": 2.0, "tau0_bar": 0.2,
    "coefficient": 0.25, "T_near": 0.04, "T_far": 0.1, "trickle": 0.01, "left": 0.1, "w_low": 38.0,
    "w_high": 83e3, "m": 1.5, "p_low": 1e-3, "p_high": 1e-7,
}  # fmt: skip


def inside(f: Formula) -> dict[str, float]:
    values = {name: INSIDE[name] for name in inspect.signature(f).parameters}
    values |= {"rtt": 4.0} if f.name == "backoff_factor" else {}
    return values | ({"k": -1.5, "l": 2.0} if f.name.startswith("iscc") else {})


@pytest.mark.slow
@pytest.mark.parametrize("f", FORMULAS, ids=lambda f: f.name)
def test_a_formula_is_its_expression(f: Formula) -> None:
    values = inside(f)
    wanted = f.expr.subs(dict(zip(f.arguments, values.values(), strict=True)))
    found = f(**values)
    many = f(*(np.array([v, v]) for v in values.values()))
    if isinstance(found, tuple):
        assert found == pytest.approx([float(w) for w in wanted], rel=1e-13)
        assert np.array(many) == pytest.approx(np.stack([found, found], axis=1), rel=1e-14)
    else:
        assert type(found) is float
        assert found == pytest.approx(float(wanted), rel=1e-13)
        assert many == pytest.approx([found, found], rel=1e-14)
    assert f._repr_latex_().startswith("$")
    assert f.ref
    assert repr(pickle.loads(pickle.dumps(f))) == repr(f)


@pytest.mark.parametrize("f", FORMULAS, ids=lambda f: f.name)
def test_a_formula_says_the_range_and_the_unit_of_each_argument(f: Formula) -> None:
    text = inspect.getdoc(f) or ""
    lines = text.splitlines()
    assert lines[0] == f"{f.name}{inspect.signature(f)}: {f.ref}."
    for s in f.arguments:
        about = lines[lines.index(f"{plain(s)} : array_like") + 1]
        assert about.endswith(f"[{f.units.get(s, '1')}].")
        outside = -1.0 if s.is_nonnegative else 0.0 if s.is_nonzero else np.inf
        limit = about.split(" [")[0].strip().lower()
        with pytest.raises(InvalidInput, match=f"{plain(s)} is .*, but must be {limit}"):
            f(**{**inside(f), plain(s): outside})
    assert all(f"If not {bound.condition}" in text for bound in f.domain)


def test_the_deficit_has_its_limit() -> None:
    power = deficit(q, z).doit()
    assert limit(power, q, 0) == deficit(0, z).doit()
    assert deficit(2, z).doit().equals(z - z**2 / 2)
    for small in (0.0, 1e-300, 1e-12, 1e-3):
        value = binomial.efficiency(-1 + small, 1, 0.5, 1)
        given = zip(binomial.efficiency.arguments, (-1, 1, Rational(1, 2), 1), strict=True)
        exact = float(binomial.efficiency.expr.subs(dict(given)))
        assert value == pytest.approx(exact, abs=small / 4 + 1e-15)


def test_arrays_broadcast() -> None:
    found = binomial.efficiency(np.linspace(-3, 3, 5)[:, None], np.linspace(-1, 1, 3), 0.5, 100)
    assert found.shape == (5, 3)


WRONG: list[tuple[Callable[[], Any], str]] = [
    (lambda: binomial.efficiency(0, 1, 1.5, 100), "z = sigma"),
    (lambda: binomial.efficiency_n(0.5, -0.5, 0.5, 100, 159), "limits n to 158.74"),
    (lambda: binomial.efficiency(1, 0, 0.5, 0.4), "limits U to 0.5"),
    (lambda: binomial.max_flows(2, 0.1, 3), "l is 2 .* at most 1"),
    (lambda: binomial.max_flows(1, 1.0, 3), "below 1: with l = 1"),
    (lambda: binomial.iscc_parameters(-1.5, 2, 1e6, 20, 1.5), "at least 2"),
    (lambda: binomial.tcp_friendly_alpha(1.0), "beta is 1 .* below 1"),
    (lambda: binomial.efficiency(0, 1, -0.5, 1), "sigma is -0.5, but must be positive"),
    (lambda: binomial.efficiency(np.nan, 1, 0.5, 1), "k is nan"),
    (lambda: binomial.efficiency(0, 1, "half", 1), "sigma of efficiency"),
    (lambda: binomial.efficiency(0, 1, None, [1, "a"]), "give a number"),
    (lambda: binomial.efficiency(0, 1, 0.5), "missing a required argument: 'U'"),
    (lambda: response.square_root_window(2), "p is 2 .* at most 1"),
    (lambda: response.htcp_window(0.0, 0.1), "p is 0"),
    (lambda: fast.newcomer_backlog(-1, 50), "n is -1, but must be at least 0"),
    (lambda: fast.unfairness(float("nan")), "n is nan"),
    (lambda: fast.estimate_flows(0.5, 0.1, -0.01),
     "changes the round trip by at most theta t_eps"),
    (lambda: fast.estimate_flows(1.5, 0.1, 0.01), "theta is the part of its rate"),
    (lambda: fast.estimate_flows(0.5, 0.1, 0), "delta_r is 0, but must be finite and not 0"),
    (lambda: fast.equilibrium_rates(8, "100 Mbit/s", 50),
     "C of equilibrium_rates .* a packet rate in packet/s"),
    (lambda: fast.newcomer_backlog([1, 2], [50, 60, 70]),
     r"do not go together: n \(2,\), alpha \(3,\)"),
    (lambda: fast.arrival_recursion(0, 1e4, 50), "m is 0; give a whole number of at least 1"),
    (lambda: fast.arrival_recursion(float("nan"), 1e4, 50), "m is nan; give a whole number"),  # type: ignore[arg-type]
    (lambda: fast.arrival_recursion(3, -1.0, 50), "C is -1, but must be positive"),
    (lambda: fast.arrival_recursion(3, "100 Mbit/s", 50),
     "C of arrival_recursion .* a packet rate in packet/s"),
    (lambda: fast.arrival_recursion(3, [1e4], 50), r"C is \[10000.0\]; give one number"),
    (lambda: fast.arrival_recursion(3, 1e4, None), "alpha is None; give a number"),
    (lambda: fast.arrival_recursion(3, 1e4), "arrival_recursion.. lacks alpha"),  # type: ignore[call-arg]
    (lambda: delay_aimd.backoff_factor(0.2, 0.1), "smallest round trip seen"),
    (lambda: delay_aimd.threshold(0.02, 1.5, 0.3, 0.1), "tau0 is a mean of its two parts"),
    (lambda: delay_aimd.max_ssthresh(100, 0.02, 0.1, 0.1), "a queue must have been seen"),
    (lambda: delay_aimd.cycle(1, 0.02, 0.1, 1e4, 1.0), "a backoff leaves a part"),
    (lambda: delay_aimd.epoch_duration(-5, 0.1), "window is -5, but must be positive"),
    (lambda: delay_aimd.epoch_duration(100, 0.1, 1.0),
     "beta is 1 at .*, but must be below 1: a backoff leaves a part"),
    (lambda: delay_aimd.epoch_duration(100, 0.1, "half"), "beta of epoch_duration is 'half'"),
    (lambda: delay_aimd.epoch_duration(100, 0.1, offset=float("nan")),
     "offset is nan, but must be at least 0"),
    (lambda: delay_aimd.epoch_duration(100, 0.1, rounds=2), "rounds is 2; give True or False"),  # type: ignore[arg-type]
    (lambda: delay_aimd.epoch_duration([100, 200], [0.1, 0.2, 0.3]), "do not go together"),
    (lambda: delay_aimd.epoch_duration(100), "epoch_duration.. lacks rtt"),  # type: ignore[call-arg]
    (lambda: delay_aimd.epoch_duration(100, 0.1, queue=-1), "queue is -1, but must be at least 0"),
    (lambda: delay_aimd.ratchet(2, 0.1, 0.2, 0.5), "no round trip is shorter"),
    (lambda: delay_aimd.slow_start_rounds("3 Mbit/s", 0.1), "rtt"),
    (lambda: gcc.cycle(0.05, math.log(1.08), 0.2, 0.85), "drains too slowly"),
    (lambda: ecf.v1_radius(0.1, 0.2), "R below 0.1"),
    (lambda: binomial.efficiency_n(0.5, -0.5, 0.5, 100, np.array([1, 150, 200, 300])), "n=200"),
    (lambda: binomial.efficiency(0, 1, 1.5, 1), "none at all"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "text"), WRONG)
def test_domain_errors_name_the_bound(call: Any, text: str) -> None:
    with pytest.raises(InvalidInput, match=text):
        call()


def test_too_large_for_a_float() -> None:
    with pytest.raises(NotFinite, match="too large or too small for a float at k=200"):
        binomial.loss_approximate(200, 1, 1.0, 0.5, 1e-3)


def test_text_with_units() -> None:
    assert binomial.max_flows(0, 5e3, "1544 kbit/s") == pytest.approx(1544 / 5)
    with pytest.raises(UnitsError, match="C of max_flows"):
        binomial.max_flows(0, 5e3, "25 ms")


def test_a_bound_without_a_value_is_said_so() -> None:
    bare = Formula("half", (q,), q / 2, domain=(Bound(q < 1),))
    with pytest.raises(InvalidInput, match="half: q is 3 at q=3, but must be below 1$"):
        bare(3)


@pytest.mark.parametrize("f", [f for f in FORMULAS + OTHERS if f.claims], ids=lambda f: f.name)
def test_every_claim_of_a_formula_is_proved(f: Formula) -> None:
    proof = prove(f)
    assert isinstance(proof, Proof)
    assert [v.label for v in proof] == list(f.claims)
    assert [v.status for v in proof] == ["proved"] * len(f.claims)
    assert proof.name == f.name
