"""Section 3.1 of the ECF paper: sources that come and go, Fig. 6 and 7, and changes held to frames."""

from __future__ import annotations

import numpy as np

from fluidcc.formulas import ecf
from fluidcc.papers.ecf.common import C, framed, outcome, starting, stopping
from fluidcc.papers.model import Outcome, claim
from fluidcc.papers.printed import compared

_MS = 1e3


def _last(r: object, ends: np.ndarray) -> list[np.ndarray]:
    """Mean rates [bit/s] of the 3 s before each of these times, of the sources that are on."""
    found = [r.rate.sel(time=slice(end - 3, end - 0.05)).mean("time").values for end in ends]  # type: ignore[attr-defined]
    return [x[x > 0] for x in found]


def _text(rows: list[np.ndarray]) -> str:
    return "; ".join(", ".join(f"{v / 1e6:.2f}" for v in row) for row in rows)


def _unfair(rows: list[np.ndarray]) -> float:
    return max(float(np.max(np.abs(row / row.mean() - 1))) for row in rows)


@claim(
    "ecf", "Section 3.1", "The fair share with 1 to 5 sources is 20, 15, 10, 7.5 and 6 Mbit/s.", "20, 15, 10, 7.5, 6"
)
def shares() -> Outcome:
    wanted = ecf.fair_share(np.arange(1, 6), C, 20e6)
    rows = _last(stopping("CBR"), np.arange(60, 110, 10.0))[::-1]
    worst = max(float(np.max(np.abs(row / w - 1))) for row, w in zip(rows, wanted, strict=True))
    printed = ("20", "15", "10", "7.5", "6")
    pairs = [(p, v / 1e6) for p, w, row in zip(printed, wanted, rows, strict=True) for v in (w, *row)]
    return compared(
        pairs,
        f"min(20, 30/N) Mbit/s; sources that start together and stop one by one have {_text(rows)} Mbit/s",
        values={"worst": worst},
    )


@claim(
    "ecf",
    "Fig. 6",
    "With CBR sources started one by one ECF adapts fast, but reaches fairness a bit slowly.",
    "slow with CBR",
)
def started() -> Outcome:
    rows = _last(starting("CBR"), np.arange(10, 60, 10.0))
    total = max(abs(row.sum() / min(C, 20e6 * len(row)) - 1) for row in rows)
    late = float(rows[-1][-1] / rows[-1].mean())
    return outcome(
        total < 0.01 and late > 1.2,
        f"before the next starts {_text(rows)} Mbit/s: their sum is right within {100 * total:.1f} %, the newest "
        f"source has {late:.2f} times its share after 10 s",
        "it is otherwise", {"total": total, "late": late},
    )  # fmt: skip


@claim("ecf", "Section 3.1", "With Poisson sources convergence is much faster: persistent excitation.", "much faster")
def excited() -> Outcome:
    calm, rich = (_unfair(_last(starting(kind), np.array([40.0, 50.0]))) for kind in ("CBR", "Poisson"))
    return outcome(
        rich < 0.75 * calm,
        f"10 s after a start the worst is off by {100 * calm:.0f} % with constant rates, by {100 * rich:.0f} % with "
        "Poisson ones (seeded)",
        "it is not faster", {"CBR": calm, "Poisson": rich},
    )  # fmt: skip


@claim("ecf", "Fig. 7", "The bandwidth of DCCP TCP-like is sluggish and never stabilises.", "unstable")
def sawtooth() -> Outcome:
    r = starting("DCCP").rate.sel(time=slice(42.0, 50.0)).values
    swing = float(np.mean(r.max(0) / r.min(0)))
    calm = starting("CBR").rate.sel(time=slice(42.0, 50.0)).values
    still = float(np.mean(calm.max(0) / calm.min(0)))
    return outcome(
        swing > 1.5, f"with five sources each rate swings by a factor {swing:.1f}, the rates of ECF by {still:.1f} "
        "while the last one settles", "it is steady", {"DCCP": swing, "ECF": still},
    )  # fmt: skip


@claim("ecf", "Fig. 7", "DCCP TFRC is smoother than TCP-like, but slower in convergence time.", "smoother, slower")
def slow_tfrc() -> Outcome:
    ends = np.array([30.0, 40.0, 50.0])
    tfrc, tcp = (_unfair(_last(starting(kind), ends)) for kind in ("TFRC", "DCCP"))
    rates = [starting(kind).rate.sel(time=slice(48.0, 50.0)).values for kind in ("TFRC", "DCCP")]
    smooth, rough = (float(np.mean(r.max(0) / r.min(0))) for r in rates)
    return outcome(
        tfrc > 1.5 * tcp and smooth < 0.5 + 0.5 * rough,
        f"10 s after a start the worst is off by {100 * tfrc:.0f} % of its share, with TCP-like by {100 * tcp:.0f} "
        f"%; in the last 2 s rates change by a factor {smooth:.2f}, with TCP-like {rough:.2f}. Slow start takes a "
        "newcomer far above its share, and the long loss intervals that it begins with count for long",
        "it is quick",
        {"TFRC": tfrc, "TCP-like": tcp, "smooth": smooth, "rough": rough},
    )


@claim(
    "ecf",
    "Section 2.3",
    "Changes held until a frame or a group of pictures (480 ms) slow adaptation and may drop more.",
    "480 ms",
)
def frames() -> Outcome:
    found = {gop: framed(gop) for gop in (0.0, 0.04, 0.48)}
    lost = {gop: float(r.lost.values[-1, 0] / r.entered.values[-1, 0]) for gop, r in found.items()}
    calm = {gop: float(r.queueing_delay.sel(time=slice(10.0, None)).std()) for gop, r in found.items()}
    good = lost[0.0] < lost[0.04] < lost[0.48] and calm[0.48] > 2 * calm[0.0]
    at_once, frame, group = (100 * v for v in lost.values())
    return outcome(
        good,
        f"five sources that start at 100 Mbit/s together lose {at_once:.1f} % in 30 s if they change at once, "
        f"{frame:.1f} % if at frames of 40 ms, {group:.1f} % if at groups of 480 ms; the queue's deviation is then "
        f"{', '.join(f'{_MS * v:.1f}' for v in calm.values())} ms. 480 ms are a delay of three periods, where "
        "T_ECF > RTT is needed",
        "no difference",
        {f"lost {k:g}": v for k, v in lost.items()} | {f"jitter {k:g}": v for k, v in calm.items()},
    )
