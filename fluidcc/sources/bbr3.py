"""BBR, version 3 (draft-ietf-ccwg-bbr): it heeds losses, and probes for more every two or three
seconds.

As version 1 (`fluidcc.sources.bbr1`) it sends at (1 - margin) gain B, and no more than w is in
flight. B is the largest sample of this cycle of probes and of the last, R_min the least round trip
since the last pause and between the two before. Losses bound both: in the long term what may be in
flight is H, and from a loss to the next probe it is L and the bandwidth b. Each phase has its gain:

- startup, 2.77, until B has not grown by 1.25 for three round trips, or too much is lost;
- drain, 0.5, until no more than B R_min is in flight, or for three round trips;
- down, 0.90, until no more than B R_min and (1 - headroom) H is in flight;
- cruise, 1, with (1 - headroom) H in flight at most, until `wait` or, to live with Reno, `most`
  round trips or as many as packets fit into the path are over since it went down;
- refill, 1, for a round trip, without L and b;
- up, 1.25, until samples have not grown for three round trips, too much is lost, or after a probe
  with such a loss H is in flight. While H binds it grows by 1, 2, 4, ... packets a round trip;
- at five seconds without a smaller round trip half of B R_min may be in flight: `empty` until it
  is, `least` for 0.2 s and a round trip. Then it cruises.

Too much is 2 % of a round trip, and a packet at least: H is then what was in flight, and no less
than beta of what it means to be. Of other losses outside probes L and b fall to what was delivered
in the round trip, and no further than to beta.

Its round trips are ticks, by the round trip that is heard: there it takes samples, and all phases
that do not end by what is in flight or lost. `wait` is 2 to 3 s by chance in the draft, and the
same for all flows here: give each its own, or they probe together. Left out are acknowledgements
that come in bursts, what is undone after spurious losses, idle sources, and that a packet sent
beyond H and not lost raises it. It is deaf to marks, as the draft. Of losses at random a round trip
has one where their sum has come to a packet.

Two flows with `wait` of 2.2 and 2.7 s over half a bandwidth-delay product have 48 and 50 % of
the link 50 s after the second came, and 56 and 42 % at worst later. Beside one CUBIC of the same
round trip, on 100 Mbit/s and 40 ms, it gets some 0.73, 0.87 and 0.52 of what is sent over buffers
of 0.5, 1 and 4 bandwidth-delay products.

The file is longer than those of other laws: of its 36 states and parameters each has a line.
"""

from __future__ import annotations

from typing import Any

from sympy import Heaviside, Max, Min, Piecewise, Rational, Symbol, log, prod

from fluidcc.laws import Jump, Tick
from fluidcc.sources.bbr1 import NEARLY, T_n, by_phase, few, high, hold, margin, n, phase
from fluidcc.sources.windows import F, acked, w, window
from fluidcc.symbols import RTT, Let, loss, nonnegative, positive

__all__ = ["BBRv3"]

T = Symbol("T", real=True)
k, l, m, V, B, B_n, D, b, H, G, L, X, R_min, R_n, age, probing = nonnegative(
    "k l m V B B_n D b H G L X R_min R_n age probing"
)
drain, up, down, cap, cap_up, least = positive("drain up down cap cap_up least")
every, wait, most, thresh, beta, headroom = positive("every wait most thresh beta headroom")

STARTUP, DRAIN, DOWN, CRUISE, REFILL, UP, EMPTY, LEAST = range(8)
ENDLESS = 1e9  # times anything: bounds that are not there
_HALF, _NEAR = Rational(1, 2), Rational(19, 20)


def _if(name: str, *tests: Any) -> Any:
    """1 where all of these are positive or 0, else 0."""
    return Let(rf"\mathrm{{{name}}}", prod(Heaviside(f, 1) for f in tests))


def _in(name: str, first: int, last: int) -> Any:
    """1 in these phases."""
    return _if(name, phase - first + _HALF, last + _HALF - phase)


_starts, _drains = _in("starts", STARTUP, STARTUP), _in("drains", DRAIN, DRAIN)
_falls, _calm = _in("falls", DOWN, DOWN), _in("calm", DOWN, CRUISE)
_refills, _rises = _in("refills", REFILL, REFILL), _in("rises", UP, UP)
_empties, _rests = _in("empties", EMPTY, EMPTY), _in("rests", LEAST, LEAST)
_wide = Let(r"\mathrm{wide}", _drains + _falls + _refills + _rises)  # all of H may be in flight
_heeds = Let(r"\mathrm{heeds}", _drains + _calm + _empties + _rests)  # single losses

_fits = Let(r"\mathrm{BDP}", Min(B, b) * R_min)  # packets that fit into the path
_path = Let(r"\mathrm{BDP}_{\max}", B * R_min)  # and without losses
_free = Let("H'", (1 - headroom) * H)
# In startup acknowledgements double in a round trip: of their rate now, that is the mean over one.
_doubling = acked / (2 * log(2.0))
_room = (cap * Max(B, acked) * R_min - w) / few  # in startup
_grown = Min(G, Max(_room, 1 - _starts)) * acked

# At each round trip: what is known after it,
_sample = Let("D'", n / T_n)
_best = Let("B'", Max(B_n, _sample))
_binds = Let(r"\mathrm{binds}", _rises * _if("used", F / w - _NEAR, w - NEARLY * H))  # H does
_grows = Let(
    r"\mathrm{grows}",
    _starts * _if("more", _sample - 1.25 * D) + _binds + _rises * _if("more", _sample - 1.25 * D),
)
_same = Let(r"\mathrm{same}", (_starts + _rises) * (1 - Min(_grows, 1)))
_ages = Let(r"\mathrm{ages}", _calm * _if("one", k - _HALF, 3 * _HALF - k))
_lost = Let(r"\mathrm{lost}", _heeds * _if("any", l - 1))
_measured = {
    n: 0, T_n: 0, T: T + T_n,
    l: Piecewise((0, l >= 1), (l, True)),
    k: Piecewise((0, _grows > 0), (k + 1, True)),
    D: Piecewise((D, _same > 0), (_sample, True)),
    B: Max(Piecewise((B_n, _ages > 0), (B, True)), _sample),
    B_n: Piecewise((0, _ages > 0), (_best, True)),
    b: Piecewise((Max(_sample, beta * Min(b, B)), _lost > 0), (b, True)),
    L: Piecewise((Max(n, beta * Min(L, w)), _lost > 0), (L, True)),
    R_min: Min(R_min, RTT),
    R_n: Min(R_n, RTT),
    age: Piecewise((0, NEARLY * R_n > RTT), (age, True)),
}  # fmt: skip
# which phases end, and what comes then,
_busy = Let(r"\mathrm{busy}", _drains + _calm + _refills + _rises)
_pause = Let(r"\mathrm{pause}", _busy * _if("late", age - every))
_rested = Let(r"\mathrm{rested}", _rests * _if("held", T - hold, T - RTT))
_full = Let(r"\mathrm{full}", _starts * _if("three", k - 5 * _HALF))
_plateau = Let(r"\mathrm{plateau}", _rises * _if("three", k - 5 * _HALF))
_cautious = Let(r"\mathrm{cautious}", _rises * _if("risky", m - _HALF, F / H - _NEAR))
_down = Let(r"\mathrm{sinks}", _drains * _if("four", k - 7 * _HALF) + _plateau + _cautious)
_again = Let(r"\mathrm{again}", _if("stopped", m - 3 * _HALF))  # the last probe stopped short
_rounds = Let(
    r"\mathrm{rounds}",
    _if("many", k - most)
    + _if("Reno", k - _fits)
    + _if("window", k - w)
    + _again * _if("two", k - 3 * _HALF),
)
_due = Let(r"\mathrm{due}", _calm * (_if("waited", T - wait) + _rounds))
_ends = Let(r"\mathrm{ends}", _pause + _rested + _full + _due + _refills + _down)
_forgets = Let(r"\mathrm{forgets}", _due + _rested)
_over = Let(r"\mathrm{over}", _pause + _full + _calm * _if("two", k - 3 * _HALF))
_stepped = {
    phase: Piecewise((EMPTY, _pause > 0), (DRAIN, _full > 0), (DOWN, _down > 0), (REFILL, _due > 0),
                     (UP, _refills > 0), (CRUISE, _rested > 0), (phase, True)),
    T: Piecewise((0, _ends > 0), (T, True)),
    k: Piecewise((0, _ends > 0), (k, True)),
    b: Piecewise((ENDLESS * B, _forgets > 0), (b, True)),
    L: Piecewise((ENDLESS * w, _forgets > 0), (L, True)),
    m: Piecewise((2, _cautious > 0), (0, _plateau + _due * _again > 0), (m, True)),
    probing: Piecewise((1, _refills > 0), (0, _over > 0), (probing, True)),
    R_min: Piecewise((R_n, _pause > 0), (R_min, True)),
    R_n: Piecewise((RTT, _pause > 0), (R_n, True)),
    age: Piecewise((0, _pause + _rested > 0), (age, True)),
}  # fmt: skip
# and what it sends and holds in flight in its phase.
_part = Piecewise((cap_up, _rises > 0), (least, _empties + _rests > 0), (cap, True))
_holds = Let("I", Min(Let("g_w", _part) * _fits, L))
_gain = Let("g", by_phase(high, drain, down, 1, 1, up, 1, 1))
_idle = Let("I'", Max(Min(_holds, _free), few))
_sends = {
    V: _gain * Min(B, b),
    w: Piecewise((w, _starts > 0), (Min(_holds, H), _wide > 0), (_idle, True)),
    X: Piecewise((_fits, _drains > 0), (Min(_path, _free), _falls > 0),
                 (1.001 * _idle, _empties > 0), (0, True)),
    G: Piecewise((1, _starts > 0), (Min(Max(2 * G, 1 / w), 1), _binds > 0), (0, True)),
}  # fmt: skip
_held = Let(
    "F'", Max((1 - loss) * acked * RTT, beta * Min(_fits, w))
)  # in flight when what is lost was sent

BBRv3 = window(
    "BBRv3",
    _grown,
    clock="paced",
    rate=(1 - margin) * Max(V, few / RTT, _starts * high * _doubling),
    flow={
        n: (1 - loss) * acked, T_n: 1, l: loss * acked, H: _grown, age: 1,
        **dict.fromkeys((phase, T, k, m, V, B, B_n, D, b, G, L, X, R_min, R_n, probing), 0),
    },
    initial={
        **dict.fromkeys((T, k, n, T_n, l, m, V, B, B_n, D, X, age), 0),
        **dict.fromkeys((b, H, L), ENDLESS), phase: STARTUP, G: 1, R_min: 1e6, R_n: 1e6, probing: 1,
    },
    ticks=[Tick(RTT, _measured), Tick(RTT, _stepped), Tick(RTT, _sends)],
    jumps=[
        Jump(  # so little is in flight that drain, down or `empty` ends
            when=X - F,
            reset={phase: phase + 1, X: 0, T: Piecewise((T, _falls > 0), (-T_n, True)),
                   k: Piecewise((k, _falls > 0), (0, True)),
                   V: Min(B, b) * Piecewise((down, _drains > 0), (1, True))},
        ),
        Jump(  # too much of a probe is lost
            when=Min(l - 1, l - thresh * (n + l), probing - _HALF),
            reset={phase: Piecewise((DRAIN, _starts > 0), (DOWN, True)), T: -T_n, k: 0, H: _held,
                   V: Min(B, b) * Piecewise((drain, _starts > 0), (down, True)),
                   G: 0, m: 1, l: 0, probing: 0},
        ),
    ],
    params={
        high: 2.77, drain: 0.5, up: 1.25, down: 0.9, cap: 2, cap_up: 2.25, least: 0.5, few: 4,
        margin: 0.01, every: 5, hold: 0.2, wait: 2.5, most: 63, thresh: 0.02, beta: 0.7,
        headroom: 0.15,
    },
    units={
        **dict.fromkeys((n, l, k, H, L, X, few, most), "packet"),
        **dict.fromkeys((V, B, B_n, D, b), "packet/s"),
        **dict.fromkeys((T, T_n, R_min, R_n, age, every, hold, wait), "s"),
        **dict.fromkeys((phase, m, G, probing, high, drain, up, down, cap, cap_up, least), "1"),
        **dict.fromkeys((margin, thresh, beta, headroom), "1"),
    },
    limits={margin: 1, beta: 1, headroom: 1, thresh: 1},
    least=few,
    about="BBR version 3: as version 1, with bounds of what may be in flight learnt from losses.",
    meaning={
        phase: "0 startup, 1 drain, 2 down, 3 cruise, 4 refill, 5 up, 6 to the least, 7 at it",
        T: "time in this phase at the last round trip, in cruise since it went down",
        k: "round trips in drain, since it went down, or in startup and up without growth",
        n: "packets delivered since the last round trip",
        T_n: "time since the last round trip",
        l: "packets lost in this round trip, or parts of one before",
        B_n: "largest sample of this cycle",
        B: "bandwidth: largest sample of this cycle and of the last",
        D: "sample from which growth is measured",
        b: "bandwidth that losses leave until the next probe",
        H: "what may be in flight, in the long term",
        G: "growth of that, and of the window, by an acknowledgement",
        X: "at which what is in flight ends drain, down or `empty`",
        V: "its rate without the margin, from startup on",
        probing: "1 while losses are those of a probe, else 0",
        L: "what losses let be in flight until the next probe",
        R_n: "least round trip since the last pause",
        R_min: "least round trip since the last pause but one",
        age: "time since a smaller round trip, or the last pause",
        m: "the last probe: 0 went well, 1 lost too much, 2 stopped short of what did",
        high: "gain in startup",
        drain: "gain in drain",
        up: "gain of the phase that looks for more",
        down: "gain of the phase that gives it back",
        cap: "largest part of the path that may be in flight",
        cap_up: "the same while it looks for more",
        least: "the same in a pause",
        few: "packets that may always be in flight",
        margin: "part of the rate that is not used",
        every: "time between pauses",
        hold: "time with the least in flight, to see a smaller round trip",
        wait: "time from one probe to the next",
        most: "round trips from one probe to the next, at most",
        thresh: "loss that is too much",
        beta: "part that is kept at a loss, at least",
        headroom: "part of the long-term bound that is left free",
    },
    ref="draft-ietf-ccwg-bbr-06",
)  # fmt: skip
