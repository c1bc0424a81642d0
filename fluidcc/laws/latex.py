"""LaTeX of a law: one row an equation, then what the names in them stand for."""

from __future__ import annotations

from typing import Any

from sympy import latex, sympify

from fluidcc.symbols import Let

__all__ = ["law_latex"]


def _show(f: Any) -> str:
    return str(latex(f, order="none"))


def _lets(roots: list[Any]) -> list[Let]:
    """Every Let below `roots`, in order of first use."""
    found: list[Let] = []
    todo = list(roots)
    while todo:
        for v in sorted(sympify(todo.pop(0)).atoms(Let), key=str):
            if v not in found:
                found.append(v)
                todo.append(v.definition)
    return found


def _dot(z: Any) -> str:
    head, _, tail = _show(z).partition("_")
    return rf"\dot{{{head}}}" + (f"_{tail}" if tail else "")


def law_latex(law: Any) -> str:
    """The law as a displayed LaTeX block, for Jupyter."""
    rows = [rf"{_dot(z)} &= {_show(f)}" for z, f in law.flow.items()]
    rows += [rf"\mathrm{{{k}}} &= {_show(f)}" for k, f in law.out.items() if f not in law.flow]
    for j in law.jumps:
        rows += [
            rf"{_show(z)} &\leftarrow {_show(f)} \quad\text{{when }} {_show(j.when)} > 0"
            + (r"\text{, when it becomes so}" if j.once else "")
            + (rf"\text{{, at most once per }} {_show(j.refractory)}" if j.refractory != 0 else "")
            for z, f in j.reset.items()
        ]
    for tick in law.ticks:
        rows += [
            rf"{_show(z)} &\leftarrow {_show(f)} \quad\text{{every }} {_show(tick.every)}"
            for z, f in tick.update.items()
        ]
    rows += [rf"{_show(z)} &\geq {_show(f)}" for z, f in law.lower.items()]
    rows += [rf"{_show(z)} &\leq {_show(f)}" for z, f in law.upper.items()]
    lets = _lets([f for _, f in law.expressions()])
    rows += [
        (r"\text{where}\quad " if i == 0 else "") + rf"{_show(v)} &= {_show(v.definition)}" for i, v in enumerate(lets)
    ]
    body = " \\\\\n".join(rows)
    return "$$\\begin{aligned}\n" + body + "\n\\end{aligned}$$"
