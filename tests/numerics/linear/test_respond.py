"""Step and impulse responses: exact polynomials, solve_dde, python-control; export and Pade."""

import numpy as np
import pytest
from numpy.polynomial import Polynomial

import fluidcc as fc
from fluidcc.base.errors import Unsupported
from fluidcc.numerics.linear import respond

transfer = fc.DelayLTI.transfer


def exact_step(t: np.ndarray, k: float, tau: float) -> np.ndarray:
    """Pieces of y'(t) = k (u(t - tau) - y(t - tau)), y = 0 before tau."""
    pieces = [Polynomial([0.0])]  # each on [0, tau], in local time
    for _ in range(int(t.max() / tau) + 1):
        pieces.append((k * (1 - pieces[-1])).integ() + pieces[-1](tau))
    index = np.minimum((t / tau + 1e-12).astype(int), len(pieces) - 1)
    return np.array([pieces[i](x - i * tau) for i, x in zip(index, t, strict=True)])


@pytest.mark.parametrize(("k", "tau"), [(1.0, 1.0), (2.5, 0.3)])
def test_step_is_the_exact_polynomial(k: float, tau: float) -> None:
    t = np.linspace(0, 12 * tau, 200)
    loop = transfer([k], [1, 0], tau).feedback()
    exact = exact_step(t, k, tau)
    assert loop.step(t)[0, 0] == pytest.approx(exact, abs=1e-11 * np.abs(exact).max())
    rate = np.r_[0, k * (1 - exact_step(t[t > tau] - tau, k, tau))]
    inside = np.abs(t / tau - np.round(t / tau)) > 1e-6
    late = t > tau
    assert loop.impulse(t)[0, 0][late & inside] == pytest.approx(rate[1:][inside[late]], abs=1e-9)


def test_step_is_that_of_solve_dde() -> None:
    rng = np.random.default_rng(4)
    A, A1, A2 = rng.normal(size=(3, 3, 3))
    A -= 2 * np.eye(3)
    system = fc.DelayLTI.retarded(A, (A1, 0.37), (A2, 1.13), B=[1, 0, 2], C=[[0, 1, 1]])
    b = np.array([1.0, 0, 2])
    t = np.linspace(0.1, 6, 30)
    fun = lambda t, y, Z: A @ y + A1 @ Z[:, 0] + A2 @ Z[:, 1] + b  # noqa: E731
    how = {"t_eval": t, "rtol": 1e-10, "atol": 1e-12}
    solved = fc.solve_dde(fun, (0, 6), np.zeros(3), [0.37, 1.13], **how)
    assert system.step(t)[0, 0] == pytest.approx(solved.y[1] + solved.y[2], rel=1e-7, abs=1e-9)


def test_kinks_that_are_not_followed_leave_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loops through several delays that feed through: as with every kink up to the eighth."""
    rng = np.random.default_rng(7)
    n, k = 3, 4
    D = np.zeros((k + 1, k + 1))
    D[1:, 1:] = 0.4 * np.tril(rng.uniform(-1, 1, (k, k)), -1)
    A, B, C = (rng.normal(size=size) for size in ((n, n), (n, k + 1), (k + 1, n)))
    system = fc.DelayLTI(A - 2 * np.eye(n), B, C, D, delays=[0.01, 0.13, 0.31, 0.47])
    t = np.linspace(0, 1, 57)
    few = respond._orders(system._block, 0.01)
    assert 2 < few < respond.ORDERS - 1
    some, slopes = system.step(t), system.impulse(t)
    monkeypatch.setattr(respond, "_orders", lambda block, longest: respond.ORDERS)
    assert some == pytest.approx(system.step(t), abs=1e-12 * np.abs(some).max())
    assert slopes == pytest.approx(system.impulse(t), abs=1e-12 * np.abs(slopes).max())


def test_without_delays_it_is_python_control() -> None:
    import control

    system = transfer([1, 2], [1, 0.4, 5, 1])
    t = np.linspace(0, 20, 101)
    steps, impulses = (
        response(system.to_control(), t).outputs
        for response in (control.step_response, control.impulse_response)
    )
    assert system.step(t)[0, 0] == pytest.approx(steps, abs=1e-9)
    assert system.impulse(t)[0, 0] == pytest.approx(impulses, abs=1e-9)


def test_jumps_pass_through_channels_for_ever() -> None:
    # y = u + 0.5 y(t - 1): a neutral system of its own, with steps at every integer
    D = np.array([[1, 0.5], [1, 0.5]])
    echo = fc.DelayLTI(np.zeros((0, 0)), np.zeros((0, 2)), np.zeros((2, 0)), D, delays=[1.0])
    t = np.array([0, 0.5, 1, 1.5, 2.5, 7.25])
    assert echo.step(t)[0, 0] == pytest.approx(2 - 0.5 ** np.floor(t), abs=1e-13)


def test_order_and_shape_of_times() -> None:
    both = transfer([1], [1, 1], 0.5).append(transfer([1], [1, 2], 0.2))
    t = np.array([3.0, 0.0, 1.0])
    response = both.step(t)
    assert response.shape == (2, 2, 3)
    assert response[0, 0] == pytest.approx([1 - np.exp(-2.5), 0, 1 - np.exp(-0.5)], abs=1e-12)
    assert np.abs(response[0, 1]).max() == 0
    assert both.step([]).shape == (2, 2, 0)
    with pytest.raises(Unsupported, match="pieces"):
        transfer([1], [1], 1e-6).feedback(0.5).step([100.0])


def test_pade_converges_to_the_exact_margins() -> None:
    import control

    loop = transfer([1.0], [1, 1.5, 0.2], 0.8)
    exact = loop.margins()
    gains = [control.margin(loop.to_control(pade=n))[0] for n in (1, 2, 3, 5)]
    errors = [abs(gain / exact.gain - 1) for gain in gains]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < 1e-7
    s = 1j * np.geomspace(0.1, 5, 20)
    assert loop.to_control(pade=8)(s) == pytest.approx(loop(s)[0, 0], rel=1e-6)


def test_frequency_response_data() -> None:
    loop = transfer([1], [1, 1], 0.5).append(transfer([1], [1, 2], 0.2))
    omega = np.geomspace(0.1, 10, 30)
    frd = loop.to_control(omega=omega)
    assert frd.frdata == pytest.approx(loop.frequency_response(omega))
    assert frd.input_labels == list(loop.inputs)
