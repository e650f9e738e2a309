#!/usr/bin/env bash
# Makes sure that lxcfs and incusd answer. With systemd they are ordinary services; without it (containers, cloud
# workspaces) they are started here, also after kill -9 of everything: a dead lxcfs leaves a mount that only fails.
# Beside Docker, whose rules drop what other bridges forward, our bridge is let through.
# Prints a line only if something had to be done.
set -euo pipefail

seconds=${NTIER_DAEMON_SECONDS:-60} # incusd needs about 6 s, more if it has nodes to restart
log=/var/log/incus/incusd.log

fail() { printf 'error: %s\n' "$1" >&2; exit 1; }
answers() { timeout 10 incus query /1.0 >/dev/null 2>&1; }
mounted() { grep -q ' /var/lib/lxcfs fuse.lxcfs ' /proc/self/mounts; }
lxcfs_works() { mounted && timeout 5 head -c1 /var/lib/lxcfs/proc/uptime >/dev/null 2>&1; }

start_lxcfs() {
  echo 'setup: starting lxcfs'
  while mounted; do umount -l /var/lib/lxcfs; done
  mkdir -p /var/lib/lxcfs
  rm -f /run/lxcfs.pid
  setsid --fork lxcfs /var/lib/lxcfs >/var/log/lxcfs.log 2>&1 </dev/null
  for _ in $(seq 50); do lxcfs_works && return; sleep 0.1; done
  fail "lxcfs does not start: see /var/log/lxcfs.log"
}

# Containers that ran keep the dead lxcfs in their /proc: ours are restarted, of others' the user is told.
restart_containers() {
  local ours others
  ours=$(incus --project ntier list --format csv --columns n status=running 2>/dev/null | paste -sd' ')
  others=$(incus list --all-projects --format csv --columns en status=running | grep -v '^ntier,' | paste -sd' ' || true)
  # shellcheck disable=SC2086
  [[ -z $ours ]] || { echo "setup: restarting $ours"; incus --project ntier restart --force $ours; }
  [[ -z $others ]] || echo "setup: lxcfs had died; these containers need a restart: $others"
}

start_incusd() {
  local group=root incusd
  echo 'setup: starting incusd'
  getent group incus-admin >/dev/null && group=incus-admin
  incusd=$(PATH=$PATH:/usr/libexec/incus:/opt/incus/bin command -v incusd) || fail 'incusd is not installed: run make setup'
  mkdir -p "$(dirname "$log")"
  ulimit -n 1048576 2>/dev/null || true # as in the distribution's unit: some files per node
  setsid --fork "$incusd" --group "$group" --logfile "$log" >>"$log.out" 2>&1 </dev/null
  timeout "$seconds" incus admin waitready --timeout "$seconds" || fail "incusd does not answer after $seconds s: see $log"
}

pass_docker() { # its documented place for a machine's own rules; they go with a restart, hence here
  local rule
  iptables -w -n -L DOCKER-USER >/dev/null 2>&1 || return 0
  for rule in '-i ntierbr0 -j ACCEPT' '-o ntierbr0 -j ACCEPT'; do
    # shellcheck disable=SC2086
    iptables -w -C DOCKER-USER $rule 2>/dev/null || { iptables -w -I DOCKER-USER $rule && echo "setup: Docker lets ntierbr0 through"; }
  done
}

# The kernel gives a CPU its control group's quota in slices of 5 ms. Our quotas are of that size (10 ms period): what one CPU
# holds and does not need, a thread on another waits for. Measured: a node of 0.5 cores got 94-96 % of its quota; with 1 ms, 99-100 %.
shorten_slices() {
  local slice=${NTIER_SLICE:-/proc/sys/kernel/sched_cfs_bandwidth_slice_us} state=${NTIER_STATE:-/var/lib/ntier}
  [[ -w $slice && $(<$slice) -gt 1000 ]] || return 0
  (umask 077 && mkdir -p "$state" && cat $slice >"$state/slice_us") # purge.sh puts it back
  echo 1000 >$slice
  echo 'setup: quotas are given out in slices of 1 ms from now on (docs/decisions/saturation-of-a-quota.md)'
}

[[ $(id -u) != 0 ]] || { pass_docker; shorten_slices; }
if answers && { lxcfs_works || [[ -d /run/systemd/system ]]; }; then
  exit 0
fi
[[ $(id -u) == 0 ]] || fail 'Incus does not answer. As root, run  make setup'
if [[ -d /run/systemd/system ]]; then
  systemctl start lxcfs.service incus.service
  timeout "$seconds" incus admin waitready --timeout "$seconds" || fail 'incus.service does not answer: see  journalctl -u incus'
else
  if ! lxcfs_works; then
    start_lxcfs
    ! answers || restart_containers
  fi
  answers || start_incusd
fi
