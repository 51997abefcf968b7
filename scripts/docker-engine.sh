#!/bin/sh
# Makes sure that a Docker engine answers: nothing to do if one does, else Debian's own, started in the background.
set -eu

say() { echo "docker-engine: $*"; }
fail() { echo "docker-engine: $*" >&2; exit 3; }
answers() { docker info >/dev/null 2>&1; }

# Where no image can be pulled, lockstep makes a base image with debootstrap.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1 && ! command -v debootstrap >/dev/null 2>&1; then
    say "apt-get install debootstrap"
    apt-get update -qq >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends debootstrap >/dev/null
fi

if answers; then exit 0; fi
if [ -n "${DOCKER_HOST:-}" ]; then fail "the engine at DOCKER_HOST does not answer: start it or unset DOCKER_HOST"; fi
if [ "$(id -u)" != 0 ]; then fail "no Docker engine answers: start one, or run this as root on Debian"; fi

if ! command -v dockerd >/dev/null 2>&1 || ! command -v docker >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || fail "no Docker engine answers, and this is not Debian: install one"
    say "apt-get install docker.io"
    apt-get update -qq >/dev/null
    packages=docker.io
    if apt-cache show docker-cli >/dev/null 2>&1; then packages="$packages docker-cli"; fi  # its own package in Debian 13
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $packages >/dev/null
    if answers; then exit 0; fi  # where there is an init system the package has started it
fi

log=$(mktemp -d -t lockstep-dockerd-XXXXXX)/dockerd.log
say "starting dockerd, log in $log"
setsid nohup dockerd >"$log" 2>&1 </dev/null &
dockerd=$!

tries=0
until answers; do
    tries=$((tries + 1))
    if [ "$tries" -gt 120 ] || ! kill -0 "$dockerd" 2>/dev/null; then
        tail -n 5 "$log" >&2
        fail "dockerd did not come up: see $log"
    fi
    sleep 0.5
done
say "$(docker version --format 'Docker engine {{.Server.Version}}') answers"
