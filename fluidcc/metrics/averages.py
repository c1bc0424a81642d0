"""Averages over time and settling times, exact for the piecewise-linear curve through the samples;
and whose data wait in a queue.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.base.arguments import explained, number, numbers, shown
from fluidcc.base.errors import InvalidInput, UnknownName, Unsupported, warn
from fluidcc.base.units import to_si
from fluidcc.network.network import Network, require_network

Array = NDArray[np.float64]
MANY = 10  # samples of a rate from which on they tell its mean


def values_of(x: Any, what: str, finite: bool = False) -> Array:
    """Return the numbers alone."""
    if hasattr(x, "data_vars"):
        raise InvalidInput(f"{what} is a Dataset; give one of its variables, such as run.rate")
    return numbers(getattr(x, "values", x), what, "an array of numbers", finite=finite)


def reduced(
    x: Any, values: Any, dim: str, name: str | None = None, units: str | None = None
) -> Any:
    """Return `values`, which lack the axis `dim` of the DataArray `x`, with the other labels.

    If `x` is None they have none: a number, or an array.
    """
    if x is None:
        return values if np.ndim(values) else float(values)
    out = x.isel({dim: 0}, drop=True).reset_coords(drop=True).copy(data=values)
    out.name, own = name or x.name, {"units": units} if units else x.attrs
    out.attrs = {k: v for k, v in own.items() if k == "units"}
    return out


def axis_of(x: Any, dim: str) -> int:
    """Return the number of the axis of that name."""
    if not isinstance(dim, str) or dim not in x.dims:
        raise UnknownName(
            f"{x.name or 'the array'} has no dimension {shown(dim)}: it has "
            f"{', '.join(map(str, x.dims))}"
        )
    return int(x.get_axis_num(dim))


# --- averages over time and settling times --------------------------------------------------------


def _time_first(x: Any, time: Any) -> tuple[Array, Array, Any]:
    """Return (times, values with time as their first axis, the DataArray or None)."""
    values, source = np.atleast_1d(values_of(x, "x")), None
    if hasattr(x, "dims"):
        if time is not None:
            raise InvalidInput(f"time is {shown(time)}, and a DataArray has its own; leave it out")
        values, time, source = np.moveaxis(values, axis_of(x, "time"), 0), x["time"], x
    elif time is None:
        raise InvalidInput(
            "an array carries no times: give time=, one for each entry of its first axis"
        )
    t = values_of(time, "time")
    if t.ndim != 1 or len(t) != len(values):
        raise InvalidInput(
            f"there are {t.size} times for {len(values)} samples: give one time for each"
        )
    if len(t) < 2 or not np.all(np.diff(t) > 0):
        raise InvalidInput("the times must increase, and be two at least")
    return t, values, source


def _integral(t: Array, values: Array, at: Array) -> Array:
    """Return the integral of the piecewise-linear curve from its first time to each of `at`."""
    from scipy.interpolate import make_interp_spline

    lines = make_interp_spline(t, values, k=1, check_finite=False)
    return np.asarray(lines.antiderivative()(at))


def _span(t: Array, start: float | str | None, stop: float | str | None) -> tuple[float, float]:
    a = float(t[0]) if start is None else to_si(start, "s", "start")
    b = float(t[-1]) if stop is None else to_si(stop, "s", "stop")
    if not t[0] <= a < b <= t[-1]:
        raise InvalidInput(
            f"the span from {a:g} to {b:g} s is not within the samples, {t[0]:g} to {t[-1]:g} s"
        )
    return a, b


@explained
def mean(
    x: Any, start: float | str | None = None, stop: float | str | None = None, *, time: Any = None
) -> Any:
    """Return the mean over a span of time.

    Parameters
    ----------
    x : DataArray with "time", or array with time as its first axis
        Samples in any unit.
    start, stop : float or str, optional
        The span [s]; by default all there is.
    time : array, optional
        Times [s], for an array.

    Returns
    -------
    DataArray, or float or array
        In the unit of `x`.

    Warns
    -----
    FluidccWarning
        If `start` alone is given and `x` of a run still climbs or falls then: all of the last third
        of the span lies on one side of all of the first, and their means differ by a tenth. What
        has not settled has another mean later; with `stop` the span's own is meant.

    Examples
    --------
    >>> mean([0.0, 2.0, 2.0], 0.5, 2.0, time=[0.0, 1.0, 2.0])
    1.8333333333333333
    """
    t, values, source = _time_first(x, time)
    a, b = _span(t, start, stop)
    if source is not None and start is not None and stop is None:
        _warn_if_unsettled(source, t, values, a, b)
    ends = _integral(t, values, np.array([a, b]))
    return reduced(source, (ends[1] - ends[0]) / (b - a), "time")


def _warn_if_unsettled(source: Any, t: Array, values: Array, a: float, b: float) -> None:
    """Say so if one of the curves goes on climbing or falling over the span from a to b."""
    first = values[(t >= a) & (t <= a + (b - a) / 3)]
    last = values[(t >= b - (b - a) / 3) & (t <= b)]
    if min(len(first), len(last)) < MANY:
        return
    apart = (last.min(0) > first.max(0)) | (last.max(0) < first.min(0))  # no cycle does that
    early, late = first.mean(0), last.mean(0)
    far = apart & (np.abs(late - early) > 0.1 * np.maximum(np.abs(late), np.abs(early)))
    if not np.any(far):
        return
    where = tuple(np.argwhere(far)[0])
    dims = [str(d) for d in source.dims if d != "time"]
    of = ", ".join(str(source[d].values[k]) for d, k in zip(dims, where, strict=True))
    warn(
        f"the {source.name or 'curve'}{' of ' if of else ''}{of} has not settled: from {a:g} to "
        f"{b:g} s its mean goes from {early[where]:.3g} in the first third to {late[where]:.3g} in "
        "the last; simulate longer, or give stop= if the mean of this span is meant",
        stacklevel=4,
    )


@explained
def windowed_mean(x: Any, window: float | str, *, time: Any = None) -> Any:
    """Return the means over consecutive windows, as in plots of throughput per second.

    Parameters
    ----------
    x : DataArray with "time", or array with time as its first axis
        Samples in any unit.
    window : float or str
        Length of the windows [s]; an incomplete window at the end is dropped.
    time : array, optional
        Times [s], for an array.

    Returns
    -------
    DataArray, or tuple (times, array)
        In the unit of `x`, each mean at the end of its window.

    Warns
    -----
    FluidccWarning
        If the windows of a run's ``rate`` hold fewer than 10 samples: congestion windows send in
        bursts of a tenth of a round trip, which samples miss or hit.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.metrics.windowed_mean([0.0, 2.0, 2.0, 4.0, 4.0], 2.0, time=[0.0, 1.0, 2.0, 3.0, 4.0])
    (array([2., 4.]), array([1.5, 3.5]))
    """
    t, values, source = _time_first(x, time)
    window = to_si(window, "s", "window")
    count = math.floor((t[-1] - t[0]) / window * (1 + 1e-12)) if window > 0 else 0
    if count > 10_000_000:
        raise InvalidInput(
            f"a window of {window:g} s makes {count:.2g} windows of the samples; give a longer one"
        )
    if count < 1:
        raise InvalidInput(
            f"a window of {window:g} s does not fit into the {t[-1] - t[0]:g} s of samples: give "
            f"a shorter one, above 0"
        )
    samples = window * (len(t) - 1) / (t[-1] - t[0])
    if source is not None and source.name == "rate" and samples < MANY:
        warn(
            f"windows of {window:g} s hold {samples:.3g} samples of the rate: these miss or hit "
            "the bursts in which congestion windows send; give fluidcc.simulate more samples, or "
            "count what is sent by a state of the law",
            stacklevel=3,
        )
    edges = np.minimum(t[0] + window * np.arange(count + 1), t[-1])
    means = np.diff(_integral(t, values, edges), axis=0) / window
    if source is None:
        return edges[1:], means
    import xarray as xr

    rest = [d for d in source.dims if d != "time"]
    coords = {"time": edges[1:], **{d: source.coords[d] for d in rest if d in source.coords}}
    out = xr.DataArray(
        means, coords, ["time", *rest], source.name, {**source.attrs, "window": window}
    )
    return out.transpose(*source.dims)


@explained
def settling_time(
    x: Any,
    target: Any = None,
    *,
    tolerance: float = 0.05,
    time: Any = None,
    start: float | str = 0.0,
) -> Any:
    """Return time after which a signal stays within a band around its final value.

    Parameters
    ----------
    x : DataArray with "time", or array with time as its first axis
        Samples in any unit.
    target : float or array, optional
        The final value, in the unit of `x`, such as a rate of `fluidcc.equilibrium`; by default the
        last sample.
    tolerance : float
        Half the width of the band, relative to the target [1].
    time : array, optional
        Times [s], for an array.
    start : float or str
        From when on the time is counted [s].

    Returns
    -------
    DataArray, or float or array
        [s]; 0 if the signal never leaves the band after `start`, NaN if its last sample is outside.

    Examples
    --------
    >>> import numpy as np
    >>> import fluidcc as fc
    >>> t = np.linspace(0, 10, 100_001)
    >>> round(float(fc.metrics.settling_time(1 - np.exp(-t), 1.0, time=t)), 3)  # log 20
    2.996
    """
    t, values, source = _time_first(x, time)
    if (start := to_si(start, "s", "start")) > t[-1]:
        raise InvalidInput(
            f"start is {start:g} s, and the samples end at {t[-1]:g} s; give an earlier time"
        )
    tolerance = number(tolerance, "tolerance", "a positive number, such as 0.05", above=0.0)
    goal = values[-1] if target is None else values_of(target, "target", finite=True)
    if goal.ndim and goal.shape != values.shape[1:]:
        raise InvalidInput(
            f"target has shape {goal.shape}, the signals {values.shape[1:]}; give one target for "
            f"each"
        )
    band = tolerance * np.abs(goal)
    outside = np.abs(values - goal) > band
    last = len(t) - 1 - np.argmax(outside[::-1], axis=0)  # where it is outside for the last time
    after = np.minimum(last + 1, len(t) - 1)
    x0, x1 = (np.take_along_axis(values, k[None], axis=0)[0] for k in (last, after))
    edge = goal + np.copysign(band, x0 - goal)
    with np.errstate(all="ignore"):
        enters = t[last] + (t[after] - t[last]) * (x0 - edge) / (x0 - x1)
    settled = np.where(last < after, np.maximum(enters - start, 0.0), np.nan)
    settled = np.where(outside.any(axis=0), settled, 0.0)
    return reduced(source, settled, "time", "settling_time", "s")


# --- Utilisation of links and losses of flows over a span of a run -------------------------------


@explained
def utilisation(
    result: Any, start: float | str | None = None, stop: float | str | None = None
) -> Any:
    """Return the mean utilisation of each link: what it carried over what it could have carried.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`
        With ``utilisation(time, link)``.
    start, stop : float or str, optional
        The span [s]; by default all there is.

    Returns
    -------
    DataArray over "link"
        Between 0 and 1 [1].

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="1 Mbit/s", delay="10 ms")
    >>> run = fc.simulate(net.flow("a", fc.CBR(rate="750 kbit/s"), route=["l"]), until=5)
    >>> fc.metrics.utilisation(run, start=1).round(6).item()
    0.75
    """
    return mean(variable(result, "utilisation"), start, stop)


@explained
def loss(result: Any, start: float | str | None = None, stop: float | str | None = None) -> Any:
    """Return the share of what each flow sent that was lost, of the data of which it hears within
    a span.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`
        With ``rate``, ``rtt`` and ``loss`` over (time, flow).
    start, stop : float or str, optional
        The span [s]; by default all there is.

    Returns
    -------
    DataArray over "flow"
        [1]; NaN for a flow that sent nothing.

    Notes
    -----
    A source knows at a time what was lost of data sent a round trip before, by which it is weighed:
    a flow that has just cut its window still hears of what it sent before. Losses of a full buffer
    come in bursts of a round trip: take samples closer than that. By default all flows cut at these
    at the same time; of many too little is lost so (of eight 0.06 %, of packets 0.106 %); runs with
    ``losses="random"`` have 0.10 %.

    Examples
    --------
    >>> import fluidcc as fc
    >>> link = {"capacity": "1 Mbit/s", "buffer": "50 kbit"}
    >>> run = fc.simulate(fc.dumbbell([fc.CBR(rate="1.25 Mbit/s")], link, rtt="20 ms"), until=20)
    >>> fc.metrics.loss(run, start=5).round(6).item()  # a fifth of what arrives
    0.2
    """
    rates, ratio, trip = (variable(result, name) for name in ("rate", "loss", "rtt"))
    t, rate, source = _time_first(rates.fillna(0.0), None)
    ratio, trip = (_time_first(x.transpose(*rates.dims), None)[1] for x in (ratio, trip))
    a, b = _span(t, start, stop)
    share = np.full(rate.shape[1:], np.nan)
    for flow in np.ndindex(share.shape):
        one = (slice(None), *flow)
        share[flow] = heard(t, rate[one], trip[one], np.nan_to_num(ratio[one]), a, b)
    return reduced(source, share, "time", "loss_ratio", "1")


def heard(t: Array, rate: Array, trip: Array, ratio: Array, a: float, b: float) -> float:
    """Return the mean from a to b of a ratio that a flow hears, weighed by what it had sent a round
    trip before; NaN of nothing.
    """
    left = np.fmax.accumulate(np.fmax(t - trip, t[0]))  # what is heard of left then
    told = _integral(t, rate, left)
    part = np.diff(told) * (ratio[1:] + ratio[:-1]) / 2
    of, to = (np.diff(np.interp([a, b], t, z)) for z in (told, np.cumsum([0.0, *part])))
    return float(to[0] / of[0]) if of[0] > 0 else math.nan


def variable(result: Any, name: str) -> Any:
    """Return a variable of a result, by name."""
    if not hasattr(result, "data_vars") or name not in result.data_vars:
        raise InvalidInput(
            f"the result has no variable {name!r}: give the Dataset that fluidcc.simulate returns"
        )
    return result[name]


# --- Whose data wait in a queue: a FIFO serves in the order of arrival, so rates and delays tell --


@explained
def queue_shares(result: Any, net: Network) -> Any:
    """Return what each flow has in each queue: what it sent, and what arrived there after the data
    that leave just now.

    With q the queueing delay at a link, data that arrive at a time s leave at s + q(s). At a time t
    there are those in the queue that arrived since the s of which s + q(s) is t.

    Parameters
    ----------
    result : Dataset of `fluidcc.simulate`
        With ``rate(time, flow)`` and ``queueing_delay(time, link)``; the rate is integrated as a
        straight line between samples, so take as many as show its bursts.
    net : Network
        That was simulated.

    Returns
    -------
    DataArray (time, link, flow)
        Backlogs [bit]; their sum over flows is ``backlog``. Zero where a flow does not cross a
        link. NaN as long as something may wait that was sent before the first sample.

    Raises
    ------
    InvalidInput
        If the result is of another network.
    Unsupported
        If data were lost in the run: of what was lost nothing waits.

    Examples
    --------
    >>> import fluidcc as fc
    >>> net = fc.Network().link("l", fc.DropTail, capacity="100 Mbit/s", delay="20 ms")
    >>> for start in (0, 15):
    ...     net = net.flow(f"at {start} s", fc.FAST, route=["l"], start=start, packet=8000)
    >>> run = fc.simulate(net, 40, samples=4001, progress=False)
    >>> packets = fc.metrics.queue_shares(run, net)[-1, 0] / 8000
    >>> packets.round(1).values.tolist()  # alpha, and (5)
    [50.0, 80.9]
    """
    import xarray as xr

    require_network(net)
    rate, delay = variable(result, "rate"), variable(result, "queueing_delay")
    if list(rate.flow.values) != list(net.flows) or list(delay.link.values) != list(net.links):
        raise InvalidInput(
            "the result has other flows or links than the network; give those that belong together"
        )
    if "lost" in result and float(result["lost"].max()) > 0:
        raise Unsupported(
            "queue_shares: data were lost in this run, and what was lost waits in no queue"
        )
    t = rate.time.values
    queue = {name: delay.sel(link=name).values for name in net.links}
    shares = np.zeros((len(t), len(queue), len(net.flows)))
    # When arrived what leaves now.
    oldest = {name: np.interp(t, t + q, t, left=np.nan) for name, q in queue.items()}
    for k, (name, flow) in enumerate(net.flows.items()):
        x = rate.sel(flow=name).values
        sent = _integral(t, x, t)
        there = t + flow.access_delay  # when what was sent at t arrives at the next queue
        for link in flow.route:
            since = np.interp(oldest[link], there, sent, left=np.nan)
            shares[:, list(queue).index(link), k] = np.interp(t, there, sent, left=np.nan) - since
            there = there + np.interp(there, t, queue[link]) + net.links[link].delay
    coords = {"time": rate.time, "link": delay.link, "flow": rate.flow}
    about = {"units": "bit", "long_name": "backlog of each flow"}
    return xr.DataArray(shares, coords, ("time", "link", "flow"), "queue_shares", about)
