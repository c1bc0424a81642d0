"""``python -m benchmarks.dde_order``: order of convergence and tolerance of ``solve_dde``, into
figures/dde_order.png.

Left: the largest error of the dense output against a fixed step size, on problems with known
solutions; kinks that are mesh points leave the order at five. Right: the same error against rtol (=
atol), in units of rtol. Tsit5 is drawn; DP5, which lies close to it, is only printed.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np

from fluidcc.numerics.dde.solve import solve_dde
from fluidcc.plotting.common import STYLE
from tests.numerics.dde.problems import PROBLEMS, Problem

STEPS = 0.2 / 2.0 ** np.arange(7)
TOLERANCES = 10.0 ** -np.arange(3, 11)
FIGURE = Path(__file__).parent.parent / "figures" / "dde_order.png"


def error(
    problem: Problem, method: str, rtol: float, atol: float, step: float | None = None
) -> float:
    """The largest error of the dense output, relative where the solution is above one; NaN after
    a failure.
    """
    bounds: dict[str, Any] = {} if step is None else {"max_step": step, "first_step": step}
    result = solve_dde(
        problem.fun, problem.span, problem.history, problem.lags, method=method, rtol=rtol,
        atol=atol,
        dense_output=True, **bounds, **problem.kwargs,
    )  # fmt: skip
    if not result.success or result.sol is None:
        return float("nan")
    t = np.linspace(*problem.span, 4001)
    exact = problem.solution(t)
    return float((np.abs(result.sol(t) - exact) / np.maximum(1, np.abs(exact))).max())


def order(steps: np.ndarray, errors: np.ndarray) -> float:
    """The slope of the error over the last two halvings before rounding matters."""
    stop = int(np.argmax(errors < 5e-12)) or errors.size
    good = np.arange(stop - 3, stop)
    return float(np.polyfit(np.log(steps[good]), np.log(errors[good]), 1)[0])


def main() -> None:
    """Measure, print and draw."""
    plt.rcParams.update(STYLE)
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.6), layout="constrained")
    print(f"{'problem':<27}{'order':>12}{'':>6}{'error / rtol at 1e-3 ... 1e-10'}")
    for number, problem in enumerate(PROBLEMS.values()):
        for method, drawn in (("Tsit5", True), ("DP5", False)):
            style: dict[str, Any] = {"color": f"C{number}", "marker": "o", "markersize": 4}
            ratios = np.array([error(problem, method, tol, tol) / tol for tol in TOLERANCES])
            if drawn:
                right.loglog(TOLERANCES, ratios, label=problem.name, **style)
            slope = "-"  # at fixed steps an undeclared jump is first order by nature
            if "undeclared" not in problem.name:
                errors = np.array([error(problem, method, 0.5, 1e3, h) for h in STEPS])
                if drawn:
                    left.loglog(STEPS, errors, **style)
                slope = f"{order(STEPS, errors):.2f}"
            print(
                f"{problem.name:<27}{method:>6}{slope:>6}{'':>6}"
                f"{np.array2string(ratios, precision=1)}"
            )
    left.loglog(STEPS, 2e-3 * (STEPS / STEPS[0]) ** 5, "k--", linewidth=1, label="order 5")
    left.set(
        xlabel="step",
        ylabel="largest error",
        title="Fixed steps: the order five of the pairs is kept",
    )
    left.legend()
    right.axhline(100, color="k", linestyle="--", linewidth=1)
    right.set(
        xlabel="tolerance, rtol = atol",
        ylabel="largest error over rtol",
        title="Adaptive: below 100 tolerances",
    )
    right.invert_xaxis()
    right.legend(fontsize=8, loc="upper left", bbox_to_anchor=(1.0, 1.0))
    FIGURE.parent.mkdir(exist_ok=True)
    figure.savefig(FIGURE, dpi=120)


if __name__ == "__main__":
    main()
