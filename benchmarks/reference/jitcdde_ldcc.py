"""P1 and P2 as a user of JiTCDDE would write them: the opponent of the speed table.

JiTCDDE steps with the Bogacki-Shampine pair of order 3(2), reads the past from cubic Hermite pieces
and has no events. Rates are in Mbit/s, so that one `atol` serves all states. P2's stamp theta is a
fifth state, ``theta' = 1/(1 + q'(theta))``.

What was tried, to give it its best time at an error near 1e-8:

* True branches (``Min(1, Max(z, 0) * 1e300)``) against JiTCDDE's smoothed `conditional` of widths
  1e-5 to 1e-8: the same errors and, within 10 %, the same times, as there are only two kinks; but a
  smoothed switch centred on q = 0 lets the empty queue sink below zero and ruins the solution, it
  must be centred above. Branches are the default.
* `pws_rtol`, by which steps longer than the delay are iterated: its default of 1e-5 costs P2 a
  factor of six in error and saves no time, below 1e-8 nothing changes. Steps kept below the delay
  (``max_step=0.05``) are twice as many and take the same time.
* The 601 samples by `integrate` one after the other, as its manual has it, against one `integrate`
  to the end and the Hermite pieces sampled at once (`keep`): the latter is slower at errors near
  1e-8, because what is not forgotten is searched. About half of the time is the Python side of 600
  calls.
* ``first_step`` from 1e-5 to 0.1, and the width of `adjust_diff`, which puts the right slope at t =
  0: no effect.
"""

from __future__ import annotations

import warnings
from contextlib import chdir
from dataclasses import dataclass
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import CubicHermiteSpline

__all__ = ["Opponent", "Setting"]

Array = NDArray[np.float64]
W, BETA, T, ETA, CAPACITY, DELAY = 0.02, 0.1, 0.1, 0.4, 3.0, 0.025  # Mbit/s and s
RATES = (0.1, 0.2, 0.3)


@dataclass(frozen=True)
class Setting:
    """Control parameters of a run; `pws` are for steps longer than the delay."""

    rtol: float
    atol: float
    pws_rtol: float = 1e-8
    max_step: float = 10.0


class Opponent:
    """P1 (``fifo=False``) or P2, compiled once; `run` may be called again and again.

    Parameters
    ----------
    fifo : bool
        Whether the feedback lag follows the queue (P2) or stays at 50 ms (P1).
    width : float, optional
        Width of JiTCDDE's smoothed `conditional` [s of delay]; None takes true branches, which cost
        the step control a few rejections at each kink.
    """

    def __init__(self, *, fifo: bool, width: float | None = None) -> None:
        from jitcdde import jitcdde, t, y
        from jitcxde_common import conditional
        from symengine import Max, Min

        def step(z: Any, offset: float = 0.0) -> Any:
            """1 where z > 0, else 0."""
            if width is None:
                return Min(1, Max(z, 0) * 1e300)
            return conditional(z, offset * width, 0, 1, width)

        def slope(at: Any) -> Any:
            """q' at time `at`: (y - c)/c while there is a queue or y > c."""
            excess = (y(0, at) + y(1, at) + y(2, at)) / CAPACITY - 1
            queued = step(y(3, at), 20)
            return excess * (queued + (1 - queued) * step(excess))

        theta = y(4) if fifo else t - 2 * DELAY
        e = DELAY + y(3, theta)
        rtt = e + DELAY
        v = BETA * (e - T) * step(e - T) / rtt
        edot = slope(theta)
        f = [ETA / rtt * (W - y(r) * (v + edot)) for r in range(3)] + [slope(t)]
        start = [*RATES, 0.0]
        if fifo:
            f.append(1 / (1 + edot))
            start.append(-2 * DELAY)
        self.start = start
        self.dde = jitcdde(f, n=len(f), max_delay=0.3, verbose=False)
        # setuptools reads the pyproject.toml of the working directory and takes it for the module
        # to be built
        with TemporaryDirectory() as folder, chdir(folder):
            self.dde.compile_C(simplify=False, do_cse=True)

    def run(self, setting: Setting, samples: Array, *, keep: bool = False) -> tuple[Array, float]:
        """Samples, shape (4, len(samples)) in bit/s and s, and the seconds taken.

        The clock starts where that of `fluidcc.simulate` does, with the numbers of t = 0: to make a
        past of them, and to have the right slope after it, is part of a solve (some 25 of 2000 us).
        With `keep`, the whole run is made first and its Hermite pieces are sampled at once
        afterwards.
        """
        # Steps may overshoot the next sample: it is read from the last piece, as intended.
        warnings.filterwarnings(
            "ignore", message="The target time is smaller than the current time"
        )
        dde = self.dde
        dde.purge_past()
        dde.set_integration_parameters(
            rtol=setting.rtol,
            atol=setting.atol,
            first_step=1e-3,
            max_step=setting.max_step,
            pws_rtol=setting.pws_rtol,
            pws_atol=setting.atol,
        )
        begin = perf_counter()
        dde.constant_past(self.start)
        dde.adjust_diff(shift_ratio=1e-9)
        if keep:
            dde.max_delay = 2 * samples[-1]  # forget nothing
            dde.integrate(samples[-1])
            anchors = dde.get_state()
            knots, states, slopes = (np.array([anchor[i] for anchor in anchors]) for i in range(3))
            out = CubicHermiteSpline(knots, states, slopes)(samples[1:])
        else:
            out = np.array([dde.integrate(time) for time in samples[1:]])
        seconds = perf_counter() - begin
        states = np.vstack([self.start, out])[:, :4].T
        return states * np.array([[1e6], [1e6], [1e6], [1.0]]), seconds
