"""H-TCP's increase stands in a law and in closed forms, which may not import one another: they
are the same.
"""

from __future__ import annotations

import pytest
from sympy import simplify

import fluidcc as fc
from fluidcc.formulas import delay_aimd, response
from fluidcc.sources._windows import acked
from fluidcc.symbols import plain, unfold


def test_the_law_grows_by_the_increase_of_equation_2() -> None:
    law = fc.PlainDelayAIMD
    named = {plain(s): s for s in (*law.flow, *law.params)}
    per_ack = unfold(
        law.flow[named["w"]] / acked
    )  # (1): alpha over the window at each acknowledgement
    growth = (per_ack * named["w"]).subs({named["alpha"]: 1, named["slope"]: 10})
    form = delay_aimd.increase.form.subs(
        {s: named[plain(s)] for s in delay_aimd.increase.arguments}, simultaneous=True
    )
    assert simplify(growth - form) == 0


@pytest.mark.parametrize("epoch", [0.4, 1.0, 3.0, 12.0])
def test_the_response_function_is_the_sawtooth_of_the_same_increase(epoch: float) -> None:
    """Packets of an epoch: the window at its start and its growth, integrated over the epoch by
    quadrature.
    """
    from scipy.integrate import quad

    beta, rtt, late = 0.5, 0.1, 1.0
    growth = lambda t: 2 * (1 - beta) * delay_aimd.epoch_growth(t, rtt, 0.25, late)  # noqa: E731
    start = beta / (1 - beta) * growth(epoch)
    sent = quad(
        lambda t: (start + growth(max(t, 1e-12))) / rtt,
        0,
        epoch,
        points=[min(late, epoch)],
        epsrel=1e-12,
    )[0]
    assert 1 / response.htcp(epoch, rtt, beta, late).p == pytest.approx(sent, rel=1e-9)
