"""Whose data wait in a queue: a FIFO serves in the order of arrival, so that rates and delays
tell.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fluidcc.base.arguments import explained
from fluidcc.base.errors import InvalidInput, Unsupported
from fluidcc.metrics.averages import variable
from fluidcc.network.network import Network, require_network

__all__ = ["queue_shares"]


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
    oldest = {
        name: np.interp(t, t + q, t, left=np.nan) for name, q in queue.items()
    }  # when arrived what leaves now
    for k, (name, flow) in enumerate(net.flows.items()):
        x = rate.sel(flow=name).values
        sent = np.append(0.0, np.cumsum(0.5 * (x[1:] + x[:-1]) * np.diff(t)))
        there = t + flow.access_delay  # when what was sent at t arrives at the next queue
        for link in flow.route:
            since = np.interp(oldest[link], there, sent, left=np.nan)
            shares[:, list(queue).index(link), k] = np.interp(t, there, sent, left=np.nan) - since
            there = there + np.interp(there, t, queue[link]) + net.links[link].delay
    coords = {"time": rate.time, "link": delay.link, "flow": rate.flow}
    about = {"units": "bit", "long_name": "backlog of each flow"}
    return xr.DataArray(shares, coords, ("time", "link", "flow"), "queue_shares", about)
