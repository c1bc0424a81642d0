"""Random traffic as piecewise-constant rates: on/off bursts with Pareto periods, Poisson counts an
interval.

Each generator returns the times of the changes and the rates from then on. What it returns up to a
time does not depend on how much longer it was asked to go on, so that a longer simulation repeats a
shorter one. More than 2,000,000 changes of one rate are refused.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.errors import InvalidInput

CHANGES = 2_000_000  # changes of a rate that are drawn, at most
_CHUNK = 64  # periods drawn at once


def on_off_pareto(
    rng: np.random.Generator,
    duration: float,
    peak: float,
    mean_on: float,
    mean_off: float,
    shape: float,
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Bursts at a peak rate and silences, both of Pareto-distributed length.

    It starts in a burst with probability mean_on/(mean_on + mean_off), and every period is drawn
    afresh. The first one is not what remains of one met at random, as stationarity would have it:
    with a <= 2 that has no mean, and such a run may well see no change at all.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    duration : float
        Length [s].
    peak : float
        Rate in a burst [bit/s].
    mean_on, mean_off : float
        Mean length of bursts and silences [s].
    shape : float
        Exponent a > 1 of P(period > t) = (t_min/t)^a, t_min = mean (a - 1)/a; infinite variance for
        a <= 2.

    Returns
    -------
    times, rates : ndarray (n,)
        Times [s], from 0, and the rate [bit/s] from each on.

    Examples
    --------
    >>> times, rates = on_off_pareto(np.random.default_rng(1), 10.0, 5e6, 0.1, 0.1, 1.25)
    >>> bool(times[0] == 0.0), sorted(set(rates.tolist()))
    (True, [0.0, 5000000.0])
    """
    on = bool(rng.random() < mean_on / (mean_on + mean_off))
    t_min = np.array([mean_on, mean_off] if on else [mean_off, mean_on]) * (shape - 1) / shape
    ends = [np.zeros(1)]
    while ends[-1][-1] < duration:
        if len(ends) * _CHUNK > CHANGES:
            raise _too_many(
                f"{CHANGES} periods of means {mean_on:g} and {mean_off:g} s", ends[-1][-1], duration
            )
        periods = t_min * (1 - rng.random((_CHUNK // 2, 2))) ** (-1 / shape)
        ends.append(ends[-1][-1] + np.cumsum(periods.ravel()))
    times = np.concatenate(ends)
    times = times[times < duration]
    rates = np.where((np.arange(times.size) % 2 == 0) == on, peak, 0.0)
    return times, rates


def poisson_counts(
    rng: np.random.Generator, duration: float, interval: float, mean_rate: float, packet: float
) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    """Poisson arrivals, counted: in each interval the rate is that of the packets that fell into
    it.

    Parameters
    ----------
    rng : numpy.random.Generator
        Source of randomness.
    duration, interval : float
        Total length and length of one interval [s].
    mean_rate : float
        Mean rate [bit/s].
    packet : float
        Packet size [bit].

    Returns
    -------
    times, rates : ndarray (n,)
        Starts of the intervals [s], from 0, and the rate [bit/s] in each.

    Examples
    --------
    >>> times, rates = poisson_counts(np.random.default_rng(1), 0.03, 0.01, 8e6, 8000)
    >>> times.tolist(), (rates * 0.01 / 8000 % 1).tolist()
    ([0.0, 0.01, 0.02], [0.0, 0.0, 0.0])
    """
    n = len(intervals(duration, interval))
    counts = rng.poisson(mean_rate * interval / packet, n)
    rates: NDArray[np.floating] = counts * (packet / interval)
    return intervals(duration, interval), rates


def intervals(duration: float, interval: float) -> NDArray[np.floating]:
    """Starts of the intervals [s].

    Raises
    ------
    InvalidInput
        If there are more than `CHANGES`.
    """
    n = max(math.ceil(duration / interval - 1e-9), 1)
    if n > CHANGES:
        raise _too_many(f"{CHANGES} intervals of {interval:g} s", CHANGES * interval, duration)
    return np.arange(n) * interval


def _too_many(what: str, reached: float, duration: float) -> InvalidInput:
    return InvalidInput(
        f"{what}, the most that are drawn, reach {reached:.3g} s of {duration:g}; make them "
        f"longer, or the run shorter"
    )
