#!/usr/bin/env bash
# Everything that the other targets need: Python environment, controller (Incus and tools), node images.
# Does only what is missing; with everything in place it takes a second or two. Options (--topo, --middleware, --data, --images, --rebuild, --check)
# are those of setup/images. With --controller alone, no image is made.
#   NTIER_STATE (/var/lib/ntier), NTIER_POOL_SIZE (40GiB), NTIER_DEBIAN_MIRROR, NTIER_SECURITY_MIRROR, NTIER_PYTHON
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

export NTIER_STATE=${NTIER_STATE:-/var/lib/ntier}
unset "${!ANSIBLE_@}" # what the person's shell tells Ansible, as to ask for a password
export ANSIBLE_HOME=$NTIER_STATE/local/ansible # a home that may not be written is no obstacle
[[ $NTIER_STATE == /* ]] || { echo "error: NTIER_STATE: '$NTIER_STATE' is not an absolute path; allowed are those that begin with /" >&2; exit 2; }
stamp=$NTIER_STATE/controller.digest
log=$NTIER_STATE/logs/setup-controller.log

inputs() { cat setup/controller.yml setup/daemons.sh setup/preseed.yml.j2 setup/profile.yml requirements.txt | sha256sum; }

controller_ready() { # what the playbook last made is still there and answers
  [[ -f $stamp && $(<"$stamp") == "$(inputs)" ]] || return 1
  local program
  for program in incus mmdebstrap mkfs.btrfs sar javac mvn zstd; do # one by one: of several, it is enough for bash to find one
    PATH=$PATH:/usr/sbin:/sbin command -v "$program" >/dev/null || return 1
  done
  setup/daemons.sh || return 1
  local resource
  for resource in storage-pools/ntier networks/ntierbr0 projects/ntier; do
    incus query "/1.0/$resource" >/dev/null 2>&1 || return 1
  done
}

setup/bootstrap.sh
if ! controller_ready; then
  command -v incus >/dev/null || .venv/bin/python -m ntier_harness.machine # says what this machine cannot do, and what instead
  [[ $(id -u) == 0 ]] || { echo 'error: setting up the controller needs root: sudo make setup' >&2; exit 2; }
  # Nobody else reads what we make there. A folder that was there keeps its mode: it may be others' as well.
  (umask 077 && mkdir -p "$NTIER_STATE"/{ssh,local,logs,data})
  echo "setup: controller (packages, Incus, pool, bridge); log: $log"
  # Ansible ends at once in a locale that is not UTF-8 or does not exist
  if ! LC_ALL=C.UTF-8 ANSIBLE_CONFIG="$PWD/ansible/ansible.cfg" ANSIBLE_NOCOLOR=1 ANSIBLE_LOCALHOST_WARNING=0 .venv/bin/ansible-playbook --inventory localhost, setup/controller.yml >"$log" 2>&1; then
    grep -A12 -m1 -E '^\[ERROR\]|^fatal:' "$log" >&2 || tail -n 20 "$log" >&2
    echo "error: setting up the controller failed; its log: $log" >&2
    exit 1
  fi
  inputs >"$stamp"
fi
[[ $* == --controller ]] || exec .venv/bin/python setup/images "$@"
