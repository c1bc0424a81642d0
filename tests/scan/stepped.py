"""Networks by Euler's method with one fixed step: an oracle for `simulate`, with none of its code.

A flow is what it has sent by each step, a queue when what entered leaves, D(s) = s + backlog(s)/c:
first in, first out. All else is looked up in these: what arrives at the next link, what a source
hears, and when that left. States are cut off at their bounds. Laws are by hand, from their papers.
"""

from collections import namedtuple
from typing import Any

import numpy as np
from numba import njit

PACKET = 8000.0
CBR, LDCC, RENO, WINDOW, RATE, VEGAS, HTCP = range(7)
DROPTAIL, RED, PI, PAQM = range(4)
# The law, its parameters in the order in which they are read below, and its initial states.
FLOW_LAWS: dict[str, Any] = {
    "CBR": (CBR, (5e5,), ()),
    "LDCC": (LDCC, (20e3, 0.1, 0.1, 0.4), (1e5,)),  # w, beta, T, eta
    "StaticReno": (RENO, (1.0, 0.5), (1.0,)),
    "StaticAIMD": (WINDOW, (0.0, 1.0, 1.0, 0.5, 1.0), (1.0,)),  # k, l, alpha, beta, unit
    "StaticSQRT": (WINDOW, (0.5, 0.5, 1.0, 0.5, 1.0), (1.0,)),
    "RateAIMD": (RATE, (0.0, 1.0, 1.0, 0.5, 1e5, 0.1), (1e5,)),  # and R
    "RateBinomial": (RATE, (0.0, 1.0, 1.0, 0.5, 1e5, 0.1), (1e5,)),
    "Vegas": (VEGAS, (2.0, 0.05), (10.0, 0.0, 0.0, 0.0)),  # alpha, pace; w, delta, paced, F
    "HTCP": (HTCP, (), (10.0, 0.0, 0.0, 0.0, 1e6, 0.0, 0.0, 0.0)),  # and low, high, drain, answered
}
LINK_LAWS: dict[str, Any] = {
    "DropTail": (DROPTAIL, (), ()),
    "RED": (RED, (0.04, 0.12, 0.1, 1.0), (0.0,)),  # min_th, max_th, p_max, T
    "PI": (PI, (0.0682, 0.03615, 0.05), (0.0,)),  # a, b, q_ref
    "PAQM": (PAQM, (0.3, 0.5, 0.02, 0.04), (1.0, 0.0, 0.0)),  # K, a, dT, q_0
}

Link = namedtuple("Link", "law capacity delay buffer")
Flow = namedtuple("Flow", "law route access back start")


@njit(cache=True)
def _jump(law, p, z, wait, t, least, pi, rtt, change, heard):  # type: ignore[no-untyped-def]
    """What changes at once; the number of cuts."""
    cuts = 0
    if (law in (WINDOW, RATE, HTCP)) and pi > least and t >= wait[0]:
        cuts, wait[0] = 1, t + (p[5] if law == RATE else 1.5 * rtt if law == HTCP else rtt)
        if law == HTCP:
            z[0], z[1], z[6] = max(z[0] * min(max(z[4] / (rtt + z[5]), 0.5), 0.8), 1.0), 0.0, 1.0
        else:
            z[0] = max(z[0] - p[3] * p[4] * (z[0] / p[4]) ** p[1], p[4])
    if law == HTCP:
        if change > 0.0 and z[4] * (1 - 1e-12) > rtt and t >= wait[1]:
            z[4], wait[1] = rtt, t + rtt / 10000
        if heard > PACKET / (1000 * rtt) and z[7] == 0.0:
            z[4], z[5], z[7] = rtt, 0.0, 1.0
        if z[6] > 0.0 and z[0] > z[3]:
            z[6] = 0.0
    return cuts


@njit(cache=True)
def _slope(law, p, z, f, e, rtt, stretch, pi, change, heard):  # type: ignore[no-untyped-def]
    """Fill the derivatives in; the rate."""
    acked = heard / stretch / PACKET if stretch > 0.0 else 0.0
    if law == CBR:
        return p[0]
    if law == LDCC:
        f[0] = p[3] / rtt * (p[0] - z[0] * (p[1] * max(e - p[2], 0.0) / rtt + stretch - 1 + pi))
    elif law == RENO:
        f[0] = p[0] / rtt - p[1] * z[0] * heard * pi / PACKET
    elif law in (WINDOW, RATE):
        f[0] = p[2] * p[4] * (z[0] / p[4]) ** -p[0] / (rtt if law == WINDOW else p[5])
    else:
        if law == VEGAS:
            pace, f[0] = p[1], (1 - z[1] * z[0] / rtt / p[0]) / rtt
            f[1] = change if heard > PACKET / (1000 * rtt) else 0.0
            grown = max(f[0], (1 - z[0]) / (0.1 * rtt))
        else:
            pace, late, left = 0.5, max(z[1] - 1.0, 0.0), min(max(z[4] / (rtt + z[5]), 0.5), 0.8)
            grown = 2 * (1 - left) * (1 + 10 * late + 0.25 * late**2) * acked / z[0]
            f[0], f[1], f[5] = grown, 1.0, -change - 0.001
        f[2] = (acked - z[2]) / rtt
        clock = pace * z[2] + (1 - pace) * acked
        rate = max(clock + grown + (z[0] - z[3]) / (0.1 * rtt), 0.01 * z[0] / rtt)
        if law == HTCP and z[6] > 0.0:
            rate = 0.01 * z[2]
        f[3] = rate - acked
        return PACKET * rate
    return PACKET * z[0] / rtt if law in (RENO, WINDOW) else z[0]


@njit(cache=True)
def _router(law, q, u, h, k, c, before, after, y):  # type: ignore[no-untyped-def]
    """What goes unmarked; and the states a step on, by the queueing delays there, when `y` came."""
    kept = u[0] if law == PAQM else 1 - u[0] if law == PI else 1.0
    if law == RED:
        steep = min(max((u[0] - q[1]) / q[1], 0.0), 1.0)
        kept -= q[2] * min(max((u[0] - q[0]) / (q[1] - q[0]), 0.0), 1.0) + (1 - q[2]) * steep
        u[0] += h * (before - u[0]) / q[3]
    elif law == PI:
        u[0] = min(max(u[0] + q[0] * (after - before) + h * q[1] * (before - q[2]), 0.0), 1.0)
    elif law == PAQM:
        u[2] += y
        if (k + 1) % round(q[2] / h) == 0:
            u[1] = (1 - q[1]) * u[1] + q[1] * u[2] / q[2]
            more = q[0] * (q[3] - after) * c / q[2] if u[1] > c else 0.0
            u[0], u[2] = min(max((c + more) / max(u[1], c), 0.0), 1.0), 0.0
    return kept


@njit(cache=True)
def _entered(D, j, h, T):  # type: ignore[no-untyped-def]
    """When that entered which leaves at T, and in which step, from `j` on."""
    if T < 0.0:  # queues are empty
        return T, -1
    while D[j + 1] <= T:
        j += 1
    return h * (j + (T - D[j]) / (D[j + 1] - D[j])), j


@njit(cache=True)
def _by(S, h, T):  # type: ignore[no-untyped-def]
    j = int(T / h)
    return 0.0 if T <= 0.0 else S[j] + (T / h - j) * (S[j + 1] - S[j])


@njit(cache=True)
def _march(  # type: ignore
    h, least, steps, c, delay, buffer, routers, q, u, laws, hops, route, access, back, start, p, z
):
    links, flows, f = len(c), len(laws), np.zeros(8)
    D, keep = np.zeros((links, steps + 2)), np.ones((links, steps + 1))
    let_in, sent = np.zeros((links, flows, steps + 2)), np.zeros((flows, steps + 2))
    came, new, backlog = np.zeros((links, flows)), np.zeros(flows), np.zeros(links)
    heard_at, moved = np.zeros((flows, 8), np.int64), np.zeros((flows, 8), np.int64)
    wait, cuts = np.zeros((flows, 2)), np.zeros(flows, np.int64)
    for k in range(steps):
        t = k * h
        for i in range(flows):
            law, rate = laws[i], 0.0
            if t >= start[i] - 1e-9:
                T, kept, stretch = t - back[i], 1.0, 1.0  # back along the path to when that left
                for m in range(hops[i] - 1, -1, -1):
                    l = route[i, m]
                    T, j = _entered(D[l], heard_at[i, m], h, T - delay[l])
                    if j >= 0:
                        heard_at[i, m], kept = j, kept * keep[l, j]
                        stretch *= (D[l, j + 1] - D[l, j]) / h
                T -= access[i]
                e, j = t - back[i] - T, int(T / h)
                heard = (sent[i, j + 1] - sent[i, j]) / h if T > 0.0 else 0.0
                change = 1 - 1 / stretch if stretch > 0.0 else 0.0
                rtt, pi = e + back[i], 1 - kept
                cuts[i] += _jump(law, p[i], z[i], wait[i], t + 1e-9, least, pi, rtt, change, heard)
                rate = _slope(law, p[i], z[i], f, e, rtt, stretch, pi, change, heard)
                for n in range(8):
                    z[i, n], f[n] = max(z[i, n] + h * f[n], 0.0), 0.0
                if law in (RENO, VEGAS):
                    z[i, 0] = max(z[i, 0], 1.0)
            sent[i, k + 1 : k + 3] = sent[i, k] + h * rate
        for l in range(links):
            y = 0.0
            for i in range(flows):
                new[i] = 0.0
                for m in range(hops[i]):
                    if route[i, m] == l:
                        total = _by(sent[i], h, t + h - access[i])
                        if m > 0:
                            up = route[i, m - 1]
                            T, j = _entered(D[up], moved[i, m], h, t + h - delay[up])
                            moved[i, m], total = max(j, 0), _by(let_in[up, i], h, T)
                        new[i], came[l, i] = total - came[l, i], total
                        y += new[i]
            old = backlog[l]
            lost = max(old + y - c[l] * h - buffer[l], 0.0)
            backlog[l] = min(max(old + y - c[l] * h, 0.0), buffer[l])
            share = 1 - lost / y if lost > 1e-9 * y else 1.0
            before, after = old / c[l], backlog[l] / c[l]
            keep[l, k] = share * _router(routers[l], q[l], u[l], h, k, c[l], before, after, y)
            D[l, k + 1] = t + h + backlog[l] / c[l]
            for i in range(flows):
                let_in[l, i, k + 1] = let_in[l, i, k] + share * new[i]
    return sent[:, : steps + 1], cuts


def run(links: Any, flows: Any, until: float, step: float, least: float = 0.0) -> tuple[Any, Any]:
    """What each flow has sent by each step [bit], and its number of cuts by marks over `least`.

    A law is a name, or what stands for one in FLOW_LAWS.
    """

    def table(rows: Any) -> Any:
        return np.array([[*row, *[0.0] * (8 - len(row))] for row in rows])

    kinds, q, u = zip(*(LINK_LAWS[link.law] for link in links), strict=True)
    laws, p, z = zip(*(FLOW_LAWS.get(flow.law, flow.law) for flow in flows), strict=True)
    _, *of_links = map(np.array, zip(*links, strict=True))
    _, routes, *times = zip(*flows, strict=True)
    paths = (np.array([len(route) for route in routes]), table(routes).astype(int))
    of_flows = (np.array(laws), *paths, *map(np.array, times), table(p), table(z))
    n, routers = round(until / step), (np.array(kinds), table(q), table(u))
    return _march(step, least, n, *of_links, *routers, *of_flows)
