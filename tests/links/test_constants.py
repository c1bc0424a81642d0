"""The constants of every link: parameters with defaults and units,
states with first values and bounds, periods.

The table was taken from the laws: it shows that a constant changed, not that it is right.
Where a section or an RFC is named beside a number, that is its source.
"""

import pytest
from sympy import lambdify

from fluidcc import links
from fluidcc.symbols import plain, trip_max

DUALPI2 = "alpha 0.16 1/s, beta 3.2 1/s, T 0.016 s, target 0.015 s"  # RFC 9332, A.1
RED = "min_th 0.04 s, max_th 0.12 s, p_max 0.1 1, T 1 s, gentle 1 1"
ADAPTIVE = f"{RED}, interval 0.5 s, up 0.01 1, down 0.9 1"  # Floyd, Gummadi and Shenker 2001
PAQM = "K 0.3 1, a 0.5 1, dT 0.02 s, q_0 0.04 s"
ECF = f"{PAQM}, T_ECF 0 s, T_s 0.14 s, aim 0.028 s, calm 0.96 1, forced 0.95 1, AI_max 1e+30 bit/s"
# Parameters, first values of states that are not 0, and periods and phases of ticks [s].
PIE = "alpha 0.125 1/s, beta 1.25 1/s, T 0.015 s, target 0.015 s"  # RFC 8033, 4.2
CODEL = "target 0.005 s, interval 0.1 s, size 12000 bit"  # RFC 8289
ZETA = 0.5331588229
CONSTANTS: dict[str, tuple[str, dict[str, float], list[tuple[float, float]]]] = {
    "AdaptiveRED": (ADAPTIVE, {"p": 0.1}, [(0.5, 0.5)]),
    "AdaptiveREDDrop": (ADAPTIVE, {"p": 0.1}, [(0.5, 0.5)]),
    "CoDel": (CODEL, {"count": ZETA, "began": ZETA}, []),
    "CoDelDrop": (CODEL, {"count": ZETA, "began": ZETA}, []),
    "DropTail": ("", {}, []),
    "DualLink": ("nu 1e-06 1/bit", {}, []),
    "PAQM": (PAQM, {"u": 1}, [(0.02, 0.02)]),
    "PAQMDrop": (PAQM, {"u": 1}, [(0.02, 0.02)]),
    # By (4) with a round trip of 20 ms; the report goes by a state, which is that from the start on
    "PAQMECF": (ECF, {"u": 1, "MD": 1, "T": 1}, [(0.02, 0.02), (1, 0.16), (0.16, 0.02)]),
    "PAQMECF2": (
        f"{ECF}, R 0 s",
        {"u": 1, "MD": 1, "T": 1},
        [(0.02, 0.02), (1, 0.16), (0.16, 0.02)],
    ),
    "PI2": (DUALPI2, {}, []),
    "PI2Drop": (DUALPI2, {}, []),
    "PI": ("a 0.0682 1/s, b 0.03615 1/s^2, q_ref 0.05 s", {}, []),  # 3750 times those of Hollot
    "PIE": (f"{PIE}, rise 0.02 1, decay 0.0202027 1, spared 0.2 1", {}, []),
    "PIEDrop": (f"{PIE}, rise 0.02 1, decay 0.0202027 1, spared 0.2 1", {}, []),
    "PenaltyLink": ("B 8 1", {}, []),
    "RED": (RED, {}, []),
    "REDDrop": (RED, {}, []),
    "RCPLink": ("alpha 0.4 1, beta 0.226 1, gamma 0.95 1, d 0.1 s", {"R": 1e6}, []),
    "RampMark": ("K_min 1e-06 s, K_max 4e-05 s, p_max 0.01 1", {}, []),
    "StepMark": ("K 0.001 s", {}, []),
}


@pytest.mark.parametrize("name", links.__all__)
def test_constants_are_those_of_the_paper(name: str) -> None:
    law = getattr(links, name)
    said = ", ".join(f"{plain(s)} {float(v):g} {law.units[s]}" for s, v in law.params.items())
    given, values = [*law.params], [*law.params.values()]
    first = {plain(z): float(lambdify(given, f)(*values)) for z, f in law.initial.items()}
    given, values = [*given, trip_max, *law.states], [*values, 0.02, *[1.0] * len(law.states)]
    ticks = [
        tuple(round(float(lambdify(given, f)(*values)), 9) for f in (tick.every, tick.phase))
        for tick in law.ticks
    ]
    assert (said, {z: round(v, 10) for z, v in first.items() if v}, ticks) == CONSTANTS[name]
