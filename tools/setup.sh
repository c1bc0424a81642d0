#!/bin/sh
# Make .venv: find a Python that can, install uv with pip and the rest with uv (plain pip where uv fails).
# Usage: tools/setup.sh [extra ...]   default extras: test dev notebook all.  PYTHON=... chooses the interpreter.
set -eu
cd "$(dirname "$0")/.."

# What would send packages elsewhere, or other packages here, or keep Python from writing down what it has compiled: for
# want of that, whoever sets that variable would wait 8 s more for each process.
unset PYTHONDONTWRITEBYTECODE
unset PYTHONPATH PYTHONHOME PIP_USER PIP_TARGET PIP_PREFIX PIP_REQUIRE_VIRTUALENV UV_SYSTEM_PYTHON VIRTUAL_ENV CONDA_PREFIX
export PYTHONNOUSERSITE=1 PIP_DISABLE_PIP_VERSION_CHECK=1 UV_LINK_MODE="${UV_LINK_MODE:-copy}"
# On a busy machine one file may wait longer than the 60 s after which uv gives the whole installation up.
export UV_COMPILE_BYTECODE_TIMEOUT="${UV_COMPILE_BYTECODE_TIMEOUT:-600}"

extras="${*:-test dev notebook all}"
python=.venv/bin/python
stamp=.venv/.fluidcc

say() { printf 'setup: %s\n' "$*"; }

die() {
    printf 'setup: %s\n' "$@" >&2
    exit 1
}

in_range() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' >/dev/null 2>&1; }

find_python() {
    found=''
    without=''
    for p in ${PYTHON:+"$PYTHON"} python3 python3.14 python3.13 python3.12 python3.11 python; do
        command -v "$p" >/dev/null 2>&1 && in_range "$p" || continue
        if "$p" -c 'import venv, ensurepip' >/dev/null 2>&1; then
            found=$p
            return
        fi
        without=$("$p" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
    done
    [ -z "$without" ] || die "Python $without is here but cannot make a virtual environment (no ensurepip)." \
        "On Debian or Ubuntu: apt-get install python$without-venv; then run the same command again."
    die "No Python 3.11 to 3.14 found. Install one (on Debian or Ubuntu: apt-get install python3 python3-venv)," \
        "or name it: make setup PYTHON=/path/to/python3.12"
}

# One line that changes whenever what is installed should: files, place, extras, interpreter.
fingerprint() {
    printf '%s | %s | %s | %s\n' "$(cat pyproject.toml constraints.txt tools/setup.sh | cksum)" "$PWD" "$extras" \
        "$("$python" -c 'import sys; print(sys.version.split()[0])' 2>/dev/null)"
}

install() {
    list=$(printf '%s' "$extras" | tr ' ' ',')
    # uv does not read pip's configuration: hand it the index and the certificates that pip uses.
    if [ -z "${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-}" ]; then
        index=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
        [ -z "$index" ] || export UV_DEFAULT_INDEX="$index"
    fi
    [ -z "${PIP_CERT:-}" ] || export SSL_CERT_FILE="${SSL_CERT_FILE:-$PIP_CERT}"
    if "$python" -m pip install --quiet uv &&
        "$python" -m uv pip install --quiet --compile-bytecode --python "$python" -c constraints.txt -e ".[$list]"; then
        return
    fi
    say 'uv did not manage; installing with pip (slower)'
    "$python" -m pip install --quiet -c constraints.txt -e ".[$list]"
}

if [ -f "$stamp" ]; then
    asked=$extras
    extras=$(sed 's/ | [^|]*$//; s/.* | //' "$stamp") # what is there stays
    for one in $asked; do
        case " $extras " in *" $one "*) ;; *) extras="$extras $one" ;; esac
    done
    [ "$(cat "$stamp")" != "$(fingerprint)" ] || exit 0
fi
# No stamp means that an earlier install was interrupted; a venv that moved or lost its interpreter is of no use either.
if [ ! -f "$stamp" ] || ! grep -qF "| $PWD |" "$stamp" || ! in_range "$python"; then
    rm -rf .venv
    find_python
    say "making .venv with $("$found" --version 2>&1) ($(command -v "$found"))"
    "$found" -m venv .venv
fi
rm -f "$stamp"
say "installing fluidcc with $extras (about a minute)"
install || die 'The packages could not be installed: see the message above; is a package index reachable?'
"$python" -m compileall -q fluidcc
if "$python" -c 'import importlib.util as u, sys; sys.exit(u.find_spec("fluidcc.cli.warm") is None)'; then
    say 'compiling the solver once, for every later run'
    "$python" -m fluidcc.cli.warm
fi
fingerprint >"$stamp"
say 'done'
