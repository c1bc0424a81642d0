"""Breaking points: where the solution is not smooth, and where that will be felt next.

With FIFO queues a kink at a link lands explicitly: what enters at xi leaves at D(xi), reaches the
next link a propagation delay later, and in the end the sources. It is a landing in a heap,
forwarded hop by hop. Each passage through a source makes it smoother by one order, which is a
generation.

Classes of sources that go by nothing that data carry are passed over. What routers say comes
straight back: where that changes at once, by a tick or a jump, is a breaking point of who hears it.

How far it is followed is a rule, so that exactness does not cost scale: the first generation where
a kink lands at sources at most 64 times (8 where laws jump or tick), once for each feedback class
unless routes cross; the second with at most 8, the third with at most 4. What is not followed is
counted in the statistics and left to error control.

A source that sends what is acknowledged makes nothing smoother: a jump or kink of its rate comes
round for ever, weaker at best. As long as it matters, it counts as new each time, where it lands at
sources at most 4 times. With queues that change and lags that differ it lands at other instants
each time round, and so do its parts, which grow in number as they grow smaller. So those that were
seen go first: with 50 landings ahead of it, what only may be there (the later generations) is no
longer followed, with 1000 nothing is; the steps that meet it are then shortened.

A busy queue mixes its flows, so a kink goes on from link to link with every flow that crosses them,
and round a cycle of links for ever, weaker by the flows' shares each time. It is followed once
round, and over as many hops as make at most 64 landings: in a mesh of links they would double and
double again.

Rates that no state smooths: those of sources that send what is acknowledged, say.

What such a source hears is in its rate at once. So a kink of a rate comes round for ever, and what
a quartic misses of a kink does too: where it swings, the next one swings more. The states hardly
show that, since it is short. Therefore

- a kink is followed on wherever it is seen, as a jump is: see `repeat_kinks`;
- a step is taken again, shorter, where quartics cannot follow the rates in it: see `roughness`;
- what is then left is too short to matter, and its rates are straight lines, which never swing: see
  `straighten`.
"""

from __future__ import annotations

from typing import Any

from ..compiling import njit
from ..fluid import slots as s
from .reads import work
from .records import place

__all__ = [
    "emit", "finish", "forward", "forward_class", "keep_rates", "news", "pop", "push",
    "repeat_jumps", "repeat_kinks", "roughness", "send_kink", "speak", "straighten", "unfollowed",
]  # fmt: skip

_CFG = {"cache": True, "error_model": "numpy", "nogil": True}

_FEW = 4  # landings at sources, so many that they need no second thought
# landings ahead, with which only jumps and kinks of rates that have been seen are followed on
_CROWD = 50
_PENDING = 1000  # landings ahead, with which those are not either
SEEN = 0.2  # of the tolerance, by which a jump of a rate makes a difference
# a landing's generation counts ones for passages through sources, and eights for links crossed
# since
_HOP = 8
# of the fourth difference of five values is too much: a third of what their quartic misses of a
# kink
MISSED = 0.012
SMOOTH = (
    0.1  # fourth difference, over all that the values vary, below which the quartic follows them
)


# --- landings ahead: a heap -----------------------------------------------------------------------


@njit(**_CFG)
def push(F: Any, I: Any, time: float, kind: int, index: int, generation: int) -> None:
    """Put a landing into the heap; when it is full the driver is told to grow it."""
    n = I[s.NHEAP]
    if n >= I[s.HEAPCAP]:
        I[s.CODE] = s.GROW_HEAP
        return
    h, j = I[s.OHEAP], I[s.JHEAP]
    k = n
    while k > 0:
        parent = (k - 1) // 2
        if F[h + parent] <= time:
            break
        F[h + k] = F[h + parent]
        for m in range(3):
            I[j + 3 * k + m] = I[j + 3 * parent + m]
        k = parent
    F[h + k] = time
    I[j + 3 * k] = kind
    I[j + 3 * k + 1] = index
    I[j + 3 * k + 2] = generation
    I[s.NHEAP] = n + 1


@njit(**_CFG)
def pop(F: Any, I: Any) -> tuple[int, int, int]:
    """Take the earliest landing out: its kind, index and generation."""
    h, j = I[s.OHEAP], I[s.JHEAP]
    kind, index, generation = I[j], I[j + 1], I[j + 2]
    n = I[s.NHEAP] - 1
    I[s.NHEAP] = n
    time = F[h + n]
    k = 0
    while True:
        child = 2 * k + 1
        if child >= n:
            break
        if child + 1 < n and F[h + child + 1] < F[h + child]:
            child += 1
        if F[h + child] >= time:
            break
        F[h + k] = F[h + child]
        for m in range(3):
            I[j + 3 * k + m] = I[j + 3 * child + m]
        k = child
    F[h + k] = time
    for m in range(3):
        I[j + 3 * k + m] = I[j + 3 * n + m]
    return kind, index, generation


@njit(**_CFG)
def news(F: Any, I: Any, kind: int, index: int, generation: int, tol: float) -> bool:
    """Whether a landing at F[T] tells what none before it told there at that instant: coincident
    ones count once.
    """
    place = index if kind == s.AT_LINK else I[s.NL] + index
    before = I[I[s.JLANDED] + place]
    if abs(F[I[s.OLANDED] + place] - F[s.T]) > tol:
        F[I[s.OLANDED] + place] = F[s.T]
        I[I[s.JLANDED] + place] = generation
        return True
    passed, hops = min(generation % _HOP, before % _HOP), min(generation // _HOP, before // _HOP)
    I[I[s.JLANDED] + place] = passed + _HOP * hops
    return I[I[s.JLANDED] + place] != before


@njit(**_CFG)
def finish(F: Any, I: Any, link: int, amount: float) -> float:
    """The time by which the link has done `amount` of work: the inverse of `work`."""
    first = I[I[s.JSEG] + link]
    k = I[I[s.JSEG] + link + 1] - 1
    while k > first and amount < F[I[s.OSEGS] + k]:
        k -= 1
    return F[I[s.OSEGT] + k] + (amount - F[I[s.OSEGS] + k]) / F[I[s.OSEGC] + k]


@njit(**_CFG)
def _followed(I: Any, generation: int) -> bool:
    spread = I[s.SPREAD]
    if generation > I[s.GMAX]:
        return False
    if I[s.ECHO] and generation > 0 and I[s.NHEAP] >= _CROWD:
        I[s.UNTRACKED] += 1
        return False
    most = (
        8 if I[s.NHY] else 64
    )  # jumps and ticks are many, and each makes as many landings as there are classes
    if (
        spread <= _FEW
        or generation <= 0
        or (generation <= 1 and spread <= most)
        or (generation <= 2 and spread <= 8)
    ):
        return True
    I[s.UNTRACKED] += 1
    return False


@njit(**_CFG)
def emit(F: Any, I: Any, link: int, leave: float, generation: int) -> None:
    """What leaves the queue at `leave` is not smooth: tell the next links, and the sources whose
    path ends here.
    """
    arrive = leave + F[I[s.OPROP] + link]
    first, after = I[I[s.JNEXT] + link], I[I[s.JNEXT] + link + 1]
    if generation < _HOP * I[s.HOPS]:
        for k in range(first, after):
            push(F, I, arrive, s.AT_LINK, I[I[s.JNEXTV] + k], generation + _HOP)
    else:
        I[s.UNTRACKED] += after - first
    generation %= _HOP
    if not I[s.TRACK] or not _followed(I, generation):
        return
    for k in range(I[I[s.JLAST] + link], I[I[s.JLAST] + link + 1]):
        c = I[I[s.JLASTV] + k]
        if not I[I[s.JHEARS] + c]:
            continue
        push(F, I, arrive + F[I[s.OCLAG] + c], s.AT_CLASS, c, generation)


@njit(**_CFG)
def speak(F: Any, I: Any, link: int, generation: int) -> None:
    """What `link` says is not smooth now: sources hear that straight back; those beside it have
    heard it already.
    """
    for c in range(I[s.NC]):
        for m in range(I[I[s.JTOLD] + c], I[I[s.JTOLD] + c + 1]):
            node = I[I[s.JTOLDV] + m]
            if I[I[s.JNLINK] + node] == link and F[I[s.OOFF] + node] > 0.0:
                push(F, I, F[s.T] + F[I[s.OOFF] + node], s.AT_CLASS, c, generation)


@njit(**_CFG)
def bend(F: Any, I: Any, link: int) -> None:
    """A mode or switch of `link` changes now: what it says, if anything, has a kink."""
    if I[s.NACT] and I[I[s.JACTS] + link] & (s.OFFERS | s.REPORTS):
        speak(F, I, link, 1)


@njit(**_CFG)
def forward(F: Any, I: Any, link: int, generation: int) -> None:
    """The queue of `link` is not smooth now (at F[T])."""
    now = F[s.T]
    if I[s.FROZEN]:
        if not I[s.TRACK] or not _followed(I, generation):
            return
        for c in range(I[s.NC]):
            if not I[I[s.JHEARS] + c]:
                continue
            for k in range(I[I[s.JPATH] + c], I[I[s.JPATH] + c + 1]):
                n = I[I[s.JPATHV] + k]
                if I[I[s.JNLINK] + n] == link:
                    push(F, I, now + F[I[s.OOFF] + n], s.AT_CLASS, c, generation)
        return
    amount = work(F, I, link, now)[0] + F[I[s.OY] + I[s.OB] + link]
    emit(F, I, link, finish(F, I, link, amount), generation)


@njit(**_CFG)
def forward_class(F: Any, I: Any, link: int, generation: int) -> None:
    """The rates into `link`, where their sources begin, are not smooth now."""
    forward(F, I, link, generation)
    if I[s.FROZEN]:
        for n in range(I[s.NSTR]):
            j = I[s.JSTR] + 3 * n
            if I[I[s.JNLINK] + I[j]] == link:
                push(F, I, F[s.T] + F[I[s.OOFF] + I[j]], s.AT_LINK, I[j + 2], generation)


@njit(**_CFG)
def send_kink(F: Any, I: Any, switch: int, told: int) -> int:
    """Send on the kink of a switch that changes now, unless that of its link, `told`, has been;
    return the link.
    """
    owner = I[I[s.JSWOWN] + switch]
    link = I[I[s.JFIRST] + owner] if owner >= 0 else -1 - owner
    if link != told:
        forward_class(F, I, link, 1)
        if owner < 0:
            bend(F, I, link)
    return int(link)


@njit(**_CFG)
def keep_rates(F: Any, I: Any) -> None:
    """Keep the rates of the sources just before F[T], which are those of the end of the step, for
    `repeat_jumps`.
    """
    for i in range(I[s.NF]):
        F[I[s.ORN] + I[s.NF] + i] = F[I[s.ORN] + i]


@njit(**_CFG)
def repeat_jumps(F: Any, I: Any) -> None:
    """Rates of sources that read their own past have jumped now: that is felt as if it had happened
    here.
    """
    told = -1
    for i in range(I[s.NF]):
        link = I[I[s.JFIRST] + i]
        if link == told or I[I[s.JXT] + i] < 0:
            continue
        jump = F[I[s.ORN] + i] - F[I[s.ORN] + I[s.NF] + i]
        if abs(jump) > SEEN * F[s.RTOL] * F[I[s.OCAP] + link]:
            follow(F, I, link)
            told = link


@njit(**_CFG)
def follow(F: Any, I: Any, link: int) -> None:
    """The rates into `link` are as little smooth now as if it had happened here: send that on,
    where it is not much.
    """
    if I[s.SPREAD] <= _FEW and I[s.TRACK] and I[s.NHEAP] < _PENDING:
        forward_class(F, I, link, 0)
    else:
        I[s.UNTRACKED] += 1


# --- rates that no state smooths ------------------------------------------------------------------


@njit(**_CFG)
def _missed(F: Any, o: int, stride: int) -> float:
    """What the quartic through five values at F[o] misses between them, where they are rough; else
    0.
    """
    a, b, c = F[o], F[o + stride], F[o + 2 * stride]
    d, e = F[o + 3 * stride], F[o + 4 * stride]
    fourth = abs((a + e) - 4.0 * (b + d) + 6.0 * c)
    varies = abs(b - a) + abs(c - b) + abs(d - c) + abs(e - d)
    return MISSED * fourth if fourth > SMOOTH * varies else 0.0


@njit(**_CFG)
def _negative(F: Any, o: int, stride: int) -> bool:
    """Whether the quartic through five values at F[o], none below 0, may be: by its Bernstein
    coefficients.
    """
    a, b, c = F[o], F[o + stride], F[o + 2 * stride]
    d, e = F[o + 3 * stride], F[o + 4 * stride]
    if min(a, b, c, d, e) < 0.0:
        return False
    first = -13.0 * a + 48.0 * b - 36.0 * c + 16.0 * d - 3.0 * e
    third = -13.0 * e + 48.0 * d - 36.0 * c + 16.0 * b - 3.0 * a
    return min(first, third, 13.0 * (a + e) - 64.0 * (b + d) + 120.0 * c) < 0.0


@njit(**_CFG)
def _worst(F: Any, I: Any) -> float:
    """The same for all that links tell in the step just taken, and rates looked back at, over the
    tolerance.
    """
    nl, nf, worst = I[s.NL], I[s.NF], 0.0
    for l in range(nl):
        worst = max(worst, _missed(F, I[s.OAN] + l, nl) / F[I[s.OCAP] + l])
        if I[s.MARKS]:
            worst = max(worst, _missed(F, I[s.OMN] + l, nl))
        if I[s.PRICES]:
            price = I[s.OPN] + l
            least = min(abs(F[price]), abs(F[price + 2 * nl]), abs(F[price + 4 * nl]))
            worst = max(worst, _missed(F, price, nl) / (F[s.RTOL] + least))
            if _negative(F, price, nl):
                worst = max(worst, 2.0 * F[s.RTOL])
    for i in range(nf):
        if I[I[s.JXT] + i] >= 0:
            worst = max(worst, _missed(F, I[s.ORN] + i, nf) / F[I[s.OCAP] + I[I[s.JFIRST] + i]])
    return worst / F[s.RTOL]


@njit(**_CFG)
def roughness(F: Any, I: Any) -> float:
    """By how much the step just taken is too long for rates that no state smooths: above 1, take a
    shorter one.
    """
    if not I[s.ECHO]:
        return 0.0
    F[s.ROUGH] = _worst(F, I)
    if F[s.H] <= 100.0 * F[s.TOLT] * max(1.0, abs(F[s.T])):
        return 0.0
    return F[s.ROUGH] * min(1.0, F[s.H] / F[s.BRIEF])


@njit(**_CFG)
def unfollowed(F: Any, I: Any) -> bool:
    """Whether quartics cannot follow the rates in the step just taken, however brief it is:
    `roughness` has seen it.
    """
    return I[s.ECHO] != 0 and F[s.ROUGH] > 1.0


@njit(**_CFG)
def straighten(F: Any, I: Any) -> None:
    """Let the rates, marks and prices in the step just taken be straight lines."""
    nl = I[s.NL]
    r = place(I, I[s.NREC])
    for l in range(nl):
        b = r + s.RLINKS + l * s.LSIZE
        _line(F, b + s.LY)
        if I[s.MARKS]:
            _line(F, b + s.LMARK)
        if I[s.PRICES]:
            _line(F, b + s.LPRICE)
    for g in range(I[s.NX] + I[s.NT]):
        _line(F, r + s.RLINKS + nl * s.LSIZE + 5 * g)


@njit(**_CFG)
def _line(F: Any, o: int) -> None:
    F[o + 1] = (F[o + 1] + F[o + 2]) + (F[o + 3] + F[o + 4])
    F[o + 2] = F[o + 3] = F[o + 4] = 0.0


@njit(**_CFG)
def repeat_kinks(F: Any, I: Any) -> None:
    """Send on the kinks of rates at the start of the step just taken, which began at a breaking
    point.

    That is for networks with I[ECHO] alone.
    """
    own = s.RLINKS + I[s.NL] * s.LSIZE + 5 * I[s.NX]
    before, after = place(I, I[s.NREC] - 1) + own, place(I, I[s.NREC]) + own
    told = -1
    for i in range(I[s.NF]):
        link, slot = I[I[s.JFIRST] + i], I[I[s.JXT] + i]
        if link == told or slot < 0:
            continue
        a, b = before + 5 * slot, after + 5 * slot
        slope = (F[a + 1] + 2.0 * F[a + 2] + 3.0 * F[a + 3] + 4.0 * F[a + 4]) / F[
            before - own + s.RH
        ]
        kink = abs(F[b + 1] / F[s.H] - slope)
        if kink * F[s.BRIEF] > F[s.RTOL] * F[I[s.OCAP] + link]:
            follow(F, I, link)
            told = link
