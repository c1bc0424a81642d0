r"""GCC (Google Congestion Control), simplified: it listens to how the delay changes, not to how
long it is.

The automaton of the IETF draft (draft-ietf-rmcat-gcc-02, Sections 5.4 and 5.5), with the delay
gradient itself in place of the filtered estimate. The gradient says over-use above `gamma`,
under-use below -`gamma`, else normal:

- over-use: to decrease, from any mode, A = alpha R, with R the rate received; again after a round
  trip if it lasts;
- normal: from decrease to hold, from hold to increase;
- under-use: from decrease and from increase to hold.

In increase A grows by the factor exp(g) a second, at most towards `cap` R. What is sent is the
smaller of A and the TCP-friendly rate at the smoothed loss ratio: the loss-based branch, as the
LDCC paper describes it. It is deaf to marks, as the draft, which counts what is lost: packets that
are marked have arrived.

- The LDCC paper has the rate decreased until the gradient is below a negative threshold; once the
  queue is empty that never happens, and the rate would stay where it is. In the draft, and here, no
  over-use ends the decrease.
- The thresholds and gains of the LDCC paper's comparison are not printed. `alpha`, `cap` and 8 % a
  second are the draft's; `gamma` is chosen, below 1 - alpha so that a draining queue is seen as
  such. `AdaptiveGCC` has the draft's threshold, which follows the gradient: its gains a millisecond
  are taken a second, and its bounds of 6 and 600 ms as parts of its first value, 12.5 ms.
- Arrival filter, sustained over-use, the additive increase near a known rate and the encoder are
  left out.
"""

from __future__ import annotations

from dataclasses import replace

from sympy import Abs, Max, Min, Rational, log, symbols

from fluidcc.laws import Jump, Source
from fluidcc.laws.law import tfrc_rate
from fluidcc.symbols import RTT, Let, edot, loss, nonnegative, packet, positive, x_tau

__all__ = ["GCC", "AdaptiveGCC"]

A = positive("A")  # rate by the delay [bit/s]
m = symbols("m", real=True)  # mode: 1 increase, 0 hold, -1 decrease
p = nonnegative("p")  # smoothed loss ratio [1]
g, gamma, alpha, cap, T, T_p, b = positive("g gamma alpha cap T T_p b")

_received = Let("R", x_tau * (1 - loss) / (1 + edot))  # [bit/s]
_friendly = tfrc_rate(Max(p, 1e-9), RTT, packet, b)  # without losses there is none
_increases = m * (m + 1) / 2
_HALF = Rational(1, 2)
_size = Max(edot, -edot)
_calm = (
    Rational(999, 1000) * gamma
)  # within which it is normal again: a gradient on the threshold changes nothing

GCC = Source(
    name="GCC",
    flow={
        A: _increases * Min(g * A, Max(cap * _received - A, 0) / T), m: 0, p: (loss - p) / T_p,
    },
    out={"rate": Min(A, _friendly)},
    params={g: float(log(1.08)), gamma: 0.05, alpha: 0.85, cap: 1.5, T: 0.1, T_p: 1, b: 1},
    units={
        A: "bit/s", m: "1", p: "1", g: "1/s", gamma: "1", alpha: "1", cap: "1", T: "s", T_p: "s",
        b: "1",
    },
    lower={A: 0, p: 0},
    limits={alpha: 1},
    initial={A: 3e5, m: 1, p: 0},
    jumps=(
        Jump(when=edot - gamma, reset={A: Min(A, alpha * _received), m: -1}, refractory=RTT),
        Jump(when=Min(_calm - edot, -m - _HALF), reset={m: 0}),
        Jump(when=Min(_calm - _size, _HALF - Abs(m)), reset={m: 1}),
        Jump(when=Min(-gamma - edot, m - _HALF), reset={m: 0}),
    ),
    about="GCC (WebRTC), simplified: listens to how the delay changes, and to losses as TFRC does.",
    meaning={
        A: "rate by the delay",
        m: "mode: 1 increase, 0 hold, -1 decrease",
        p: "smoothed loss ratio",
        g: "growth of the rate in increase",
        gamma: "delay gradient that counts as over-use",
        alpha: "part of the rate received that is kept at over-use",
        cap: "largest rate, over the rate received",
        T: "time in which the rate is drawn to that cap",
        T_p: "time over which losses are smoothed",
        b: "packets that an acknowledgement covers",
    },
    ref="draft-ietf-rmcat-gcc-02, Section 5, simplified; LDCC, Sections V-D and VI",
)  # fmt: skip

threshold = nonnegative("gamma")  # the gamma that adapts [1]
gamma0, gamma_min, gamma_max, K_u, K_d = positive("gamma0 gamma_min gamma_max K_u K_d")

_beyond = Let("d", _size - threshold)

AdaptiveGCC = replace(
    GCC,
    name="AdaptiveGCC",
    flow={**GCC.flow, threshold: K_u * Max(_beyond, 0) - K_d * Max(-_beyond, 0)},
    params={
        **{s: v for s, v in GCC.params.items() if s != gamma},
        gamma0: GCC.params[gamma], gamma_min: 0.024, gamma_max: 2.4, K_u: 10, K_d: 0.18,
    },
    units={
        **{s: v for s, v in GCC.units.items() if s != gamma},
        threshold: "1", gamma0: "1", gamma_min: "1", gamma_max: "1", K_u: "1/s", K_d: "1/s",
    },
    lower={**GCC.lower, threshold: gamma_min},
    upper={threshold: gamma_max},
    initial={**GCC.initial, threshold: gamma0},
    jumps=tuple(replace(j, when=j.when.subs(gamma, threshold)) for j in GCC.jumps),
    where=(gamma_min <= gamma_max,),
    about="GCC whose threshold of over-use follows the delay gradient.",
    meaning={
        **GCC.meaning,
        threshold: "delay gradient that counts as over-use",
        gamma0: "that threshold at first",
        gamma_min: "its smallest value",
        gamma_max: "its largest value",
        K_u: "gain with which it rises",
        K_d: "gain with which it falls",
    },
    ref="draft-ietf-rmcat-gcc-02, Section 5, simplified, with its adaptive threshold (Section 5.4)",
)  # fmt: skip
