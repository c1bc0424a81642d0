"""A stability report as HTML: the verdict, the numbers, and the Nyquist picture."""

from __future__ import annotations

import base64
import html
import io
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from fluidcc.analysis.report import StabilityReport

__all__ = ["report_html", "rows_of"]


def rows_of(report: StabilityReport) -> list[tuple[str, str]]:
    """What there is to say, as pairs of name and value."""
    m = report.margins
    rows = [
        ("verdict", report.verdict),
        ("regime", report.regime),
        ("unstable roots", f"{report.unstable} ({report.encirclements} encirclements of -1)"),
        ("rightmost roots [1/s]", ", ".join(_root(s) for s in report.rightmost_roots if s.imag >= 0)),
        ("decay rate", f"{report.decay_rate:.5g} 1/s"),
        *_gains(report),
        ("phase margin", f"{m.phase:.5g} deg at {m.crossover:.4g} rad/s"),
        ("delay margin, every flow", f"{m.delay:.5g} s at {m.delay_crossover:.4g} rad/s"),
        ("modulus margin", f"{m.modulus:.5g} at {m.modulus_frequency:.4g} rad/s"),
        ("sensitivity peaks", f"Ms {m.ms:.4g}, Mt {m.mt:.4g}"),
    ]
    fair = report.fairness
    if fair is not None:
        of = f" among {fair.among}" if fair.among else ""
        rows.append(("fairness mode", f"{_root(fair.root)} 1/s{of}, halves in {fair.half_life:.4g} s"))
    rows += [("other equilibria along", f"{d} (roots at zero left out: {d.multiplicity})") for d in report.free]
    rows += [("doubtful", text) for text in report.warnings]
    if report.trackers:
        rows.append(("taken as parameters", ", ".join(report.trackers)))
    for name, proof in report.certificates.items():
        text = f"{proof.unstable} unstable roots, proved" if proof.certified else f"not proved: {proof.reason}"
        if proof.abscissa is not None:
            text += f"; the rightmost between {proof.abscissa[0]:.9g} and {proof.abscissa[1]:.9g} 1/s"
        rows.append((f"certificate, {name}", text))
    return rows


def _gains(report: StabilityReport) -> list[tuple[str, str]]:
    """Factors on all gains that bring a root to the axis: an unstable loop may lack the one below one."""
    m = report.margins
    found = [("gain margin" if report.stable else "boundary at higher gain", m.gain, m.phase_crossover)]
    if m.gain_down:
        found.append(("boundary at lower gain", m.gain_down, m.phase_crossover_down))
    return [(name, f"{gain:.5g} at {omega:.4g} rad/s") for name, gain, omega in found]


def _root(s: Any) -> str:
    return f"{s.real:.5g}" + (f" \u00b1 {abs(s.imag):.5g}j" if abs(s.imag) > 1e-12 else "")


def report_html(report: StabilityReport) -> str:
    """The table and the figure."""
    left = "style='text-align:left'"
    body = "".join(
        f"<tr><th {left}>{html.escape(k)}</th><td {left}>{html.escape(v)}</td></tr>" for k, v in rows_of(report)
    )
    return f"<table>{body}</table>{_figure(report)}"


def _figure(report: StabilityReport) -> str:
    """Nyquist plot as an image in the page; made without pyplot, so that no figure is left open."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from fluidcc.plotting import nyquist

    if report.regime == "no feedback":
        return ""
    figure = Figure(figsize=(5.2, 4.4), layout="constrained")
    FigureCanvasAgg(figure)
    nyquist(report, ax=figure.subplots())
    file = io.BytesIO()
    figure.savefig(file, format="png", dpi=110)
    return f"<img alt='Nyquist plot' src='data:image/png;base64,{base64.b64encode(file.getvalue()).decode()}'/>"
