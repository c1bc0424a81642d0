"""`reproduce`: every figure, scenario and claim, recomputed into a folder."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from fluidcc.base.arguments import explained, flag, shown, whole
from fluidcc.base.errors import InvalidInput, UnknownName
from fluidcc.base.files import check_local, told_by_system
from fluidcc.base.progress import bar_class, tell, together, watched
from fluidcc.network.patterns import near
from fluidcc.network.scenarios import scenarios
from fluidcc.papers.model import MEANING, claims_of, papers
from fluidcc.papers.tables import Row, Table, tested

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.figure import Figure

_MADE = "Made by `fluidcc reproduce`"  # in claims.md: by this a folder is known


@explained
def figure(name: str) -> Figure:
    """Return a figure of a paper, or of a ready scenario that has none, drawn anew.

    Parameters
    ----------
    name : str
        That of its file, such as ``"ldcc_fig5"``.

    Raises
    ------
    UnknownName
        If there is no such figure.

    Examples
    --------
    >>> import fluidcc as fc
    >>> fc.claims.figure("ldcc_fig2").savefig("ldcc_fig2.pdf")  # doctest: +SKIP

    Its curves as numbers are ``fc.claims.data("ldcc_fig2")``, and the networks of a paper's figures
    are ``fc.scenarios``, by the same names.
    """
    drawings = _drawings()
    if str(name) not in drawings:
        raise UnknownName(f"there is no figure {shown(name)}; {near(str(name), drawings)}")
    return drawings[str(name)]()


@explained
def data(name: str) -> xr.Dataset:
    """Return the curves of a figure, drawn anew: what `figure` shows, as numbers.

    Parameters
    ----------
    name : str
        That of its file, such as ``"ldcc_fig5"``.

    Returns
    -------
    xarray.Dataset
        ``x`` and ``y`` over ``line`` and ``point``, NaN beyond a line's end; with the ``panel`` of
        each line, from 0, its ``label`` and the panel's ``xlabel``, ``ylabel`` and ``title``. Areas
        and maps are not in it.

    Raises
    ------
    UnknownName
        If there is no such figure.

    Examples
    --------
    >>> import fluidcc as fc
    >>> curves = fc.claims.data("ldcc_fig2")
    >>> curves.x.dims, str(curves.xlabel.values[0])
    (('line', 'point'), 'one-way delay $e$ [ms]')
    """
    import xarray as xr

    about, drawn = [], []
    for panel, ax in enumerate(figure(name).axes):
        place = (ax.get_xlabel(), ax.get_ylabel(), ax.get_title())
        for line in ax.get_lines():
            label = str(line.get_label())
            about.append((panel, "" if label.startswith("_") else label, *place))
            drawn.append(np.array(line.get_data(orig=False), float))
    both = np.full((2, len(drawn), max((d.shape[1] for d in drawn), default=0)), np.nan)
    for k, points in enumerate(drawn):
        both[:, k, : points.shape[1]] = points
    words = ("panel", "label", "xlabel", "ylabel", "title")
    coords = {w: ("line", list(v)) for w, v in zip(words, zip(*about, strict=True), strict=False)}
    dims = ("line", "point")
    return xr.Dataset({"x": (dims, both[0]), "y": (dims, both[1])}, coords, {"figure": name})


@explained
def reproduce(
    folder: str | Path = "figures",
    *,
    force: bool = False,
    progress: bool | None = None,
    workers: int = 1,
) -> Table:
    """Recompute every figure, every ready scenario and every claim, and write pictures and tables.

    Parameters
    ----------
    folder : str or Path
        Where to; made if it is missing. Written are ``claims.md``, one picture for each figure of a
        paper (``ldcc_fig5.png``, ...), and one for each ready scenario without such a figure. In a
        folder that this function has made, they are replaced. Nothing in them depends on when they
        were made. On another kind of processor, which rounds otherwise, the tables print the same,
        as far as has been seen, but some pixels of pictures change.
    force : bool
        Replace files of these names in any folder.
    progress : bool, optional
        Show progress bars; by default in a terminal or notebook.
    workers : int
        In how many processes the papers are worked on side by side. With more than one, a script
        must call this below ``if __name__ == "__main__":``.

    Returns
    -------
    Table
        The claims, as in ``claims.md``.

    Raises
    ------
    InvalidInput
        If files of these names are in a folder that this function has not made.

    Examples
    --------
    >>> import fluidcc as fc
    >>> rows = fc.claims.reproduce("figures")  # doctest: +SKIP
    """
    if not isinstance(folder, str | Path) or "\0" in str(folder):
        raise InvalidInput(f"folder is {shown(folder)}; give the name of one, such as 'figures'")
    check_local(folder, "folder")
    target = Path(folder)
    flag(progress, "progress", unset=True)
    flag(force, "force")
    try:
        target.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidInput(
            f"folder {target} cannot be made ({told_by_system(error)}); give another"
        ) from None
    drawings = _drawings()
    if not force:
        _check_folder(target, drawings)
    rooms = [*papers(), ""]
    work = partial(_part, target)
    with bar_class()(
        total=len(drawings) + len(claims_of(None)),
        desc="figures and claims",
        leave=False,
        disable=not (watched() if progress is None else progress),
    ) as bar:
        found = together(work, rooms, whole(workers, "workers", least=1), bar)
    rows = Table(tuple(row for part in found for row in part))
    (target / "claims.md").write_text(_document(rows), encoding="utf-8")
    return rows


def _check_folder(target: Path, drawings: Iterable[str]) -> None:
    """Refuse to replace what others have made."""
    with suppress(OSError, ValueError):  # no such file, or one of others
        if _MADE in (target / "claims.md").read_text(encoding="utf-8"):
            return
    for name in (*(f"{name}.png" for name in drawings), "claims.md"):
        if os.path.lexists(target / name):
            raise InvalidInput(
                f"{target / name} is there already, and not made by `fluidcc reproduce`; give "
                "another folder, or force=True (--force in a shell) to replace it"
            )


def _part(target: Path, paper: str) -> list[Row]:
    """Make the figures of a paper and test its claims; without one, draw the other scenarios."""
    for name, drawing in (_figures(paper) if paper else _other()).items():
        _save(drawing(), target / f"{name}.png")
        tell(name)
    rows = []
    for claim in claims_of(paper) if paper else ():
        rows.append(Row(claim, tested(claim)))
        tell(claim.id)
    return rows


def _drawings() -> dict[str, Callable[[], Figure]]:
    """Every picture by name: the papers' figures, and the scenarios that none of them shows."""
    found: dict[str, Callable[[], Figure]] = {}
    for paper in papers():
        found |= _figures(paper)
    return found | _other()


def _other() -> dict[str, Callable[[], Figure]]:
    """Pictures of the scenarios that no paper's figure shows."""
    shown = {name for paper in papers() for name in _figures(paper)}
    return {name: partial(_scenario, name) for name in scenarios if name not in shown}


def _figures(paper: str) -> dict[str, Callable[[], Figure]]:
    found: dict[str, Callable[[], Figure]] = import_module(
        f"fluidcc.papers.{paper}.figures"
    ).FIGURES
    return found


def _scenario(name: str) -> Figure:
    from fluidcc.papers.drawing import Figures
    from fluidcc.plotting import timeseries

    s = scenarios[name]

    def draw(axes: Any) -> None:
        run = s.simulate(progress=False)
        told = "queueing_delay" if bool(run.queueing_delay.any()) else "link_price"
        timeseries(run, ("rate", told), ax=axes)
        axes[0].set_xlabel("")

    figure = Figures().panels(name, 2, size=(8.0, 5.6), sharex=True, title=s.title or name)(draw)()
    figure.align_ylabels()
    return figure


def _save(figure: Any, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    figure.savefig(path, dpi=110, metadata={"Software": None})  # neither date nor version inside


def _document(rows: Table) -> str:
    lines = ["# Claims", "", f"{_MADE}; every value is computed anew. {rows.summary()}.", ""]
    lines += [f"- **{v}**: {meaning}" for v, meaning in MEANING.items()]
    for paper in papers():
        of_paper = rows.filter(lambda r, paper=paper: r.paper == paper)  # type: ignore[misc]
        lines += ["", f"## {paper}", "", of_paper.to_markdown().rstrip()]
        for some, what in (
            (of_paper.filter(erratum=True), "About misprints and ambiguities"),
            (of_paper.filter(own=True), "The library's own, which the paper does not have"),
        ):
            if some:
                lines += ["", f"{what} ({len(some)}): {', '.join(r.id for r in some)}."]
    return "\n".join(lines) + "\n"
