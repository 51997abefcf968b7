#!/bin/sh
# Makes sure that libfaketime is there, which has the clocks of brokers jump: Debian's own, as root.
set -eu

fail() { echo "libfaketime: $*" >&2; exit 3; }

for place in /usr/lib/*/faketime /usr/lib/faketime /usr/lib64/faketime /usr/local/lib/faketime; do
  if [ -e "$place/libfaketimeMT.so.1" ]; then exit 0; fi
done
[ "$(id -u)" = 0 ] || fail "it is not there: install it, or run this as root on Debian"
command -v apt-get >/dev/null 2>&1 || fail "it is not there, and this is not Debian: install it"
echo "libfaketime: apt-get install libfaketime"
apt-get update -qq >/dev/null
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends libfaketime >/dev/null
