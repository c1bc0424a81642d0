"""What was compiled from other sources is deleted, and nothing else."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from fluidcc.numerics.stale import discard_stale_code, hash_of


def module(path: Path) -> Any:
    path.write_text("def f():\n    pass\n")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_caches_of_other_sources_go(tmp_path: Path) -> None:
    folder, cache = tmp_path / "code", tmp_path / "cache"
    folder.mkdir()
    cache.mkdir()
    made = module(folder / "driver.py")
    function = SimpleNamespace(stats=SimpleNamespace(cache_path=str(cache)), py_func=made.f)
    sources = [folder / "driver.py"]
    compiled, foreign = cache / "driver.f-1.py311.nbi", cache / "other.f-1.py311.nbi"
    for path in (compiled, foreign):
        path.touch()
    discard_stale_code(function, sources, "stamp")  # no stamp yet: nobody knows what it was compiled from
    assert not compiled.exists()
    assert foreign.exists()
    assert (cache / "stamp").read_text() == hash_of(sources)
    compiled.touch()
    discard_stale_code(function, sources, "stamp")
    assert compiled.exists()
    sources[0].write_text("def f():\n    return 1\n")
    discard_stale_code(function, sources, "stamp")
    assert not compiled.exists()
