"""`solve_dde` against hand-written loops, JiTCDDE and two crates of Rust, whole calls at equal
error.

The Mackey-Glass equation with a constant lag, networks with hundreds of lags, and mosquitoes in
the seasons: 13 states with six lags among them, after D. A. Ewing, C. A. Cobbold, B. V. Purse,
M. A. Nunn and S. M. White, Journal of Theoretical Biology 400 (2016) 65-79, with simpler rates.
"""

from __future__ import annotations

import math
import subprocess
from collections.abc import Callable, Iterator
from contextlib import chdir
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter, process_time
from typing import Any

import numpy as np
from numba import njit

import fluidcc as fc
from benchmarks.speed import Row, Skipped
from fluidcc.laws.delay_equations import Equations
from tests.numerics.dde.test_kinks import small_steps

__all__ = ["mackey_glass", "many_lags", "mosquitoes"]

END, LAG, RUNS = 1000.0, 17.0, 10_000
ERROR = 1e-6  # at which all are compared, the largest at the samples
TOLERANCES = [m * 10.0**-p for p in range(4, 13) for m in (5, 2, 1)]
REPEATS = 20

Solve = Callable[[float], tuple[float, Any]]  # seconds and samples, by tolerance or number of steps


def _timed(run: Callable[[], Any]) -> tuple[float, Any]:
    begin = perf_counter()
    found = run()
    return perf_counter() - begin, found


def _at_equal_error(solve: Solve, settings: Any, truth: Any) -> tuple[float, str]:
    """Least seconds with the first setting whose error is small enough, and what it was; where
    there are fewer samples, they are the last.
    """
    for setting in settings:
        seconds, found = solve(setting)
        wrong = np.abs(found - truth[..., -found.shape[-1] :]).max() / max(1.0, np.abs(truth).max())
        if wrong <= ERROR:
            best = min(seconds, *(solve(setting)[0] for _ in range(REPEATS)))
            return best, f"{best * 1e3:.3f} ms (setting {setting:.3g}, error {wrong:.1e})"
    raise Skipped(f"no setting gives an error of {ERROR:.0e}")


def _compared(
    name: str, parts: list[tuple[str, Solve, Any, str, float]], truth: Any
) -> Iterator[Row]:
    """A row for each way of solving; the first is `solve_dde`, to which the others are ratios."""
    ours = 0.0
    for who, solve, settings, sense, wanted in parts:
        try:
            seconds, text = _at_equal_error(solve, settings, truth)
        except Exception as problem:  # of a package that is missing, or a compiler
            yield Row(f"{name} {who}", f"skipped: {problem}")
            continue
        ours = ours or seconds
        yield Row(f"{name} {who}", text)
        if sense:
            value = ours / seconds if sense == "<=" else seconds / ours
            met = value <= wanted if sense == "<=" else value >= wanted
            yield Row(f"{name} ratio", f"{value:.1f} ({who})", f"{sense} {wanted:g}", met)


# --- Mackey-Glass ---------------------------------------------------------------------------------


@njit
def _rate(x: float, past: float, beta: float) -> float:
    return beta * past / (1 + past**10) - 0.1 * x


@njit
def _mackey_glass(t: float, y: Any, Z: Any, beta: float) -> Any:
    return _rate(y[0], Z[0, 0], beta)


def _plain_mackey_glass(t: float, y: Any, Z: Any, beta: float) -> Any:
    past = Z[0, 0]
    return [beta * past / (1 + past**10) - 0.1 * y[0]]


@njit
def _before(t: float, h: float, now: int, states: Any, slopes: Any) -> float:
    """The state at time t from the ring buffer, whose last entry is that of step `now`, by cubic
    Hermite interpolation.
    """
    if t <= 0.0:
        return 0.5
    size = len(states)
    i = min(int(t / h), now - 1)
    u, a, b = t / h - i, i % size, (i + 1) % size
    rise, first, last = states[b] - states[a], h * slopes[a], h * slopes[b]
    curve = 3 * rise - 2 * first - last + u * (first + last - 2 * rise)
    return states[a] + u * (first + u * curve)


@njit
def _ring(beta: float, k: int, every: int, samples: int) -> Any:
    """The classical method with k steps a lag on a ring buffer, by hand. Samples every so many
    steps.
    """
    h = LAG / k
    out, x = np.empty(samples), 0.5
    states, slopes = np.full(k + 1, 0.5), np.zeros(k + 1)
    out[0] = x
    for i in range((samples - 1) * every):
        late = i * h - LAG
        k1 = _rate(x, _before(late, h, i, states, slopes), beta)
        states[i % (k + 1)], slopes[i % (k + 1)] = x, k1
        middle = _before(late + h / 2, h, i, states, slopes)
        k2 = _rate(x + h / 2 * k1, middle, beta)
        k3 = _rate(x + h / 2 * k2, middle, beta)
        k4 = _rate(x + h * k3, _before(late + h, h, i, states, slopes), beta)
        x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if (i + 1) % every == 0:
            out[(i + 1) // every] = x
    return out


@njit
def _grid(beta: float, k: int, every: int, samples: int) -> Any:
    """The same for this one equation: it is known that the past is wanted at steps and halfway
    between them, and what two stages share is taken once.
    """
    h = LAG / k
    out, x = np.empty(samples), 0.5
    past, slope = np.full(k, 0.5), np.zeros(k)
    out[0] = x
    for i in range((samples - 1) * every):
        j = i % k
        a, b = past[j], past[(j + 1) % k] if i + 1 != k else 0.5
        m = (a + b) / 2 + h / 8 * (slope[j] - (slope[(j + 1) % k] if i + 1 != k else 0.0))
        fa, fm, fb = beta * a / (1 + a**10), beta * m / (1 + m**10), beta * b / (1 + b**10)
        k1 = fa - 0.1 * x
        k2 = fm - 0.1 * (x + h / 2 * k1)
        k3 = fm - 0.1 * (x + h / 2 * k2)
        k4 = fb - 0.1 * (x + h * k3)
        past[j], slope[j] = x, k1
        x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        if (i + 1) % every == 0:
            out[(i + 1) // every] = x
    return out


def mackey_glass() -> Iterator[Row]:
    """Ours compiled and plain, loops by hand, JiTCDDE, and ten thousand runs in one call."""
    step = 4.25  # a quarter of the lag
    count = int(END / step)
    times = step * np.arange(count + 1)
    truth = _grid(0.2, 8000, 2000, count + 1)

    def ours(fun: Any) -> Solve:
        def solve(rtol: float) -> tuple[float, Any]:
            tight = {"rtol": rtol, "atol": rtol, "t_eval": times, "args": (0.2,)}
            run = lambda: fc.solve_dde(fun, (0, times[-1]), 0.5, [LAG], **tight).y[0]  # noqa: E731
            return _timed(run)

        return solve

    def by_hand(loop: Any) -> Solve:
        loop(0.2, 4, 1, 2)  # compiles it
        return lambda k: _timed(lambda: loop(0.2, int(k), int(k) // 4, count + 1))

    yield from _compared("Mackey-Glass", [
        ("fluidcc", ours(_mackey_glass), TOLERANCES, "", 0.0),
        ("loop by hand on a ring buffer", by_hand(_ring), range(40, 4000, 4), "<=", 10.0),
        ("loop by hand, its lag on its grid", by_hand(_grid), range(40, 4000, 4), "", 0.0),
        ("JiTCDDE", _jitcdde(_mackey_glass_jitcdde, 1, times, LAG), TOLERANCES, ">=", 20.0),
        ("fluidcc, plain fun", ours(_plain_mackey_glass), TOLERANCES, "", 0.0),
        ("Rust, differential-equations 0.7.0",
         _rust("differential-equations", step, count), TOLERANCES, "", 0.0),
        ("Rust, numra-dde 0.1.5, error at the end",
         _rust("numra-dde", step, count), TOLERANCES, "", 0.0),
    ], truth)  # fmt: skip
    betas = np.linspace(0.15, 0.25, RUNS)[:, None]
    many = {"t_eval": times, "args": betas, "rtol": 1e-6, "atol": 1e-6}
    seconds, _ = _timed(lambda: fc.solve_dde(_mackey_glass, (0, times[-1]), 0.5, [LAG], **many))
    yield Row(f"{RUNS} Mackey-Glass", f"{seconds:.1f} s in one call (rtol 1e-06)")


def _rust(crate: str, step: float, count: int) -> Solve:
    """A crate of Rust, the call alone, without starting its program."""
    program = Path(__file__).parent / "rust" / "target" / "release" / "mackey-glass"

    def solve(rtol: float) -> tuple[float, Any]:
        if not program.exists():
            raise Skipped("`make bench-rust` builds it")
        given = [str(program), crate, *map(str, (rtol, step, count + 1, 3))]
        seconds, *found = subprocess.run(given, capture_output=True, check=True).stdout.split()
        return float(seconds), np.array(found, float)

    return solve


def _mackey_glass_jitcdde(y: Any, t: Any) -> tuple[list[Any], list[float]]:
    past = y(0, t - LAG)
    return [0.2 * past / (1 + past**10) - 0.1 * y(0)], [0.5]


def _jitcdde(
    equations: Callable[[Any, Any], tuple[list[Any], list[float]]],
    first: int,
    times: Any,
    longest: float,
) -> Solve:
    """JiTCDDE, compiled at the first call; samples of the first states."""
    ready: list[Any] = []

    def solve(rtol: float) -> tuple[float, Any]:
        from jitcdde import jitcdde, t, y

        f, start = equations(y, t)
        if not ready:
            dde = jitcdde(f, n=len(f), max_delay=longest, verbose=False)
            with TemporaryDirectory() as folder, chdir(folder):
                dde.compile_C(simplify=False, do_cse=True)
            ready.append(dde)
        dde = ready[0]

        def run() -> Any:
            dde.purge_past()
            dde.set_integration_parameters(rtol=rtol, atol=rtol, first_step=1e-3, max_step=longest)
            dde.constant_past(start)
            dde.adjust_diff(shift_ratio=1e-9)
            return np.array([start, *(dde.integrate(s) for s in times[1:])]).T[:first].squeeze()

        return _timed(run)

    return solve


# --- many lags ------------------------------------------------------------------------------------


def _fixed_steps(lags: Any, end: float, steps: int) -> Any:
    """The classical method with fixed steps on cubic Hermite polynomials in NumPy, for
    y_i' = -y_i + 0.3/n sum_j y_j(t - lag_ij) from 1 + t: kinks are not looked at.
    """
    n, h = len(lags), end / steps
    y, rate = np.empty((steps + 1, n)), np.empty((steps + 1, n))
    y[0], column = 1.0, np.broadcast_to(np.arange(n), (n, n))

    def slope(t: float, now: Any, known: int) -> Any:
        then = t - lags
        m = np.clip(np.floor(then / h + 1e-9).astype(int), 0, max(known - 1, 0))
        u = then / h - m
        if known == 0:
            late = y[0] + then * rate[0]
        else:
            a, b, da, db = (v[k, column] for v in (y, rate) for k in (m, m + 1))
            late = a + u * (b - a) + u * (u - 1) * (
                (1 - 2 * u) * (b - a) + (u - 1) * h * da + u * h * db
            )  # fmt: skip
        return -now + 0.3 / n * np.where(then <= 0, 1 + then, late).sum(axis=1)

    rate[0] = -y[0] + 0.3 / n * (1 - lags).sum(axis=1)
    for k in range(steps):
        t, now = k * h, y[k]
        first = rate[k]
        second = slope(t + h / 2, now + h / 2 * first, k)
        third = slope(t + h / 2, now + h / 2 * second, k)
        last = slope(t + h, now + h * third, k)
        y[k + 1] = now + h / 6 * (first + 2 * second + 2 * third + last)
        rate[k + 1] = slope(t + h, y[k + 1], k)
    return y[-1]


def many_lags() -> Iterator[Row]:
    """900 and 10,000 lags with a history in Python, against fixed steps in NumPy; seconds of
    processor time.
    """
    for n, wanted in ((30, 5.0), (100, 10.0)):
        lags, reader = np.random.default_rng(1).random((n, n)), np.repeat(np.arange(n), n)

        @njit
        def fun(t: float, y: Any, Z: Any, reader: Any) -> Any:
            out = -y
            for k in range(len(Z)):
                out[reader[k]] += 0.3 / len(y) * Z[k]
            return out

        given: dict[str, Any] = {"lags": lags.ravel(), "lag_states": np.tile(np.arange(n), n)}
        given |= {"history": lambda t, n=n: 1.0 + t + np.zeros(n), "args": (reader,)}
        fc.solve_dde(fun, (0, 0.01), **given)
        begin = process_time()
        run = fc.solve_dde(fun, (0, 2.0), **given)
        ours, begin = process_time() - begin, process_time()
        theirs = _fixed_steps(lags, 2.0, 100)
        ratio = ours / (process_time() - begin)
        error = np.abs(run.y[:, -1] - theirs).max()
        text = f"{ratio:.2f} ({ours * 1e3:.0f} ms, {error:.0e} apart)"
        yield Row(f"{n * n} lags ratio", text, f"<= {wanted:g}", ratio <= wanted)


# --- mosquitoes -----------------------------------------------------------------------------------

YEARS, YEAR = 2.0, 2 * math.pi / 365
START = [100.0, 100.0, 30.0, 10.0, 0.43, 0.37, 0.61, 16.7, 33.3, 12.5, 16.7, 33.3, 16.7]


def _mosquitoes(x: Callable[[int, Any], Any], t: Any, cos: Callable[[Any], Any]) -> list[Any]:
    """Rates of change of eggs, larvae, pupae, adults; of the shares that survive each stage; of the
    durations of the stages, and of earlier stages where one of today began.

    x(i, s) is state i at time s.
    """

    def seasonal(low: float, high: float) -> Callable[[Any], Any]:
        return lambda s: low + (high - low) * (1 - cos(YEAR * s)) / 2

    egg, larva, pupa = seasonal(0.06, 0.16), seasonal(0.03, 0.09), seasonal(0.08, 0.28)
    births, dying, eaten = seasonal(5.0, 9.0), 0.05, 1e-4
    eggs, larvae, pupae, adults, eggs_live, larvae_live, pupae_live = (x(i, t) for i in range(7))
    a, b, c = (t - x(i, t) for i in (7, 8, 9))  # when eggs, larvae and pupae of today began
    ab, bc = b - x(10, t), c - x(11, t)  # when these larvae, pupae were eggs, larvae
    abc = bc - x(12, t)
    hatch = births(a) * x(3, a) * eggs_live * egg(t) / egg(a)
    hatched = births(ab) * x(3, ab) * x(4, b) * egg(b) / egg(ab)
    pupate = hatched * larvae_live * larva(t) / larva(b)
    pupated = births(abc) * x(3, abc) * x(4, bc) * egg(bc) / egg(abc)
    pupated *= x(5, c) * larva(c) / larva(bc)
    emerge = pupated * pupae_live * pupa(t) / pupa(c)
    death, death_then = dying + eaten * larvae, dying + eaten * x(1, b)
    of_larvae, of_pupae = 1 - larva(t) / larva(b), 1 - pupa(t) / pupa(c)
    of_earlier_larvae = (1 - of_pupae) * (1 - larva(c) / larva(bc))
    return [
        births(t) * adults - hatch - dying * eggs,
        hatch - pupate - death * larvae,
        pupate - emerge - dying * pupae,
        emerge - 2 * dying * adults,
        eggs_live * dying * (egg(t) / egg(a) - 1),
        larvae_live * (death_then * larva(t) / larva(b) - death),
        pupae_live * dying * (pupa(t) / pupa(c) - 1),
        1 - egg(t) / egg(a),
        of_larvae,
        of_pupae,
        (1 - of_larvae) * (1 - egg(b) / egg(ab)),
        of_earlier_larvae,
        (1 - of_pupae - of_earlier_larvae) * (1 - egg(bc) / egg(abc)),
    ]


def mosquitoes() -> Iterator[Row]:
    """From SymPy, against the classical method with fixed steps on the same compiled equations, and
    JiTCDDE.
    """
    import sympy as sp

    t, states = sp.Symbol("t"), [sp.Function(f"x{i}") for i in range(13)]
    rates = _mosquitoes(lambda i, s: states[i](s), t, sp.cos)
    equations = {x(t): f for x, f in zip(states, rates, strict=True)}
    made = Equations(equations).compiled({"history": START})
    times = np.linspace(0, YEARS * 365, 74)
    given = (made["fun"], (0, times[-1]), START, made["lags"])
    truth = fc.solve_dde(*given, rtol=1e-12, atol=1e-12, t_eval=times).y

    def ours(rtol: float) -> tuple[float, Any]:
        return _timed(lambda: fc.solve_dde(*given, rtol=rtol, atol=rtol, t_eval=times).y)

    start = np.array(START)
    past = njit(lambda t: start)

    def by_hand(steps: float) -> tuple[float, Any]:
        count = int(steps) * 73
        run = lambda: small_steps(made["fun"], made["lags"], past, times[-1], count)  # noqa: E731
        seconds, found = _timed(run)
        return seconds, found[:: int(steps)].T

    by_hand(1)

    def jitcdde_equations(y: Any, t: Any) -> tuple[list[Any], list[float]]:
        from symengine import cos

        return _mosquitoes(lambda i, s: y(i, s), t, cos), START

    them = _jitcdde(jitcdde_equations, 13, times, 200.0)
    yield from _compared("Mosquitoes", [
        ("fluidcc", ours, TOLERANCES, "", 0.0),
        ("loop by hand", by_hand, [2**k for k in range(12)], "", 0.0),
        ("JiTCDDE", them, TOLERANCES, ">=", 5.0),
    ], truth)  # fmt: skip
