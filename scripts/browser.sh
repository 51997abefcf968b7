#!/bin/sh
# Makes sure that Chromium is there, which the tests of the report open it in: Debian's own, as root.
set -eu

fail() { echo "browser: $*" >&2; exit 3; }

if command -v chromium >/dev/null 2>&1; then exit 0; fi
[ "$(id -u)" = 0 ] || fail "there is no chromium: install it, or run this as root on Debian"
command -v apt-get >/dev/null 2>&1 || fail "there is no chromium, and this is not Debian: install it"
echo "browser: apt-get install chromium"
apt-get update -qq >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
