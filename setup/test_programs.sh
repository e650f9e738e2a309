#!/usr/bin/env bash
# Programs that only tests need: PostgreSQL's, of which the tests of systems/two-phase-commit start servers of their own, on
# loopback ports and in temporary folders; and libfaketime, for a server whose clock is wrong. Does nothing where they are.
# Without root it says what is missing.
set -euo pipefail
state=${NTIER_STATE:-/var/lib/ntier}

missing=()
compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || command -v initdb >/dev/null || missing+=(postgresql)
compgen -G '/usr/lib/*/faketime/libfaketime.so.1' >/dev/null || missing+=(libfaketime)
((${#missing[@]})) || exit 0
if [[ $EUID != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "setup: programs are missing, so tests of systems/two-phase-commit fail; Debian: apt-get install ${missing[*]}" >&2
  exit 0
fi
echo "setup: ${missing[*]}, for tests"
no_server=/etc/postgresql-common/createcluster.d/ntier.conf # the package would make a server of its own and start it
trap 'rm -f "$no_server"' EXIT
mkdir -p "$(dirname "$no_server")"
echo 'create_main_cluster = false' >"$no_server"
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -yqq --no-install-recommends -o DPkg::Lock::Timeout=300 "${missing[@]}" >/dev/null
[[ ! -d $state ]] || printf '%s\n' "${missing[@]}" >>"$state/packages"
