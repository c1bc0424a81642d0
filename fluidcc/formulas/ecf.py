"""P-AQM and explicit congestion feedback: gains, periods, set points and overhead in closed form.

Equation numbers are those of the paper on ECF and P-AQM, whose formulas are rebuilt from its prose.
Near equilibrium the inner loop is a recursion over its period dT and the outer loop one over T_ECF,
in which a new rate is felt at the queue R later, R being the round trip between sources and router.
A loop settles if all its multipliers lie inside the unit circle; the radius is that of the largest.
"""

from __future__ import annotations

from functools import partial

from sympy import Eq, I, Min, Piecewise, Rational, Symbol, ceiling, cos, sin, sqrt

from fluidcc.formulas._formula import Bound, Formula
from fluidcc.symbols import nonnegative, positive

__all__ = [
    "fair_share", "hold_error", "inner_radius", "inner_radius_late", "overhead",
    "overhead_period", "period", "set_point", "v1_radius", "v2_radius",
]  # fmt: skip

K, T, R, c, size, N, r_max, T_s, dT = positive("K T R c ell N r_max T_s dT")
n = nonnegative("n")
omega, part = positive("omega part")
z = Symbol("z")
_UNITS = {
    T: "s",
    R: "s",
    T_s: "s",
    dT: "s",
    c: "bit/s",
    r_max: "bit/s",
    size: "bit/packet",
    omega: "1/s",
}
formula = partial(Formula, units=_UNITS)

inner_radius = formula(
    "inner_radius",
    (K,),
    sqrt((1 - K) ** 2),
    ref="(1), the factor that an error of the queue keeps in one period dT; without computing "
    "delay [1]",
)
_late = (1 + sqrt(1 - 4 * K)) / 2
inner_radius_late = formula(
    "inner_radius_late",
    (K,),
    Piecewise((_late, Rational(1, 4) >= K), (sqrt(K), True)),
    ref="(1), the same where u is applied one period after it was computed: roots of z^2 - z + K "
    "= 0 [1]",
    claims={
        "below 1/4 the larger root": Eq((z**2 - z + K).subs(z, _late).expand(), 0),
        "above 1/4 the product of the roots": Eq((_late * (1 - _late)).expand(), K),
    },
)

_inside = Bound(R < T, "within a period the new rate must be felt; the recursion needs R below ", T)
_turn = sqrt(4 * R / T - (R / T) ** 2)  # R < T, so the roots of V1 are a pair
_pair = ((R / T + I * _turn) / 2, (R / T - I * _turn) / 2)
v1_radius = formula(
    "v1_radius",
    (T, R),
    sqrt(R / T),
    domain=(_inside,),
    ref="(9) in the form V1, which takes the new rate to come at once: roots of z^2 - R z/T + R/T "
    "= 0 [1]; it settles iff T > R",
    claims={
        "a root of V1": Eq((z**2 - R * z / T + R / T).subs(z, _pair[0]).expand(), 0),
        "its modulus": Eq(sqrt((_pair[0] * _pair[1]).expand()), sqrt(R / T)),
    },
)
v2_radius = formula(
    "v2_radius",
    (T, R),
    R / (T - R),
    domain=(_inside,),
    ref="(9) in the form V2, which allows for the old rate: roots 0 and -R/(T - R) [1]; it "
    "settles iff T > 2 R",
    claims={"at the limit": Eq((R / (T - R)).subs(T, 2 * R), 1)},
)
period = formula(
    "period",
    (R, T_s, dT),
    dT * ceiling((R + T_s) / dT - 1e-9),
    ref="(4), T_ECF: the longest round trip and T_s, rounded up to a multiple of dT [s]",
)
set_point = formula(
    "set_point",
    (n, size, c),
    n * size / c,
    ref="the time that n packets of ell bits take [s]: the queueing delay of n of them, or dT in "
    "packet times, for which the paper recommends 50 to 100",
)
fair_share = formula(
    "fair_share",
    (N, c, r_max),
    Min(r_max, c / N),
    ref="the max-min share of each of N equal sources on one link [bit/s]",
)
overhead = formula(
    "overhead",
    (N, T, size),
    N * size / T,
    defaults={size: 8 * 56},
    ref="what reports of ell bits to each of N sources every T take [bit/s]; an ICMP packet has "
    "56 bytes",
)
overhead_period = formula(
    "overhead_period",
    (N, c, part, size),
    N * size / (part * c),
    defaults={part: 0.05, size: 8 * 56},
    ref="the least T_ECF at which reports to N sources take that part of c bit/s [s]: the paper "
    "names RTCP's 5 %",
    claims={"it inverts the overhead": Eq(overhead.form.subs(T, N * size / (part * c)), part * c)},
)
_x = omega * T / 2
hold_error = formula(
    "hold_error",
    (omega, T),
    1 - (sin(_x) / _x) ** 2,
    ref="by how much the zero-order-hold form of a sampled queue, (1 - e^(-sT))/(s T)^2, falls "
    "short of the sampled "
    "loop at s = j omega [1]; at most (omega T)^2/12, and meaningless beyond omega = pi/T",
    # aliases add up: sum over k of 1/(x + pi k)^2 = 1/sin^2 x
    claims={
        "form over sum of all aliases": Eq(
            (2 - 2 * cos(2 * _x)) / (2 * _x) ** 2, (sin(_x) / _x) ** 2
        )
    },
)
