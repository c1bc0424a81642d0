"""``fluidcc doctor`` shows what there is, and deletes only what fluidcc wrote."""

import json
from pathlib import Path

import pytest

import fluidcc as fc
from fluidcc.cli import main
from fluidcc.cli.warm import groups
from fluidcc.laws import Source


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder."""
    monkeypatch.setenv("FLUIDCC_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr("fluidcc.cli.doctor.PACKAGE", tmp_path / "package")
    return tmp_path / "cache"


def test_it_shows_versions_cache_cores_and_a_test_run(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["doctor", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert int(said["cores"]) >= 1
    assert said["numpy"].count(".") == 2
    assert str(folder) in said["cache folder"]
    assert said["a test run"].startswith("right, in ")


def test_what_is_compiled_is_deleted_and_nothing_else(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    beside = folder.parent / "package" / "room" / "__pycache__"
    for place in (folder, beside):
        place.mkdir(parents=True)
        (place / "kernel.nbi").write_bytes(b"12345")
    source = beside.parent / "room.py"
    source.write_text("pass")
    assert main(["doctor", "--clean"]) == 0
    assert capsys.readouterr().out.startswith("2 files, 0.0 MB deleted")
    assert not folder.exists()
    assert [*beside.iterdir()] == []
    assert source.exists()


def test_a_folder_with_files_of_others_is_left_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder.mkdir()
    (folder / "thesis.tex").write_text("all of it")
    assert main(["doctor", "--clean"]) == 2
    assert "thesis.tex, which fluidcc did not write" in capsys.readouterr().err
    assert (folder / "thesis.tex").exists()


def test_a_wrong_result_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluidcc.cli import doctor

    twice = fc.CBR(rate=3e6)
    monkeypatch.setattr("fluidcc.sources.CBR", lambda rate: twice)
    assert doctor._run().startswith("WRONG: a queue of")


def test_a_missing_extra_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from fluidcc.cli import doctor

    lacks = ["no-such-package>=3; extra == 'store'", "nor-this; extra == 'docs'"]
    monkeypatch.setattr(doctor, "requires", lambda name: lacks)
    said = 'without no-such-package: pip install ".[store]", in a clone of fluidcc'
    assert [*doctor._packages()] == [("fluidcc[store]", said)]


# --- what set-up compiles -------------------------------------------------------------------------


def test_every_law_is_on_the_list() -> None:
    names = [name for group in groups() for name, _ in group]
    assert {"the network solver", "LDCC", "CBR", "DualLink"} <= set(names)
    assert len(names) == len(set(names))
    assert {law for law in fc.sources.__all__ if isinstance(getattr(fc, law), Source)} <= set(names)
