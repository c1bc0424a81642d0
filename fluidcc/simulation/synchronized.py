"""The interval model of binary feedback: every flow a step up in each interval, a step down where the link was over."""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.base.arguments import choice, explained, flag, number, whole
from fluidcc.base.errors import Unsupported
from fluidcc.network.patterns import quantity
from fluidcc.simulation.interval_model import IntervalModel
from fluidcc.simulation.interval_results import Orbit, Synchronized

__all__ = ["Orbit", "Synchronized", "synchronized"]


@explained
def synchronized(
    k: Any,
    l: Any,
    lam: Any,
    sigma: Any,
    capacity: Any,
    *,
    n: Any = 1,
    initial: Any = None,
    intervals: int = 0,
    hears: str = "all",
    delay: int = 0,
    missed: float = 0.0,
    floor: Any = 0.0,
    seed: int = 0,
    exact: bool = False,
    keep: bool = True,
) -> Synchronized:
    """Run binomial controls (3) with binary feedback in discrete intervals, as Section V-B of their paper does.

    In each interval the flows send their rates; what exceeds the capacity is lost. Then each flow that hears of a loss
    goes down by sigma x**l, and each other one goes up by lam x**-k.

    Parameters
    ----------
    k, l, lam, sigma : float or array_like, shape (flows,)
        Powers and constants of each class of flows. `lam` and `sigma` are in the powers of the unit of the capacity
        that (3) asks for.
    capacity : float or str
        Of the link [bit/s, or packets a round trip].
    n : int or array_like of int
        Flows of each class. Those of a class have one rate between them.
    initial : float or array_like, optional
        First rates; by default equal shares of the capacity.
    intervals : int
        How many to run; the orbit needs none. Times the classes, at most 2^28 are kept (2 GiB), 10^10 run without
        keeping them, and 200,000 in rational arithmetic.
    hears : {"all", "one"}
        Who hears of an overload: all flows, or one, drawn with probabilities as the rates (proportional loss).
    delay : int
        Intervals by which feedback is late; 0 is the paper's immediate one.
    missed : float
        Probability that a flow misses its feedback.
    floor : float
        Lowest rate; at the default 0 a rate that falls to zero or below is an error.
    seed : int
        Of what is drawn.
    exact : bool
        In rational arithmetic, with floats taken as the binary fractions that they are. Powers must be integers.
    keep : bool
        Keep the rates of every interval; without, long runs of many flows take no memory.

    Returns
    -------
    Synchronized
        With `rates`, sums and `orbit`.

    Raises
    ------
    InvalidInput
        If an argument is none that the model can take.
    NegativeRate
        If a rate falls to zero or below.

    Examples
    --------
    >>> import fluidcc as fc
    >>> one = fc.synchronized(0, 1, "1/10", "1/2", 1, exact=True).orbit
    >>> one.period, one.loss, one.efficiency
    (6, Fraction(0, 1), Fraction(3, 4))

    Notes
    -----
    D. Loguinov and H. Radha, "End-to-end rate-based congestion control: convergence properties and scalability
    analysis", IEEE/ACM Transactions on Networking 11 (2003) 564-577, equations (2), (3), Section V-B.
    """
    if not flag(exact, "exact"):
        capacity = quantity(capacity, "bit/s", "the capacity", positive=True)
    choice(hears, "hears", ("all", "one"))
    intervals, delay, seed = whole(intervals, "intervals"), whole(delay, "delay", most=100_000), whole(seed, "seed")
    missed = number(missed, "missed", "a probability of at least 0 and below 1", least=0.0, below=1.0)
    flag(keep, "keep")
    if exact and (hears != "all" or delay or missed or np.any(np.asarray(floor, dtype=float) > 0)):
        raise Unsupported("exact arithmetic is for immediate feedback that all flows hear, without a floor")
    from fluidcc.numerics.interval_input import columns_of

    columns = columns_of(k, l, lam, sigma, n, initial, floor, capacity, exact)
    return IntervalModel(columns, capacity, hears, delay, missed, seed, exact).run(intervals, keep)
