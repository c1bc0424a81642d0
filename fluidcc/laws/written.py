"""A law as people read it: its equations in LaTeX, and all there is to know of it in plain text."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sympy import Mul, exp, log, sympify
from sympy.codegen.cfunctions import expm1, log1p
from sympy.printing.latex import LatexPrinter
from sympy.printing.precedence import PRECEDENCE
from sympy.printing.str import StrPrinter

from fluidcc.laws.past import Ago
from fluidcc.symbols import SIGNAL_MEANING, SIGNAL_UNITS, Let, plain


def _rows(
    law: Any,
    *,
    show: Callable[[Any], str],
    dot: Callable[[Any], str],  # the derivative of a state
    output: str,
    equal: str,
    becomes: str,
    least: str,
    most: str,
    when: str,
    once: str,
    pause: str,
    every: str,
    where: str,
) -> Iterator[str]:
    """Yield one row an equation, then what the names in them stand for; how formulas are written,
    and what stands between them, is given.
    """
    for z, f in law.flow.items():
        yield f"{dot(z)}{equal}{show(f)}"
    for name, f in law.out.items():
        if f not in law.flow:
            yield f"{output.format(name)}{equal}{show(f)}"
    for j in law.jumps:
        then = when.format(show(j.when)) + (once if j.once else "")
        then += pause.format(show(j.refractory)) if j.refractory != 0 else ""
        yield from (f"{show(z)}{becomes}{show(f)}{then}" for z, f in j.reset.items())
    for tick in law.ticks:
        then = every.format(show(tick.every))
        yield from (f"{show(z)}{becomes}{show(f)}{then}" for z, f in tick.update.items())
    yield from (f"{show(z)}{least}{show(f)}" for z, f in law.lower.items())
    yield from (f"{show(z)}{most}{show(f)}" for z, f in law.upper.items())
    for v in _lets([f for _, f in law.expressions()]):
        yield f"{where}{show(v)}{equal}{show(v.definition)}"
        where = ""


def _lets(roots: list[Any]) -> list[Let]:
    """Return every Let below `roots`, in order of first use."""
    found: list[Let] = []
    todo = list(roots)
    while todo:
        f = sympify(todo.pop(0))
        todo += [one.written for one in sorted(f.atoms(Ago), key=str)]
        for v in sorted(f.atoms(Let), key=str):
            if v not in found:
                found.append(v)
                todo.append(v.definition)
    return found


# --- LaTeX ----------------------------------------------------------------------------------------


_WORD = re.compile(r"\\[a-z]*\{[A-Za-z]*\}|\\[A-Za-z]+|([A-Za-z]{2,})")


class _Latex(LatexPrinter):
    """Words upright, a thin space between factors, and sums that are names in brackets."""

    def _print_Symbol(self, expr: Any, style: str = "plain") -> str:
        text = super()._print_Symbol(expr)
        text = _WORD.sub(lambda m: rf"\mathrm{{{m[1]}}}" if m[1] else m[0], text)
        return rf"\left({text}\right)" if " + " in text or "/" in text else text

    def _print_Ago(self, expr: Any) -> str:
        lag = self.parenthesize(expr.written, PRECEDENCE["Mul"])
        return rf"{self._print(expr.of)}\!\left(t - {lag}\right)"

    def _print_Heaviside(self, expr: Any, exp: Any = None) -> str:
        text = rf"\left[{self._print(expr.args[0])} > 0\right]"
        return text if exp is None else f"{text}^{{{exp}}}"


_printed = _Latex({"order": "none", "mul_symbol": r" \, "}).doprint


def formula(f: Any) -> str:
    """Return a formula in LaTeX, with expm1 and log1p, which are there for digits, written out."""
    f = sympify(f).replace(log1p, lambda x: log(1 + x)).replace(exp, _power)
    return str(_printed(f.replace(expm1, lambda x: _power(x) - 1)))


def _power(x: Any) -> Any:
    """exp(x), which of n log(y) is y^n."""
    base = next((f.args[0] for f in Mul.make_args(x) if isinstance(f, log)), None)
    return exp(x) if base is None else base ** (x / log(base))


def _dot(z: Any) -> str:
    head, _, tail = formula(z).partition("_")
    if "mathrm" in head:
        return rf"\frac{{d}}{{dt}} \, {formula(z)}"
    return rf"\dot{{{head}}}" + (f"_{tail}" if tail else "")


_LATEX: dict[str, Any] = {
    "show": formula,
    "dot": _dot,
    "output": r"\mathrm{{{}}}",
    "equal": " &= ",
    "becomes": r" &\leftarrow ",
    "least": r" &\geq ",
    "most": r" &\leq ",
    "when": r" \quad\text{{when }} {} > 0",
    "once": r"\text{, when it becomes so}",
    "pause": r"\text{{, at most once per }} {}",
    "every": r" \quad\text{{every }} {}",
    "where": r"\text{where}\quad ",
}


def equations(law: Any, show: Callable[[Any], str] = formula) -> list[str]:
    """Return the rows of a law's equations in LaTeX, aligned at &; `show` writes a formula."""
    return list(_rows(law, **{**_LATEX, "show": show}))


def in_latex(law: Any) -> str:
    """Return the equations of a law for Jupyter, pages and papers."""
    return "\\begin{aligned}\n" + " \\\\\n".join(equations(law)) + "\n\\end{aligned}"


# --- plain text -----------------------------------------------------------------------------------


class _Plain(StrPrinter):
    def _print_Symbol(self, expr: Any) -> str:
        return plain(expr.name.replace("'", "\N{PRIME}"))  # or w' would be taken for w

    def _print_Ago(self, expr: Any) -> str:
        lag = self.parenthesize(expr.written, PRECEDENCE["Mul"])
        return f"{self._print(expr.of)}(t - {lag})"


_TEXT: dict[str, Any] = {
    "show": _Plain({"order": "none"}).doprint,
    "dot": lambda z: f"d{plain(z)}/dt",
    "output": "{}",
    "equal": " = ",
    "becomes": " <- ",
    "least": " >= ",
    "most": " <= ",
    "when": "  when {} > 0",
    "once": ", when it becomes so",
    "pause": ", at most once per {}",
    "every": "  every {}",
    "where": "where ",
}


def described(law: Any) -> str:
    """Return what ``help`` says of a law: what it does, equations, parameters, states, signals and
    source.
    """
    used = {s for _, f in law.expressions() for s in f.free_symbols}

    def unit(text: str) -> str:
        return "" if text == "1" else text

    def own(symbols: Iterable[Any], values: Any) -> list[list[str]]:
        return [
            [plain(s), _value(values.get(s, "")), unit(law.units.get(s, "1")),
             law.meaning.get(s, "")]
            for s in symbols
        ]  # fmt: skip

    signals = [
        [plain(s), unit(SIGNAL_UNITS[s]), SIGNAL_MEANING[s]] for s in law.inputs if s in used
    ]
    parts = {
        "Equations": list(_rows(law, **_TEXT)),
        "Parameters": _table(own(law.params, law.params)),
        "States and their initial values": _table(own(law.states, law.initial)),
        "Signals": _table(signals),
        "Source": [law.ref] if law.ref else [],
    }
    sections = [f"{title}\n{'-' * len(title)}\n" + "\n".join(rows) for title, rows in parts.items()
                if rows]  # fmt: skip
    return "\n\n".join([law.about or f"The {law.kind} law {law.name}.", *sections]) + "\n"


def _value(value: Any) -> str:
    number = isinstance(value, float) or getattr(value, "is_number", False)
    return f"{float(value):g}" if number else str(_TEXT["show"](value))


def _table(rows: list[list[str]]) -> list[str]:
    """Return lines with columns flush left; those without any text are left out."""
    used = [k for k in range(len(rows[0])) if any(row[k] for row in rows)] if rows else []
    widths = {k: max(len(row[k]) for row in rows) for k in used}
    return ["  ".join(row[k].ljust(widths[k]) for k in used).rstrip() for row in rows]
