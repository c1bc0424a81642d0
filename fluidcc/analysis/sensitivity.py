"""What moves the margin: derivatives of the rightmost root and of each margin by every parameter, exact."""

from __future__ import annotations

import html
import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from fluidcc.analysis.change import Parameter, Response, parameters, split
from fluidcc.analysis.crossing import builder
from fluidcc.analysis.matrices import Matrices, all_flows
from fluidcc.analysis.pencils import polish, response_slope, root_slope
from fluidcc.analysis.wiring import wire
from fluidcc.base.arguments import shown
from fluidcc.base.errors import UnknownName
from fluidcc.base.tables import in_columns
from fluidcc.network.patterns import near

if TYPE_CHECKING:
    import xarray as xr

    from fluidcc.analysis.report import StabilityReport

__all__ = ["QUANTITIES", "Sensitivities", "sensitivities"]

QUANTITIES = {
    "decay_rate": "1/s", "frequency": "rad/s", "gain_margin": "1", "phase_margin": "deg", "delay_margin": "s",
    "modulus_margin": "1",
}  # fmt: skip


@dataclass(frozen=True)
class Sensitivities:
    """Total derivatives: the equilibrium moves with the parameter. Those of a margin that is infinite are NaN.

    Attributes
    ----------
    parameters : tuple of Parameter
        Of identical flows, together.
    value : array (quantities,)
        The decay rate and frequency of the rightmost root, and the margins, in the order of `QUANTITIES`.
    derivative : array (parameters, quantities)
        In SI units.
    """

    parameters: tuple[Parameter, ...]
    value: NDArray[np.float64]
    derivative: NDArray[np.float64]

    @property
    def per_relative(self) -> NDArray[np.float64]:
        """Change of each quantity for a parameter twice as large, linearly: p dq/dp."""
        return self.derivative * np.array([[p.value] for p in self.parameters])

    def of(self, name: str) -> dict[str, float]:
        """Derivatives by one parameter, by quantity."""
        known = [p.name for p in self.parameters]
        if not isinstance(name, str) or name not in known:
            raise UnknownName(f"there is no parameter {shown(name)} here; {near(str(name), known)}")
        k = known.index(name)
        return dict(zip(QUANTITIES, self.derivative[k].tolist(), strict=True))

    def to_xarray(self) -> xr.Dataset:
        """``derivative`` and ``per_relative`` over (parameter, quantity), ``value`` over quantity."""
        import xarray as xr

        both = ("parameter", "quantity")
        return xr.Dataset(
            {
                "derivative": (both, self.derivative),
                "per_relative": (both, self.per_relative),
                "value": ("quantity", self.value),
            },
            {
                "parameter": [p.name for p in self.parameters],
                "quantity": list(QUANTITIES),
                "parameter_value": ("parameter", [p.value for p in self.parameters]),
                "units": ("parameter", [p.units for p in self.parameters]),
                "quantity_units": ("quantity", list(QUANTITIES.values())),
            },
        )

    def __repr__(self) -> str:
        return "\n".join(in_columns(self._rows()))

    def _repr_html_(self) -> str:
        head, *rows = ([html.escape(text) for text in row] for row in self._rows())
        body = [f"<tr><th>{row[0]}</th>{''.join(f'<td>{text}</td>' for text in row[1:])}</tr>" for row in rows]
        return f"<table><tr>{''.join(f'<th>{text}</th>' for text in head)}</tr>{''.join(body)}</table>"

    def _rows(self) -> list[list[str]]:
        """What one per cent more of each parameter changes; what moves the phase margin most comes first."""
        change = 0.01 * self.per_relative
        size = np.nan_to_num(np.abs(change[:, list(QUANTITIES).index("phase_margin")]), nan=0.0)
        size = size if size.any() else np.nan_to_num(np.abs(change[:, 0]))
        rows = [["1 % more of", "value", *(f"{q} [{u}]" for q, u in QUANTITIES.items())]]
        rows += [["now", "", *_cells(self.value)]]
        for k in np.argsort(-size, kind="stable"):
            p = self.parameters[k]
            rows.append([p.name, f"{p.value:.4g} {p.units.removesuffix('1')}".strip(), *_cells(change[k], "+")])
        return rows


def _cells(values: Any, sign: str = "") -> list[str]:
    return [format(v, f"{sign if v else ''}.3g") if np.isfinite(v) else "" for v in (values + 0.0).tolist()]


def sensitivities(report: StabilityReport) -> Sensitivities:
    """The derivatives of a report's rightmost root and margins.

    The Jacobians come from the laws, the equilibrium's motion from the implicit function theorem. At a crossover the
    frequency moves too, as its condition demands (modulus one, or phase half a turn).
    """
    point, fifo = report.point, report.delays == "fifo"
    chosen = parameters(point)
    answer = Response(point)
    root = complex(report.rightmost_roots[0])
    mode = _mode(report, root)
    build = builder(point, mode, fifo)
    root = polish(build(point), root)
    margins = report.margins
    rows = []
    for p in chosen:
        moved = answer.to(p)
        ds = root_slope(*split(build(moved)), root)
        open_, change = split(all_flows(moved, wire(moved, "open", fifo, False)))
        rows.append([-ds.real, ds.imag if root.imag >= 0 else -ds.imag, *_margin_slopes(open_, change, margins)])
    value = [-root.real, abs(root.imag), margins.gain, margins.phase, margins.delay, margins.modulus]
    return Sensitivities(tuple(chosen), np.array(value, float), np.array(rows, float))


def _mode(report: StabilityReport, root: complex) -> str:
    first = report.modes[0]
    return first.among or "loop"


def _margin_slopes(m: Matrices, d: Matrices, margins: Any) -> list[float]:
    return [
        _gain_slope(m, d, float(margins.gain), float(margins.phase_crossover)),
        _phase_slope(m, d, float(margins.phase), float(margins.crossover)),
        _delay_slope(m, d, float(margins.delay), float(margins.delay_crossover)),
        _modulus_slope(m, d, float(margins.modulus_frequency)),
    ]


def _eigenvalue(m: Matrices, d: Matrices, omega: float, like: complex) -> tuple[complex, complex, complex]:
    """The eigenvalue of L(j omega) nearest to `like`, and its derivatives by omega and by the parameter."""
    L, by_s = response_slope(m, 1j * omega)
    by_p = response_slope(m, 1j * omega, d)[1]
    values, right = np.linalg.eig(L)
    k = int(np.argmin(np.abs(values - like)))
    left = np.linalg.inv(right)[k]
    return complex(values[k]), complex(1j * (left @ by_s @ right[:, k])), complex(left @ by_p @ right[:, k])


def _gain_slope(m: Matrices, d: Matrices, gain: float, omega: float) -> float:
    if not math.isfinite(gain) or not math.isfinite(omega):
        return math.nan
    value, by_omega, by_p = _eigenvalue(m, d, omega, complex(-1 / gain))
    moved = -by_p.imag / by_omega.imag if omega > 0 else 0.0
    return (by_p.real + by_omega.real * moved) / value.real**2


def _at_modulus_one(m: Matrices, d: Matrices, omega: float, lag: float) -> tuple[float, float]:
    """Changes of the lag to -1 [rad] and of the frequency where an eigenlocus has modulus one."""
    value, by_omega, by_p = _eigenvalue(m, d, omega, -np.exp(1j * lag))
    moved = -(by_p / value).real / (by_omega / value).real
    return (by_p / value).imag + (by_omega / value).imag * moved, moved


def _phase_slope(m: Matrices, d: Matrices, phase: float, omega: float) -> float:
    if not math.isfinite(phase) or not math.isfinite(omega):
        return math.nan
    return math.degrees(_at_modulus_one(m, d, omega, math.radians(phase))[0])


def _delay_slope(m: Matrices, d: Matrices, delay: float, omega: float) -> float:
    if not math.isfinite(delay) or not math.isfinite(omega):
        return math.nan
    lag, moved = _at_modulus_one(m, d, omega, delay * omega)
    return (lag - delay * moved) / omega


def _modulus_slope(m: Matrices, d: Matrices, omega: float) -> float:
    """At a minimum over frequency only the direct change counts; at infinity, none."""
    if not math.isfinite(omega):
        return math.nan
    L, _ = response_slope(m, 1j * omega)
    change = response_slope(m, 1j * omega, d)[1]
    left, _, right = np.linalg.svd(np.eye(len(L)) + L)
    return float((left[:, -1].conj() @ change @ right[-1].conj()).real)
