"""The constants of every source: parameters with defaults and units, first values and bounds of
states.

The table was taken from the laws: it shows that a constant changed, not that it is right.
Where a section or an RFC is named beside a number, that is its source.
"""

import math
from typing import Any

import pytest
from sympy import lambdify

from fluidcc import sources
from fluidcc.symbols import plain

ACKS = "spread 0.03 1, regain 3 1, burst 0.1 1, trickle 0.001 1"
CLOCK = "pace 0.05 1, burst 0.1 1, trickle 0.01 1"
GAP = "pace 0.5 1, burst 0.1 1, trickle 0.01 1"  # of laws that cut their window
TCP = "a 1 1, b 0.5 1"
BINOMIAL = "alpha 1 1, beta 0.5 1"
LDCC = "w 20000 bit/s, beta 0.1 1, T 0.1 s, eta 0.4 1"  # Section V
PRIMAL = "w 20000 bit/s, alpha 1e+06 bit/s^2"
ECF = "r_max 2e+07 bit/s, r_min 10000 bit/s"  # the access of Section 3
AIMD_2D = (
    "alpha 1 packet, slope 10 1/s, coefficient 0.5 1/s^2, offset 1 s, tau0 0.02 s, w0 0 packet, "
    "delta_p 1 1, cap 0.9 1, "  # (6) as printed, Algorithm 1
)
DELAY_AIMD = AIMD_2D + "gamma 0 1, Delta0 0 s, kappa 0 1, hold 1.5 1, decay 0.001 1, "
GCC_REST = "alpha 0.85 1, cap 1.5 1, T 0.1 s, T_p 1 s, b 1 1"  # the draft's, and 8 % a second
TIMELY = (  # CoNEXT 2016
    "delta 1e+07 bit/s, alpha 0.875 1, beta 0.8 1, T_low 5e-05 s, T_high 0.0005 s, D_min 2e-05 s, "
    "Seg 128000 bit"
)
PARAMETERS = {
    "AIAD": BINOMIAL,
    "AIMD": f"{TCP}, {ACKS}",
    "AIPD": BINOMIAL,
    "AdaptiveGCC": f"g 0.076961 1/s, {GCC_REST}, gamma0 0.05 1, gamma_min 0.024 1, "
    "gamma_max 2.4 1, K_u 10 1/s, K_d 0.18 1/s",
    "AlphaFairPrimalDual": f"{PRIMAL}, a 2 1",
    "BBRv1": "high 2.885 1, up 1.25 1, down 0.75 1, cap 2 1, cruise 6 1, few 4 packet, "
    f"margin 0.01 1, W_R 10 s, hold 0.2 s, passed 0 1, {ACKS}",  # tcp_bbr.c
    "BBRv2": "high 2.885 1, drain 0.34662 1, up 1.25 1, down 0.75 1, cap 2 1, cap_up 2 1, "
    "least 0.5 1, few 4 packet, margin 0.01 1, every 5 s, hold 0.2 s, wait 2.5 s, most 63 packet, "
    f"thresh 0.02 1, beta 0.7 1, headroom 0.15 1, {ACKS}, enough 1.25 1",  # tcp_bbr2.c
    "BBRv3": "high 2.77 1, drain 0.5 1, up 1.25 1, down 0.9 1, cap 2 1, cap_up 2.25 1, "
    "least 0.5 1, few 4 packet, margin 0.01 1, every 5 s, hold 0.2 s, wait 2.5 s, most 63 packet, "
    f"thresh 0.02 1, beta 0.7 1, headroom 0.15 1, {ACKS}",  # draft-ietf-ccwg-bbr, 2.4 to 2.8
    "Binomial": f"k 0 1, l 1 1, {BINOMIAL}",
    "BinomialFluid": f"k 0 1, l 1 1, {BINOMIAL}",
    "CBR": "rate 500000 bit/s",  # LDCC, Fig. 5
    "Compound": f"alpha 0.125 1, beta 0.5 1, k 0.75 1, gamma 30 packet, zeta 1 1, {ACKS}",
    "Copa": f"delta 0.5 1/packet, part 0.1 1, memory 10 s, {ACKS}",  # NSDI 2018, 2.1 and 2.2
    "CxTCP": f"{TCP}, peak 0.05 1, turn 0.02 s, fall 0.04 s",
    "DCCP": "a 1 packet, b 0.5 1, r_max 2e+07 bit/s",
    "CUBIC": f"C 0.4 packet/s^3, beta 0.7 1, {ACKS}",
    "DCQCN": "R_AI 4e+07 bit/s, B 10000 packet, T 5.5e-05 s, F 5 1, g 0.00390625 1, tau 5e-05 s, "
    "tau_alpha 5.5e-05 s",  # CoNEXT 2016, Table 2
    "CUBICFluid": f"C 0.4 packet/s^3, {ACKS}",
    "DCTCP": f"g 0.0625 1, {ACKS}",  # RFC 8257, 4.2
    "DelayAIMD": DELAY_AIMD + GAP,
    "DelayedPrimal": "kappa 1 1/s, w 100000 bit/s",
    "ECF": ECF,
    "FAST": f"gamma 0.5 1, alpha 50 packet, tau 0.2 s, {CLOCK}",
    "FramedECF": f"{ECF}, gop 0.48 s",
    "GCC": f"g 0.076961 1/s, gamma 0.05 1, {GCC_REST}",
    "HTCP": "alpha 1 packet, slope 10 1/s, coefficient 0.25 1/s^2, offset 1 s, beta_min 0.5 1, "
    f"beta_max 0.8 1, hold 1.5 1, decay 0.001 1, {GAP}",  # PFLDnet 2004
    "HighSpeed": f"w_low 38 packet, w_high 83000 packet, b_low 0.5 1, b_high 0.1 1, {ACKS}",
    "Illinois": "alpha_max 10 1, alpha_min 0.3 1, beta_max 0.5 1, beta_min 0.125 1, d_m 0.1 s, "
    f"W_thresh 15 packet, {ACKS}",  # tcp_illinois.c
    "IIAD": f"{BINOMIAL}, {ACKS}",
    "ISCC": "k -1.5 1, l 2 1, m_I 20 1, m_D 2 1, C 1e+07 bit/s, R 0.1 s",
    "Kelly": "alpha 1e+06 bit/s^2, beta 10 1/s",
    "LDCC": LDCC,
    "LEDBAT": f"target 0.1 s, gain 1 packet, {CLOCK}",  # RFC 6817
    "LEDBATpp": f"target 0.06 s, {ACKS}",
    "NADA": "R_max 1.5e+06 bit/s, R_min 0 bit/s, weight 1 1, kappa 0.5 1, eta 2 1, tau_o 0.5 s, "
    "d_L 1 s, T 0.5 s",
    "NADA8698": "R_min 150000 bit/s, R_max 1.5e+06 bit/s, prio 1 1, x_ref 0.01 s, kappa 0.5 1, "
    "eta 2 1, tau 0.5 s, delta_s 0.1 s, LOGWIN 0.5 s, QEPS 0.01 s, DFILT 0.12 s, gamma_max 0.5 1, "
    "QBOUND 0.05 s, MULTILOSS 7 packet, QTH 0.05 s, LAMBDA 0.5 1, PLR_ref 0.01 1, PMR_ref 0.01 1, "
    "D_loss 0.01 s, D_mark 0.002 s, alpha 0.1 1, none 1e-09 1",  # RFC 8698, Fig. 3
    "OnOff": "peak 5e+06 bit/s, shape 1.25 1, mean_on 0.1 s, mean_off 0.1 s",
    "PlainDelayAIMD": f"{AIMD_2D}hold 1.5 1, {GAP}",
    "Poisson": "mean_rate 500000 bit/s, interval 0.1 s",
    "PoissonECF": f"{ECF}, interval 0.02 s",
    "Westwood": f"g 0.125 1, T_min 0.05 s, {ACKS}",  # tcp_westwood.c
    "Prague": f"g 0.0625 1, T_min 0.025 s, {ACKS}",  # RFC 9332, C.2
    "PrimalDual": PRIMAL,
    "PrintedDelayAIMD": DELAY_AIMD + GAP,
    "PrimalPenalty": PRIMAL,
    "RateAIMD": f"{BINOMIAL}, m 100000 bit/s, R 0.1 s",
    "RateBinomial": f"k 0 1, l 1 1, {BINOMIAL}, m 100000 bit/s, R 0.1 s",
    "RCP": "R_max 1e+09 bit/s",
    "Reno": f"{TCP}, {ACKS}",
    "SQRT": f"{BINOMIAL}, {ACKS}",
    "SampledLDCC": f"{LDCC}, T_s 0.1 s",
    "SCReAM": "T 0.025 s, T_alpha 0.01 s, up 0.125 1, down 0.0078125 1, g_v 0.25 1, beta 0.7 1, "
    "mul 0.02 1, rounds 100 1, target 0.06 s, near 0.25 1, scale 8 1, scl_min 0.1 1, slack 1.2 1, "
    "overhead 0.02 1, few 0.1 1",  # draft-ietf-ccwg-rfc8298bis-screamv2-01, 4.2 and 4.4
    "ScalableSource": "alpha 1 s, M 1 1, x_max 1e+07 bit/s",
    "ScalableTCP": "a 0.01 packet, b 0.125 1",  # CCR 2003
    "SlowStartAIMD": f"{DELAY_AIMD}pace 0 1, burst 0.001 1, trickle 0.01 1",
    "SmoothedDelayAIMD": f"{AIMD_2D}gain 0.125 1, hold 1.5 1, {GAP}",
    "SlowStartTFRC": "b 1 1, n0 100 packet, v0 3 packet, t_mbi 64 s",  # RFC 5348
    "StaticAIMD": TCP,
    "StaticFAST": "gamma 0.5 1, alpha 50 packet, tau 0.2 s",
    "StaticIIAD": BINOMIAL,
    "StaticReno": TCP,
    "StaticSQRT": BINOMIAL,
    "StaticVegas": "alpha 2 packet",
    "TFRC": "b 1 1, n0 100 packet",
    "TFRCFluid": "b 1 1, n0 100 packet",
    "TIMELY": TIMELY,
    "PatchedTIMELY": TIMELY.replace("0.8 1", "0.008 1") + ", slope 2 1",
    "Vegas": f"alpha 2 packet, {CLOCK}",
}
# Of each law: states with their units, first values, and bounds where they have some.
STATES = {
    "AIMD": "w packet 10 >= 1, s packet/s 0, u packet 10, r 1 1, F packet 0",
    "StaticAIMD": "W packet 1 >= 1",
    "DCCP": "W packet 1 >= 1, m packet 0, since s 1",
    "DelayAIMD": "w packet 10 >= 1, Delta s 0, low s 1e+06, high s 0 >= 0, paced packet/s 0, "
    "drain 1 0, F packet 0",
    "DelayedPrimal": "x bit/s 100000 >= 0",
    "FAST": "w packet 10 >= 1, delta s 0 >= 0, paced packet/s 0, F packet 0",
    "FramedECF": "r1 bit/s 2e+07, r2 bit/s 2e+07, r3 bit/s 2e+07, n1 1 -1, n2 1 -1, n3 1 -1, "
    "x bit/s 2e+07",
    "AdaptiveGCC": "A bit/s 300000 >= 0, m 1 1, p 1 0 >= 0, gamma 1 0.05 >= 0.024 <= 2.4",
    "ISCC": "x bit/s 100000 >= 0",
    "Kelly": "x bit/s 100000 >= 0",
    "LDCC": "x bit/s 100000 >= 0",
    "LEDBAT": "w packet 10 >= 2, delta s 0 >= 0, paced packet/s 0, F packet 0",
    "NADA": "R bit/s 150000 >= 0 <= 1.5e+06, x s 0 >= 0, delta s 0 >= 0",
    "NADA8698": "r bit/s 150000 >= 150000 <= 1.5e+06, x_prev s 0, p_loss 1 0, p_mark 1 0, "
    "n packet 0, calm s 0.5, Q s 0, L s 0, M s 0, G bit 0, delta s 0 >= 0",
    "PrimalDual": "x bit/s 100000 >= 0",
    "RateAIMD": "x bit/s 100000 >= 100000",
    "SampledLDCC": "x bit/s 100000 >= 0, E s^2 0, S s 0",
    "ScalableTCP": "W packet 10 >= 1",
    "SlowStartTFRC": "s0 packet 0, "
    + "".join(f"I{k} packet 100, " for k in range(1, 9))
    + "m packet 0, fast 1 1",
}


def parameters(law: Any) -> str:
    return ", ".join(f"{plain(s)} {float(v):g} {law.units[s]}" for s, v in law.params.items())


def states(law: Any) -> str:
    def value(bound: Any, z: Any, default: float) -> float:
        known = law.params | first
        return float(lambdify([*known], bound.get(z, default))(*known.values()))

    said, first = [], dict[Any, float]()
    for z in law.states:
        low, high = value(law.lower, z, -math.inf), value(law.upper, z, math.inf)
        least = f" >= {low:g}" if low > -math.inf else ""
        most = f" <= {high:g}" if high < math.inf else ""
        first[z] = value(law.initial, z, 0.0)
        said.append(f"{plain(z)} {law.units[z]} {first[z]:g}{least}{most}")
    return ", ".join(said)


@pytest.mark.parametrize("name", sources.__all__)
def test_parameters_are_those_of_the_paper(name: str) -> None:
    assert parameters(getattr(sources, name)) == PARAMETERS[name]


@pytest.mark.parametrize("name", STATES)
def test_states_begin_and_end_where_the_paper_says(name: str) -> None:
    assert states(getattr(sources, name)) == STATES[name]
