"""Whether anything is compiled after ``fluidcc warm``: ``python tools/warmed.py [--kept]``.

It warms an empty cache, or takes with ``--kept`` the one that ``make setup`` has just left, and
then makes the usual calls, each in a fresh process. What adds a file is told, and is an error.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import fluidcc
from fluidcc.numerics.compiling import cache_folder

HEAD = """
import warnings
import numpy as np
import fluidcc as fc
warnings.simplefilter("ignore")
net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s", "buffer": "100 ms"}, rtt="50 ms")
reno = fc.dumbbell([fc.AIMD] * 2, {"capacity": "10 Mbit/s", "buffer": "50 ms"}, rtt="60 ms")
quiet = {"progress": False, "executor": "serial"}
"""
CALLS = {
    "a run": "fc.simulate(net, 5)",
    "a run that goes on": "fc.simulate(net, 3, restart=fc.simulate(net, 2))",
    "jumps of five flows": "fc.simulate(fc.dumbbell([fc.AIMD] * 5, "
    "{'capacity': 1e7, 'buffer': 5e5}, rtt='60 ms'), 5)",
    "twenty flows, frozen delays": "fc.simulate(fc.dumbbell([fc.LDCC] * 20, {'capacity': 1e7}, "
    "rtt=list(np.linspace(0.02, 0.2, 20))), 5, delays='frozen')",
    "an equilibrium": "fc.equilibrium(net)",
    "a verdict": "r = fc.stability(net); r._repr_html_(), r.rightmost_roots, r.sensitivities",
    "a verdict over RED": "fc.stability(fc.dumbbell([fc.Reno] * 4, "
    "{'capacity': 1e7, 'law': fc.RED}, rtt=[0.1, 0.1, 0.2, 0.2]))._repr_html_()",
    "a boundary": "fc.stability_boundary(net, 'beta')",
    "a sweep of margins": "fc.sweep(net, {'beta': np.linspace(0.05, 0.3, 12), 'eta': [0.2, 0.4]}, "
    "['stable', 'delay_margin', 'gain_margin', 'rightmost_root'], **quiet)",
    "a sweep of runs": "fc.sweep(net, {'beta': np.linspace(0.05, 0.3, 12)}, "
    "['mean_rate', 'std_rate', 'max_rtt'], until=5, **quiet)",
    "solve_dde": "fc.solve_dde(lambda t, y, Z: -Z[:, 0], (0, 5), [1.0], [1.0])",
    "a limit cycle": "fc.limit_cycle(reno)",
    "claims": "fc.claims.table('ldcc', only='(18)'); fc.prove(fc.LDCC)",
}


def main() -> int:
    """Return how many calls have compiled something, or failed."""
    if "--kept" in sys.argv[1:]:
        return _calls({**os.environ}, cache_folder(), Path(fluidcc.__file__).parent)
    with tempfile.TemporaryDirectory(prefix="warmed-") as made:
        folder = Path(made).resolve()
        where = {"FLUIDCC_CACHE_DIR": str(folder / "laws"), "NUMBA_CACHE_DIR": str(folder / "rest")}
        env = {**os.environ, **where}
        subprocess.run([sys.executable, "-m", "fluidcc.cli.warm"], env=env, check=True)
        return _calls(env, folder)


def _calls(env: dict[str, str], *folders: Path) -> int:
    wrong = 0
    for name, call in CALLS.items():
        before = _files(folders)
        done = subprocess.run([sys.executable, "-c", HEAD + call], env=env, check=False)
        new = sorted(path.name for path in _files(folders) - before)
        wrong += bool(new or done.returncode)
        print(f"{name}: {', '.join(new) or 'nothing compiled'}", flush=True)
    return wrong


def _files(folders: tuple[Path, ...]) -> set[Path]:
    """What numba keeps: an index (nbi) of what it has compiled (nbc)."""
    return {path for folder in folders for path in folder.rglob("*.nb?")}


if __name__ == "__main__":
    sys.exit(main())
