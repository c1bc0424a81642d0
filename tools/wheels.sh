#!/bin/sh
# Build the sdist and the wheel into dist/. Install each into an empty environment on every Python that is here, with what
# the core needs and nothing else, and let it run: everything uncompiled, then `fluidcc doctor`, which compiles the solver.
# On the first of them every page of the documentation runs too, but for those whose text names the extra that they need.
set -eu
cd "$(dirname "$0")/.."
unset PYTHONPATH PYTHONHOME
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export MPLBACKEND=Agg UV_LINK_MODE="${UV_LINK_MODE:-copy}"

uv() { "$root/.venv/bin/python" -m uv "$@"; }

find_python() { # the first that runs, of a version
    for p in "python$1" "${HOME:-}/.pyenv/versions/$1."*/bin/python; do
        if "$p" -c 'import sys' >/dev/null 2>&1; then
            command -v "$p"
            return
        fi
    done
}

cat >"$work/smoke.py" <<'END'
import fluidcc as fc

net = fc.dumbbell([fc.LDCC] * 2, {"capacity": "3 Mbit/s"}, rtt="50 ms")
run, report = fc.simulate(net, until="5 s"), fc.stability(net)
fc.plot.timeseries(run), fc.plot.nyquist(report)
assert report.stable and fc.sweep(net, {"eta": [0.1, 9.0]}, "stable").stable.values.tolist() == [True, False]
try:
    fc.stability(net, certify=True)
except fc.errors.Unsupported as said:
    assert 'pip install ".[certify]"' in str(said)
END

cat >"$work/pages.py" <<'END'
import re
import sys
from pathlib import Path

root, ran = Path(sys.argv[1]), 0
for page in sorted([root / "README.md", *root.glob("docs/*.md"), *root.glob("docs/*/*.md")]):
    text, names = page.read_text(), {"__name__": "page"}
    for tags, cell in re.findall(r"^```(?:\{code-cell\}|python)\n((?::.*\n)*)(.*?)^```", text, flags=re.M | re.S):
        try:
            exec(compile(cell, str(page), "exec"), names)
            ran += 1
        except Exception as error:
            if "raises-exception" in tags:
                continue
            remedy = getattr(error, "args", [""])[0]
            asked = re.search(r'pip install "\.\[(\w+)\]"', str(remedy))
            if asked is None or asked[0] not in text:
                raise SystemExit(f"{page}: {type(error).__name__}: {error}")
            break
print(f"wheels: {ran} cells of the pages run without extras")
END

rm -rf dist
uv build --quiet --out-dir dist .
tried=0
for version in 3.11 3.12 3.13 3.14; do
    python=$(find_python "$version")
    [ -n "$python" ] || { echo "wheels: no Python $version here" && continue; }
    here="$work/$version"
    uv venv --quiet --python "$python" "$here"
    for built in "$root"/dist/*.tar.gz "$root"/dist/*.whl; do
        uv pip install --quiet --python "$here/bin/python" -c constraints.txt --reinstall-package fluidcc "$built"
        (cd "$work" && NUMBA_DISABLE_JIT=1 "$here/bin/python" -W ignore::RuntimeWarning smoke.py)
    done
    (cd "$work" && "$here/bin/fluidcc" doctor) >"$work/doctor"
    grep '^a test run *right' "$work/doctor" || { cat "$work/doctor" && exit 1; }
    [ "$tried" -gt 0 ] || (cd "$work" && "$here/bin/python" -W ignore pages.py "$root" 2>"$work/pages" | tail -n 1 | grep '^wheels:') ||
        { tail -n 5 "$work/pages" && exit 1; }
    echo "wheels: good on $("$here/bin/python" --version)"
    tried=$((tried + 1))
done
[ "$tried" -gt 0 ]
