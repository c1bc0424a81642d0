"""Take out of the notebooks what changes from run to run without meaning.

That is when each cell ran, on what, its bars, in how many pieces its text came, and what pandas
calls its tables; and what lives only while a kernel runs, in cells with the tag "live".

After ``make notebooks ARGS=--overwrite``, which keeps the outputs. A notebook that is tidy is left
untouched.
"""

from __future__ import annotations

import re
from pathlib import Path

import nbformat

FOLDER = Path(__file__).resolve().parent.parent / "notebooks"
_TABLE, _ADDRESS = re.compile(r"\bT_[0-9a-f]{5}(?=[_\W])"), re.compile(r" at 0x[0-9a-f]+>")
_CELL = re.compile(r"\S+/ipykernel_\d+/\d+\.py:\d+: ")  # where a warning is of
KERNEL = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}


def is_bar(output: nbformat.NotebookNode) -> bool:
    """Whether it is a progress bar, which begins its line anew each time."""
    return bool(
        output.output_type == "stream" and output.name == "stderr" and output.text.startswith("\r")
    )


def joined(outputs: list[nbformat.NotebookNode]) -> list[nbformat.NotebookNode]:
    """The outputs, with text that follows text of the same stream in one piece."""
    found: list[nbformat.NotebookNode] = []
    for output in outputs:
        before = found[-1] if found else None
        if (
            before is not None
            and output.output_type == before.output_type == "stream"
            and output.name == before.name
        ):
            before.text += output.text
        else:
            found.append(output)
    return found


def named(output: nbformat.NotebookNode, number: int) -> nbformat.NotebookNode:
    """The output with a name for its table that is not drawn by chance, and without an object's
    address or the file of a cell.
    """
    if output.output_type == "stream":
        output.text = _CELL.sub("", output.text)
    for kind, text in output.get("data", {}).items():
        if kind in ("text/html", "text/plain"):
            output.data[kind] = _ADDRESS.sub(">", _TABLE.sub(f"T_{number:05x}", text))
    return output


def tidy(file: Path) -> bool:
    """Tidy one notebook; return whether that changed it."""
    before = file.read_text(encoding="utf-8")
    book = nbformat.reads(before, as_version=4)
    book.metadata = {"kernelspec": KERNEL, "language_info": {"name": "python"}}
    for number, cell in enumerate(book.cells):
        cell.metadata.pop("execution", None)
        if cell.cell_type == "code":
            cell.outputs = joined(
                [named(output, number) for output in cell.outputs if not is_bar(output)]
            )
            if "live" in cell.metadata.get("tags", ()):
                cell.outputs = []
    after = nbformat.writes(book).rstrip("\n") + "\n"
    if after != before:
        file.write_text(after, encoding="utf-8")
    return after != before


if __name__ == "__main__":
    for file in sorted(FOLDER.glob("*.ipynb")):
        if tidy(file):
            print(f"{file.name}: tidied")
