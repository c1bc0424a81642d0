"""Systems of python-control and inputs of one's own, against python-control, SciPy and theory."""

from __future__ import annotations

from typing import Any

import control
import numpy as np
import pytest
from scipy import signal

import fluidcc as fc

transfer = fc.DelayLTI.transfer
OMEGA = np.array([0.03, 0.7, 11.0])


@pytest.mark.parametrize("system", [
    control.tf([1, 2], [1, 0.4, 5, 1]),
    control.tf([[[1], [2, 1]], [[0], [3]]], [[[1, 1], [1, 2, 4]], [[1], [1, 0.5]]]),
    control.ss([[-1, 2], [-2, -1]], [[0], [1]], [[1, 3]], [[0.5]], inputs=["force"]),
])  # fmt: skip
def test_systems_of_python_control_come_with_their_names(system: Any) -> None:
    block = fc.DelayLTI.from_control(system)
    assert block.frequency_response(OMEGA) == pytest.approx(
        np.reshape(control.frequency_response(system, OMEGA).frdata, (*block.D.shape, len(OMEGA)))
    )
    assert (list(block.inputs), list(block.outputs)) == (system.input_labels, system.output_labels)
    if block.n_inputs == 1:  # for more python-control asks for another package
        t = np.linspace(0, 6, 40)
        wanted = control.forced_response(system, t, np.sin(t)).outputs
        assert block.lsim(np.sin(t), t)[0] == pytest.approx(wanted, abs=1e-9)


def test_a_network_goes_to_python_control_and_its_blocks_join_ours() -> None:
    link = {"law": fc.PI, "capacity": "10 Mbit/s"}
    net = fc.dumbbell([fc.Reno], link, rtt="60 ms")
    loop = fc.linearize(net)  # its ports are "link.mark"
    data = loop.to_control(omega=OMEGA)
    assert np.reshape(data.frdata, -1) == pytest.approx(loop.frequency_response(OMEGA).ravel())
    queue, omega = loop.select("bottleneck.q"), 3.0
    wanted = loop(1j * omega)[0, 0] / (1j * omega) / 10e6
    for one in (queue(1j * omega)[0, 0], queue.to_control(pade=6)(1j * omega)):
        assert one == pytest.approx(wanted, rel=1e-9)
    plant = fc.linearize(net, "marks").select("bottleneck.q")  # its controller is not in it
    assert {z for z in plant.states if z.startswith("bottleneck")} == {"bottleneck.q"}
    mine = -plant * transfer([0.0682, 0.03615], [1, 0])  # a + b/s
    assert mine.margins().gain_above == pytest.approx(fc.stability(net).gain_margin, rel=1e-9)
    lead, lag = control.tf([1, 2], [1, 5]), transfer([1], [1, 1], 0.2)
    assert (lag * lead)(1j) == pytest.approx(lag(1j) * lead(1j))
    assert (lag - lead)(1j) == pytest.approx(lag(1j) - lead(1j))


@pytest.mark.parametrize(("system", "says"), [
    (control.frd([1, 2, 3], [1, 2, 3]), "frequency response data"),
    (control.tf([1], [1, 0.5], 0.1), "samples every 0.1 s"),
    ("1/(s + 1)", "control.StateSpace or control.TransferFunction"),
])  # fmt: skip
def test_what_is_no_continuous_system_is_refused(system: Any, says: str) -> None:
    with pytest.raises(fc.errors.InvalidInput, match=says):
        fc.DelayLTI.from_control(system)


def test_an_input_and_a_start_as_scipy() -> None:
    num, den = [1, 2], [1, 0.4, 5, 1]
    block = transfer(num, den)
    t = np.linspace(0, 8, 33)
    u = np.random.default_rng(0).normal(size=33)
    x0 = np.array([1.0, -2.0, 0.5])
    system = signal.StateSpace(block.A, block.B, block.C, block.D)
    _, wanted, _ = signal.lsim(system, u, t, x0)
    assert block.lsim(u, t, x0)[0] == pytest.approx(wanted, abs=1e-10)


def test_an_input_and_a_start_with_delays_in_the_loop() -> None:
    """x' = -x(t - 1) + u from x(0) = 2: exact polynomials up to t = 2, beyond as `solve_dde`."""
    block = fc.DelayLTI.retarded([[0]], ([[-1]], 1.0))
    t = np.array([5, 5.5, 6, 7, 8.5])  # begins at 5, in steps of any length
    u = np.interp(t, [5, 6, 8.5], [0, 1, -1])
    got = block.lsim(u, t, [2.0])[0]
    assert got[:3] == pytest.approx([2, 2 + 0.5**2 / 2, 2.5], abs=1e-13)
    fun = lambda t, y, Z: -Z[0] + np.interp(t, [5, 6, 7, 8.5], [*u[[0, 2, 3, 4]]])  # noqa: E731
    past = lambda t: [2.0 * (t >= 5)]  # noqa: E731
    how = {"t_eval": t, "rtol": 1e-11, "atol": 1e-12}
    solved = fc.solve_dde(fun, (5, 8.5), past, [1.0], **how)
    assert got == pytest.approx(solved.y[0], abs=1e-7)
    steps = transfer([1], [1, 1], 0.3).feedback()
    t = np.linspace(0, 9, 7)
    assert steps.lsim(np.ones(7), t)[0] == pytest.approx(steps.step(t)[0, 0], abs=1e-13)


@pytest.mark.parametrize(("u", "t", "x0", "says"), [
    ([1, 2], [0, 0], None, "that rise"), ([1, 2], [0, 1, 2], None, r"u has the shape \(1, 2\)"),
    ([1, 2], [0, 1], [1, 2], "x0 has the shape"),
])  # fmt: skip
def test_inputs_that_do_not_fit_are_refused(u: Any, t: Any, x0: Any, says: str) -> None:
    with pytest.raises(fc.errors.InvalidInput, match=says):
        transfer([1], [1, 1]).lsim(u, t, x0)


def test_a_quotient_names_feedback() -> None:
    """JuliaControl/ControlSystems.jl#762: C*P/(1 + C*P) as one writes it."""
    P, C = transfer([10], [10, 1], 5.0), transfer([1, 0.1], [10, 0])
    for above in (C * P, 1):
        with pytest.raises(fc.errors.Unsupported, match="feedback"):
            above / (1 + C * P)  # type: ignore[operator]
    assert (P / 4)(1j) == pytest.approx(P(1j) / 4)
    with pytest.raises(fc.errors.InvalidInput, match="divisor is 0"):
        P / 0


def test_a_boundary_of_a_block_is_its_margins() -> None:
    with pytest.raises(fc.errors.InvalidInput, match="margins"):
        fc.stability_boundary(transfer([1], [1, 1], 1.0), "gain")  # type: ignore[arg-type]
    ax = fc.plot.root_map(transfer([np.pi], [1, 0], 1.0).feedback(), count=2)
    assert np.sort(ax.lines[0].get_xdata()).max() > 0
