"""The example on the page of each law: a network of two flows that differ, on a link that they use.

One table, by kind of law. What a law does not say here follows from what it hears: its link, two
round trips, and the question that fits it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import fluidcc as fc
from fluidcc import links, sources
from fluidcc.laws import Source

# How a kind of behaviour is asked about: the call, and what its answer is called.
QUESTIONS = {
    "equilibrium": ("fc.equilibrium(net)", "Where it settles"),
    "stability": ("fc.stability(net)", "Stable, and by how much?"),
    "limit_cycle": ("fc.limit_cycle(net)", "Its limit cycle"),
    "sampled_stability": ("fc.sampled_stability(net)", "Stable at its sampling interval?"),
    "means": ("fc.metrics", "Means"),
}


@dataclass(frozen=True)
class Example:
    """What differs from the plain example.

    Attributes
    ----------
    near, far : str
        The law of each flow, as code; by default the law of the page.
    more, less : str
        Arguments of the far flow and of the near one, as the inside of a mapping.
    link : str
        Arguments of the link, as the inside of a mapping; by default the law of the page, or what
        it hears, at 10 Mbit/s.
    asks : str
        Names of `QUESTIONS`; "" for those of its kind.
    """

    near: str = ""
    far: str = ""
    more: str = '"access_delay": "20 ms"'
    less: str = ""
    link: str = ""
    until: str = "60 s"
    asks: str = ""


E = Example
LINK = '"capacity": "10 Mbit/s", "delay": "20 ms", "buffer": "100 packets"'
LONG = '"capacity": "10 Mbit/s", "delay": "20 ms", "buffer": "300 packets"'
SLOW = '"capacity": "2 Mbit/s", "delay": "20 ms", "buffer": "50 packets"'
RED = f'"law": fc.RED(p_max=0.01, T=0.1), {LONG}'
STEP = (
    '"law": fc.StepMark(K="500 us"), "capacity": "1 Gbit/s", "delay": "100 us", '
    '"buffer": "500 packets"'
)
RAMP = '"law": fc.RampMark, "capacity": "40 Gbit/s", "delay": "5 us", "buffer": "1000 packets"'
NEAR = {
    "link": '"capacity": "10 Gbit/s", "delay": "20 us", "buffer": "1000 packets"',
    "more": '"access_delay": "10 us", "start": "5 ms"',
    "until": "80 ms",  # by then they fill the link
}
PI2 = f'"law": fc.PI2, {LONG}'
DUAL = '"law": fc.DualLink(nu=1e-7), "capacity": "10 Mbit/s", "delay": "20 ms"'
PENALTY = '"law": fc.PenaltyLink, "capacity": "10 Mbit/s", "delay": "20 ms"'
LATER = '"access_delay": "20 ms", "start": "10 s"'
ONE = {"less": '"initial": {"w": 1}', "more": '"access_delay": "20 ms", "initial": {"w": 1}'}
ON_ECF = f'"law": fc.PAQMECF, {LINK}'
ON_RCP = f'"law": fc.RCPLink, {LINK}'
PAIR = ("fc.Reno", "fc.Reno")
CLIMB = ("fc.PrimalDual(w=1e6, alpha=1e7)", "fc.PrimalDual(w=2e6, alpha=1e7)")
UP = ("fc.PrimalPenalty(w=1e6, alpha=1e7)", "fc.PrimalPenalty(w=2e6, alpha=1e7)")
TOLD = ('fc.ECF(r_max="8 Mbit/s")', 'fc.ECF(r_max="6 Mbit/s")')
GROUPS: dict[str, dict[str, Example]] = {
    "TCP": {
        "Reno": E(link=RED),
        "AIMD": E(),
        "StaticReno": E(link=RED),
        "StaticAIMD": E(),
        "BBRv1": E(link=LONG, asks="means"),
        "BBRv2": E(far="fc.CUBIC", link=LONG, until="60 s", asks="means"),
        "BBRv3": E(far="fc.BBRv3(wait=2.8)", link=LONG, until="60 s", asks="means"),
        "CUBIC": E(link=LONG, asks="limit_cycle"),
        "CUBICFluid": E(link=PI2),
        "HighSpeed": E(link=RED),
        "Westwood": E(link=RED),
        "Illinois": E(far="fc.Illinois(d_m=0.2)", link=RED),
        "Compound": E(link=PI2),
        "DCTCP": E(link=STEP, more='"access_delay": "50 us"', until="50 ms", asks="limit_cycle"),
        "Prague": E(link=PI2),
        "DCQCN": E(link=RAMP, more='"access_delay": "5 us", "start": "5 ms"', until="50 ms"),
        "TIMELY": E(**NEAR, asks="means"),
        "PatchedTIMELY": E(**NEAR, asks="equilibrium means"),
        "HTCP": E(link=SLOW, asks="means"),
        "CxTCP": E("fc.CxTCP(peak=0.005, turn=0.05)", link=LONG),
        "ScalableTCP": E(link=RED),
        "DCCP": E(),
        "Binomial": E("fc.Binomial(k=0.5, l=0.5)", "fc.Binomial(k=0, l=1)"),
        "IIAD": E(link=SLOW, until="120 s"),
        "SQRT": E(),
        "StaticIIAD": E(until="120 s"),
        "StaticSQRT": E(),
        "AIAD": E("fc.AIAD(beta=8)"),
        "AIPD": E("fc.AIPD(beta=5)"),
        "BinomialFluid": E("fc.BinomialFluid(k=0.5, l=0.5)", "fc.BinomialFluid", link=RED),
    },
    "Delay-based": {
        "LDCC": E(far="fc.LDCC(eta=0.8)", link=LONG, until="120 s"),
        "SampledLDCC": E(far="fc.SampledLDCC(eta=0.8)", link=LONG, until="300 s"),
        "FAST": E(far="fc.FAST(alpha=25)", **ONE, link=LONG),
        "StaticFAST": E(far="fc.StaticFAST(alpha=25)", **ONE, link=LONG),
        "Vegas": E(far="fc.Vegas(alpha=4)", **ONE, link=LONG),
        "StaticVegas": E(far="fc.StaticVegas(alpha=4)", **ONE, link=LONG),
        "Copa": E(far="fc.AIMD", link=LONG, asks="means"),
        "LEDBATpp": E(link=LONG),
        "LEDBAT": E(
            less='"initial": {"w": 2}',
            more='"access_delay": "20 ms", "initial": {"w": 2}',
            link=LONG,
        ),
        "DelayAIMD": E(link=SLOW, until="20 s", asks="means"),
        "PlainDelayAIMD": E(link=SLOW, until="20 s", asks="means"),
        "SmoothedDelayAIMD": E(link=SLOW, until="20 s", asks="means"),
        "PrintedDelayAIMD": E(link=SLOW, until="20 s", asks="means"),
        "SlowStartAIMD": E(link=SLOW, until="10 s", asks="means"),
    },
    "Media": {
        "GCC": E(link=SLOW, asks="means"),
        "AdaptiveGCC": E(link=SLOW, asks="means"),
        "NADA": E(more=LATER, link=SLOW),
        "NADA8698": E(more=LATER, link=SLOW, until="180 s", asks="means"),
        "SCReAM": E(more=LATER, link=PI2.replace("PI2", 'PI2(target="5 ms")'), until="120 s"),
        "TFRC": E(until="120 s"),
        "TFRCFluid": E(link=RED, until="120 s", asks="equilibrium means"),
        "SlowStartTFRC": E(more=LATER, link=RED, asks="means"),
        "RateAIMD": E(far="fc.RateAIMD(alpha=2)"),
        "RateBinomial": E("fc.RateBinomial(k=0.5, l=0.5)", "fc.RateBinomial(k=0, l=1)"),
        "ISCC": E(more=LATER),
        "ECF": E(*TOLD, more=LATER, link=ON_ECF, until="30 s"),
        "RCP": E('fc.RCP(R_max="3 Mbit/s")', "fc.RCP", more=LATER, link=ON_RCP),
        "FramedECF": E(
            'fc.FramedECF(r_max="8 Mbit/s")',
            'fc.FramedECF(r_max="6 Mbit/s", gop=0.24)',
            more=LATER,
            link=ON_ECF,
            until="30 s",
            asks="means",
        ),
        "PoissonECF": E(
            'fc.PoissonECF(r_max="8 Mbit/s")',
            'fc.PoissonECF(r_max="6 Mbit/s")',
            more=LATER,
            link=ON_ECF,
            until="30 s",
            asks="means",
        ),
    },
    "Price-based": {
        "Kelly": E(far="fc.Kelly(alpha=2e6)", more=LATER),
        "PrimalPenalty": E(*UP, more=LATER, link=PENALTY),
        "PrimalDual": E(*CLIMB, more=LATER, link=DUAL),
        "AlphaFairPrimalDual": E(
            "fc.AlphaFairPrimalDual(w=1e6, alpha=1e8)",
            "fc.AlphaFairPrimalDual(w=2e6, alpha=1e8)",
            more=LATER,
            link=DUAL.replace("1e-7", "2e-8"),
        ),
        "DelayedPrimal": E(
            "fc.DelayedPrimal(w=1e6)", "fc.DelayedPrimal(w=2e6)", more=LATER, link=PENALTY
        ),
        "ScalableSource": E(more=LATER, link=DUAL),
        "PenaltyLink": E(*UP, more=LATER, link=PENALTY),
        "DualLink": E(*CLIMB, more=LATER, link=DUAL),
    },
    "Queue disciplines": {
        "DropTail": E("fc.AIMD", "fc.AIMD"),
        "RED": E(*PAIR, link=RED),
        "REDDrop": E(*PAIR, link=RED.replace("RED", "REDDrop")),
        "AdaptiveRED": E(*PAIR, asks="means"),
        "AdaptiveREDDrop": E(*PAIR, asks="means"),
        "PI": E(*PAIR),
        "PI2": E(*PAIR),
        "PI2Drop": E(*PAIR),
        "PIE": E(*PAIR),
        "PIEDrop": E(*PAIR),
        "CoDel": E(*PAIR, asks="means"),
        "CoDelDrop": E(*PAIR, asks="means"),
        "StepMark": E(
            "fc.DCTCP", more='"access_delay": "50 us"', link=STEP, until="50 ms", asks="limit_cycle"
        ),
        "RCPLink": E('fc.RCP(R_max="3 Mbit/s")', "fc.RCP", more=LATER, link=ON_RCP),
        "RampMark": E(
            "fc.DCQCN", more='"access_delay": "5 us", "start": "5 ms"', link=RAMP, until="50 ms"
        ),
        "PAQM": E(*PAIR, asks="means"),
        "PAQMDrop": E(*PAIR, asks="means"),
        "PAQMECF": E(*TOLD, more=LATER, until="30 s"),
        "PAQMECF2": E(*TOLD, more=LATER, until="30 s"),
    },
    "Traffic": {
        "CBR": E('fc.CBR(rate="8 Mbit/s")', 'fc.CBR(rate="4 Mbit/s")', more=LATER, asks="means"),
        "OnOff": E('fc.OnOff(peak="8 Mbit/s")', 'fc.OnOff(peak="4 Mbit/s")', more=LATER),
        "Poisson": E(
            'fc.Poisson(mean_rate="4 Mbit/s")', 'fc.Poisson(mean_rate="3 Mbit/s")', more=LATER
        ),
    },
}
del E


def groups() -> dict[str, list[str]]:
    """Return the names of all laws by kind; those that no table here names by what they hear."""
    found = {title: list(laws) for title, laws in GROUPS.items()}
    known = {name for names in found.values() for name in names}
    for room in (sources, links):
        for name in room.__all__:
            if name not in known:
                found[_kind(getattr(fc, name))].append(name)
    return found


def _kind(law: Any) -> str:
    """Return the group of a law of which the table says nothing."""
    if "price" in law.out or fc.symbols.price in signals_of(law):
        return "Price-based"
    if not isinstance(law, Source):
        return "Queue disciplines"
    if not signals_of(law):
        return "Traffic"
    return "TCP" if law.window is not None or law.static_window is not None else "Media"


def signals_of(law: Any) -> set[Any]:
    """Return the signals that a law hears."""
    used: set[Any] = set().union(*(f.free_symbols for _, f in law.expressions()))
    return used & set(law.inputs)


def example_of(law: Any) -> tuple[str, fc.Network, str, list[str]]:
    """Return the code of a law's example, its network, the end of its run, and its questions."""
    named = [laws[law.name] for laws in GROUPS.values() if law.name in laws]
    own = named[0] if named else Example()
    link, lines = own.link or _link(law), ',\n        "'
    near = own.near or (f"fc.{law.name}" if isinstance(law, Source) else "fc.Reno")
    far = own.far or near
    less = f'{{"law": {near}, {own.less}}}' if own.less else near
    code = f"""net = fc.dumbbell(
    {{
        "near": {less},
        "far": {{"law": {far}, {own.more}}},
    }},
    {{
        {link.replace(', "', lines)},
    }},
)"""
    net = eval(code.removeprefix("net = "), {"fc": fc})
    return code, net, own.until, own.asks.split() or _questions(net)


def _link(law: Any) -> str:
    """Return the link that a law needs, or is."""
    heard = {str(s).rstrip("0123456789") for s in signals_of(law)}
    kind = "DualLink" if fc.symbols.price in signals_of(law) else "DropTail"
    kind = "PAQMECF" if any(s.startswith(("MD", "factor")) for s in heard) else kind
    kind = kind if isinstance(law, Source) else law.name
    size = "" if getattr(fc, kind).queue is None else ', "buffer": "100 packets"'
    law_of_link = "" if kind == "DropTail" and isinstance(law, Source) else f'"law": fc.{kind}, '
    return f'{law_of_link}"capacity": "10 Mbit/s", "delay": "20 ms"{size}'


def _questions(net: fc.Network) -> list[str]:
    """Return what is asked of a network: of random traffic means, of ticks multipliers, of jumps
    the limit cycle, else the equilibrium and its stability.
    """
    laws = [spec.law for spec in (*net.flows.values(), *net.links.values())]
    if any(getattr(law, "traffic", "") for law in laws):
        return ["means"]
    if any(law.ticks for law in laws):
        return ["sampled_stability", "means"]
    if any(law.jumps for law in laws):
        return ["limit_cycle"]
    return ["equilibrium", "stability"]
