"""Complex numbers eight at a time, each with its derivative: a number a lane, in the processor's
vector registers.

An array of floats holds such octets one after the other: real parts, imaginary parts, and those of
the derivatives. The operations know the rules of product and quotient, so that whoever uses them
writes no derivative. With ``NUMBA_DISABLE_JIT=1`` the same names run in NumPy.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numba import config, types
from numba.extending import intrinsic

from fluidcc.numerics.compiling import njit
from fluidcc.numerics.counted import UNCOUNTED

__all__ = [
    "LANES", "TURNED", "WIDE", "delay", "enter", "invert", "large", "lead", "multiply",
    "normalise", "slope", "subtract", "value",
]  # fmt: skip

LANES = 8
WIDE = 4 * LANES  # floats that an octet takes
# radians up to which `delay` is right: multiples of pi/2 are subtracted in three parts, of 33 bits
# each
TURNED = 1e6


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def value(work, octet, lane):  # type: ignore[no-untyped-def]
    """One number."""
    at = octet * WIDE + lane
    return complex(work[at], work[at + LANES])


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def slope(work, octet, lane):  # type: ignore[no-untyped-def]
    """Its derivative."""
    at = octet * WIDE + lane
    return complex(work[at + 2 * LANES], work[at + 3 * LANES])


@njit(no_cpython_wrapper=True, **UNCOUNTED)
def lead(work, octet, lane, number, rate):  # type: ignore[no-untyped-def]
    """Set a number and its derivative."""
    at = octet * WIDE + lane
    work[at], work[at + LANES] = number.real, number.imag
    work[at + 2 * LANES], work[at + 3 * LANES] = rate.real, rate.imag


def _get(work: Any, octet: int) -> tuple[Any, Any]:
    parts = work[octet * WIDE : (octet + 1) * WIDE].reshape(4, LANES)
    return parts[0] + 1j * parts[1], parts[2] + 1j * parts[3]


def _put(work: Any, octet: int, number: Any, rate: Any) -> None:
    parts = number.real, number.imag, rate.real, rate.imag
    work[octet * WIDE : (octet + 1) * WIDE] = np.concatenate(parts)


def _multiply_python(work: Any, out: int, a: int, b: int) -> None:
    (x, dx), (y, dy) = _get(work, a), _get(work, b)
    _put(work, out, x * y, dx * y + x * dy)


def _subtract_python(work: Any, out: int, a: int, b: int) -> None:
    (x, dx), (y, dy), (z, dz) = _get(work, a), _get(work, b), _get(work, out)
    _put(work, out, z - x * y, dz - dx * y - x * dy)


def _invert_python(work: Any, out: int, a: int) -> None:
    x, dx = _get(work, a)
    with np.errstate(all="ignore"):
        _put(work, out, 1 / x, -dx / x**2)


def _enter_python(
    work: Any, out: int, constant: float, by: float, a: int, late: float, b: int
) -> None:
    (x, dx), (y, dy) = _get(work, a), _get(work, b)
    _put(work, out, constant + by * x + late * y, by * dx + late * dy)


def _delay_python(work: Any, out: int, a: int, lag: float) -> None:
    late = np.exp(-1j * lag * _get(work, a)[0].imag)
    _put(work, out, late, -lag * late)


def _large_python(work: Any, out: int, a: int, limit: float) -> None:
    x, _ = _get(work, a)
    work[out * WIDE : out * WIDE + LANES] += ~(np.abs(x.real) + np.abs(x.imag) < limit)


def _normalise_python(work: Any, out: int, size: int) -> None:
    x, dx = _get(work, out)
    length = np.abs(x.real) + np.abs(x.imag)
    with np.errstate(all="ignore"):
        _put(work, out, x / length, dx / length)
    work[size * WIDE : size * WIDE + LANES] *= length


if config.DISABLE_JIT:
    multiply: Callable[..., Any] = _multiply_python
    subtract: Callable[..., Any] = _subtract_python
    invert: Callable[..., Any] = _invert_python
    enter: Callable[..., Any] = _enter_python
    delay: Callable[..., Any] = _delay_python
    large: Callable[..., Any] = _large_python
    normalise: Callable[..., Any] = _normalise_python
else:
    from llvmlite import ir

    _VECTOR = ir.VectorType(ir.DoubleType(), LANES)
    _FUSED = ("contract",)  # a product and a sum may be one operation
    _HALF_PI = (
        float.fromhex("0x1.921fb544p+0"),
        float.fromhex("0x1.0b4611a6p-34"),
        float.fromhex("0x1.3198a2e037073p-69"),
    )
    _SINE = (
        -1 / 6,
        8.33333333332248946124e-3,
        -1.98412698298579493134e-4,
        2.75573137070700676789e-6,
        -2.50507602534068634195e-8,
        1.58969099521155010221e-10,
    )
    _COSINE = (
        4.16666666666666019037e-2,
        -1.38888888888741095749e-3,
        2.48015872894767294178e-5,
        -2.75573143513906633035e-7,
        2.08757232129817482790e-9,
        -1.13596475577881948265e-11,
    )

    class _Octets:
        """What reads and writes octets of an array in the code that is being built."""

        def __init__(self, context, builder, kind, array) -> None:  # type: ignore[no-untyped-def]
            self.builder = builder
            self.data = context.make_array(kind)(context, builder, array).data

        def _at(self, octet: Any, part: int) -> Any:
            word = octet.type
            place = self.builder.add(self.builder.mul(octet, word(WIDE)), word(part * LANES))
            return self.builder.bitcast(self.builder.gep(self.data, [place]), _VECTOR.as_pointer())

        def get(self, octet: Any, parts: int = 4) -> list[Any]:
            return [self.builder.load(self._at(octet, part), align=8) for part in range(parts)]

        def put(self, octet: Any, numbers: Any) -> None:
            for part, number in enumerate(numbers):
                self.builder.store(number, self._at(octet, part), align=8)

        def sum(self, *terms: Any) -> Any:
            """Of products, those after a None subtracted."""
            total, sign = None, self.builder.fadd
            for term in terms:
                if term is None:
                    sign = self.builder.fsub
                    continue
                product = self.builder.fmul(*term, flags=_FUSED)
                total = product if total is None else sign(total, product, flags=_FUSED)
            return total

        def product(self, a: Any, b: Any) -> list[Any]:
            (x, y, dx, dy), (u, v, du, dv) = a, b
            return [
                self.sum((x, u), None, (y, v)),
                self.sum((x, v), (y, u)),
                self.sum((dx, u), (x, du), None, (dy, v), (y, dv)),
                self.sum((dx, v), (dy, u), (x, dv), (y, du)),
            ]

        def all(self, number: Any) -> Any:
            """A number in every lane."""
            one = self.builder.insert_element(
                ir.Constant(_VECTOR, ir.Undefined), number, ir.IntType(32)(0)
            )
            mask = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)
            return self.builder.shuffle_vector(one, ir.Constant(_VECTOR, ir.Undefined), mask)

        def length(self, a: Any) -> Any:
            """Sum of the sizes of both parts."""
            b, none = self.builder, ir.Constant(_VECTOR, None)
            return b.fadd(*(b.select(b.fcmp_ordered("<", x, none), b.fneg(x), x) for x in a[:2]))

        def rounded(self, number: Any) -> Any:
            """The nearest whole numbers: in the sum there is no place for more digits."""
            most = self.all(ir.DoubleType()(1.5 * 2.0**52))
            return self.builder.fsub(self.builder.fadd(number, most), most)

        def series(self, z: Any, factors: tuple[float, ...]) -> Any:
            """A polynomial, by Horner's rule."""
            total = self.all(ir.DoubleType()(factors[-1]))
            for factor in factors[-2::-1]:
                total = self.builder.fadd(
                    self.builder.fmul(total, z, _FUSED), self.all(ir.DoubleType()(factor)), _FUSED
                )
            return total

        def turn(self, angle: Any) -> tuple[Any, Any]:
            """Cosine and sine of angles up to `TURNED`, to a unit of the last digit of one."""
            b, kind = self.builder, ir.DoubleType()
            quarters = self.rounded(b.fmul(angle, self.all(kind(2 / np.pi))))
            for part in _HALF_PI:
                angle = b.fsub(angle, b.fmul(quarters, self.all(kind(part)), _FUSED), _FUSED)
            z = b.fmul(angle, angle)
            sine = b.fadd(angle, b.fmul(b.fmul(angle, z), self.series(z, _SINE), _FUSED), _FUSED)
            half, one = b.fmul(z, self.all(kind(0.5))), self.all(kind(1.0))
            cosine = b.fsub(
                one,
                b.fsub(half, b.fmul(b.fmul(z, z), self.series(z, _COSINE), _FUSED), _FUSED),
                _FUSED,
            )
            whole = self.rounded(
                b.fsub(b.fmul(quarters, self.all(kind(0.25))), self.all(kind(0.375)))
            )
            quarter = b.fsub(quarters, b.fmul(whole, self.all(kind(4.0))))  # 0, 1, 2 or 3
            is_one, is_two, is_three = (
                b.fcmp_ordered("==", quarter, self.all(kind(float(k)))) for k in (1, 2, 3)
            )
            odd = b.or_(is_one, is_three)
            x, y = b.select(odd, sine, cosine), b.select(odd, cosine, sine)
            x = b.select(b.or_(is_one, is_two), b.fneg(x), x)
            return x, b.select(b.or_(is_two, is_three), b.fneg(y), y)

    def _built(compute):  # type: ignore[no-untyped-def]
        def codegen(context, builder, sig, args):  # type: ignore[no-untyped-def]
            compute(_Octets(context, builder, sig.args[0], args[0]), *args[1:])
            return context.get_dummy_value()

        return codegen

    _I, _F = types.int64, types.float64

    @intrinsic
    def multiply(typingctx, work, out, a, b):  # type: ignore[no-untyped-def]
        """out = a b."""

        def compute(o, out, a, b):  # type: ignore[no-untyped-def]
            o.put(out, o.product(o.get(a), o.get(b)))

        return types.void(work, _I, _I, _I), _built(compute)

    @intrinsic
    def subtract(typingctx, work, out, a, b):  # type: ignore[no-untyped-def]
        """out = out - a b."""

        def compute(o, out, a, b):  # type: ignore[no-untyped-def]
            product = o.product(o.get(a), o.get(b))
            o.put(out, [o.builder.fsub(x, y) for x, y in zip(o.get(out), product, strict=True)])

        return types.void(work, _I, _I, _I), _built(compute)

    @intrinsic
    def invert(typingctx, work, out, a):  # type: ignore[no-untyped-def]
        """out = 1 / a."""

        def compute(o, out, a):  # type: ignore[no-untyped-def]
            b, number = o.builder, o.get(a)
            norm = b.fdiv(o.all(ir.DoubleType()(1.0)), o.sum((number[0],) * 2, (number[1],) * 2))
            x, y = b.fmul(number[0], norm), b.fneg(b.fmul(number[1], norm))
            zero = ir.Constant(_VECTOR, None)
            turned = o.product([x, y, zero, zero], [x, y, zero, zero])[:2]
            rate = o.product([*turned, zero, zero], [*number[2:], zero, zero])[:2]
            o.put(out, [x, y, *(b.fneg(part) for part in rate)])

        return types.void(work, _I, _I), _built(compute)

    @intrinsic
    def enter(typingctx, work, out, constant, by, a, late, b):  # type: ignore[no-untyped-def]
        """out = constant + by a + late b, of three real numbers."""

        def compute(o, out, constant, by, a, late, b):  # type: ignore[no-untyped-def]
            by, late = o.all(by), o.all(late)
            parts = [o.sum((by, x), (late, y)) for x, y in zip(o.get(a), o.get(b), strict=True)]
            o.put(out, [o.builder.fadd(parts[0], o.all(constant)), *parts[1:]])

        return types.void(work, _I, _F, _F, _I, _F, _I), _built(compute)

    @intrinsic
    def delay(typingctx, work, out, a, lag):  # type: ignore[no-untyped-def]
        """out = exp(-lag a) of numbers on the imaginary axis that turn it by up to `TURNED`,
        with derivatives by a.
        """

        def compute(o, out, a, lag):  # type: ignore[no-untyped-def]
            lag = o.all(lag)
            x, y = o.turn(o.builder.fmul(lag, o.get(a, 2)[1]))
            y = o.builder.fneg(y)
            o.put(out, [x, y, *(o.builder.fneg(o.builder.fmul(lag, part)) for part in (x, y))])

        return types.void(work, _I, _I, _F), _built(compute)

    @intrinsic
    def large(typingctx, work, out, a, limit):  # type: ignore[no-untyped-def]
        """Add one to the real part of `out` where `a` is not below a limit, or no number."""

        def compute(o, out, a, limit):  # type: ignore[no-untyped-def]
            below = o.builder.fcmp_ordered("<", o.length(o.get(a, 2)), o.all(limit))
            one, none = o.all(ir.DoubleType()(1.0)), ir.Constant(_VECTOR, None)
            o.put(out, [o.builder.fadd(o.get(out, 1)[0], o.builder.select(below, none, one))])

        return types.void(work, _I, _I, _F), _built(compute)

    @intrinsic
    def normalise(typingctx, work, out, size):  # type: ignore[no-untyped-def]
        """Divide by the sum of the sizes of both parts, by which the real part of `size` is
        multiplied.
        """

        def compute(o, out, size):  # type: ignore[no-untyped-def]
            number = o.get(out)
            length = o.length(number)
            o.put(size, [o.builder.fmul(o.get(size, 1)[0], length)])
            inverse = o.builder.fdiv(o.all(ir.DoubleType()(1.0)), length)
            o.put(out, [o.builder.fmul(part, inverse) for part in number])

        return types.void(work, _I, _I), _built(compute)
