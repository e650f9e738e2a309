#!/usr/bin/env bash
# Removes what set-up and sweeps made on this machine, results excepted. Lists it first and asks, unless --yes is given.
# Installed packages stay (their names are printed), and so does everything in Incus that is not ours.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=${NTIER_NAME:-ntier} # of our project and pool in Incus; the bridge is ${name}br0. Other than ntier: the tests
bridge=${name}br0
state=${NTIER_STATE:-/var/lib/ntier}
apt_source=/etc/apt/sources.list.d/ntier-backports.sources
# What set-up and sweeps make in the state: it may be a folder that has other things, too.
ours_there=(controller.digest data hcloud hosts images images.json local lock lock.json logs ndb openstack packages setup.lock slice_us ssh)
yes=

case ${1:-} in
  '') ;;
  --yes) yes=1 ;;
  *) printf "error: unknown option '%s'; allowed: --yes\n" "$1" >&2; exit 2 ;;
esac

refuse() { printf 'error: %s. Nothing was removed\n' "$1" >&2; exit 2; }
free() { # of the file descriptor $1: macOS has no flock
  if command -v flock >/dev/null; then flock --nonblock "$1"; else python3 -c "import fcntl; fcntl.flock($1, fcntl.LOCK_EX | fcntl.LOCK_NB)" 2>/dev/null; fi
}
holder() { sed -n 's/.*"pid": \([0-9]*\).*"command": "\(.*\)"}.*/pid \1 (\2)/p' "$state/lock.json" 2>/dev/null | grep . || echo 'pid unknown'; }

[[ $state == /* ]] || refuse "NTIER_STATE: '$state' is not an absolute path; allowed are those that begin with /"
[[ ! -d $state || (-w $state && -x $state) ]] || refuse "$state cannot be written; as root, run  make purge"
there=() # of it
for thing in "${ours_there[@]}"; do
  [[ -e $state/$thing ]] && there+=("$thing")
done
if ((${#there[@]})); then
  exec 7>>"$state/setup.lock" 8>>"$state/lock" # held until the end: nothing begins meanwhile
  free 7 || refuse 'a set-up is building images; wait for it or stop it'
  free 8 || refuse "another ntier is at work: $(holder); wait for it or stop it"
  if [[ -e $state/ndb/lock ]]; then
    exec 9>>"$state/ndb/lock"
    free 9 || refuse "a make ndb is building MySQL Cluster; wait for it or stop it"
  fi
fi

for record in "$state"/*/rented.json; do # without the state nobody would know of them
  if grep -qs '"until_s": null' "$record"; then
    target=$(basename "$(dirname "$record")")
    printf 'error: machines are still rented (%s); give them back first:  make down TARGET=%s\n' "$record" "$target" >&2
    exit 1
  fi
done

for record in "$state"/*/snapshots.json; do # nor of these
  if [[ -e $record ]]; then
    target=$(basename "$(dirname "$record")")
    printf 'error: snapshots are still kept and paid for (%s); remove them first:  make images REMOVE=1 TARGET=%s\n' "$record" "$target" >&2
    exit 1
  fi
done

if [[ -e $state/hosts/nodes.json ]]; then # what was installed there is undone by what the state knows
  echo 'error: machines of target hosts still belong to this deployment; free them first:  make down TARGET=hosts' >&2
  exit 1
fi

ours() { incus --project "$name" "$@" </dev/null; }
exists() { incus query "/1.0/$1" >/dev/null 2>&1; }
instances() { ours list --format csv --columns n; }
images() { ours image list --format csv --columns F; }
readable() { ours image list --format csv --columns ls | paste -sd' '; }
size() { du -sh "$1" 2>/dev/null | cut -f1; }

incus_there=
if command -v incus >/dev/null && incus query /1.0 >/dev/null 2>&1; then
  incus_there=1
elif [[ -e /var/lib/incus/disks/$name.img || -e $state/controller.digest ]]; then
  echo 'error: Incus does not answer, so what is in it cannot be removed. Start it with  setup/daemons.sh' >&2
  exit 1
fi

if [[ $incus_there ]] && exists "projects/$name"; then
  for node in $(instances); do # node.sh notes which NTIER_STATE made it
    other=$(ours config get "$node" user.ntier.state) || refuse "Incus does not say who made node $node"
    if [[ -n $other && ! $other -ef $state && -d $other/local/nodes/$node ]]; then
      refuse "node $node is of another deployment, perhaps at work: wait for it, or remove its nodes with  NTIER_STATE=$(printf %q "$other") make down "
    fi
  done
fi

folders=() # of this checkout
for folder in .venv build .terraform terraform/targets/local/.terraform terraform/modules/topology/.terraform; do
  [[ -e $folder ]] && folders+=("$folder")
done

found=
say() { found=1; printf '  %-9s %s\n' "$1" "$2"; }
echo 'This is removed:'
if [[ $incus_there ]]; then
  if exists "projects/$name"; then
    [[ -z $(instances) ]] || say nodes "$(instances | paste -sd' ')"
    [[ -z $(images) ]] || say images "$(readable)"
    say project "$name (Incus)"
  fi
  exists "storage-pools/$name" && say pool "$name (Incus), $(size "/var/lib/incus/disks/$name.img")"
  exists "networks/$bridge" && say bridge "$bridge (Incus)"
fi
((${#there[@]} == 0)) || say folder "$state: ${there[*]}; $(cd "$state" && du -sch -- "${there[@]}" 2>/dev/null | tail -n1 | cut -f1)"
for folder in "${folders[@]}"; do say folder "$folder, $(size "$folder")"; done
[[ $name == ntier && -e $apt_source ]] && say file "$apt_source"
if [[ -z $found ]]; then
  echo '  nothing is here'
  exit 0
fi
echo 'This stays: results/, installed packages, the Incus and lxcfs daemons, and whatever else is in Incus.'

if [[ -z $yes ]]; then
  [[ -t 0 ]] || { echo 'error: no terminal to ask on; nothing was removed. Use --yes' >&2; exit 2; }
  read -r -p 'Remove it? [y/N] ' answer
  [[ $answer == [yY]* ]] || { echo 'Nothing was removed.'; exit 1; }
fi

packages=$(paste -sd' ' "$state/packages" 2>/dev/null || true)
if [[ $incus_there ]] && exists "projects/$name"; then
  for node in $(instances); do ours delete --force "$node"; done
  for image in $(images); do ours image delete "$image"; done
  printf '{config: {}, devices: {}}' | incus --project "$name" profile edit default
  incus project delete "$name"
fi
if [[ $incus_there ]]; then # a user who put something of their own on our pool or bridge gets Incus's refusal to read
  exists "storage-pools/$name" && incus storage delete "$name"
  exists "networks/$bridge" && incus network delete "$bridge"
fi
for rule in "-i $bridge -j ACCEPT" "-o $bridge -j ACCEPT"; do # beside Docker, see daemons.sh
  # shellcheck disable=SC2086
  iptables -w -D DOCKER-USER $rule 2>/dev/null || true
done
[[ $name == ntier ]] && rm -f "$apt_source"
[[ -e $state/slice_us ]] && cat "$state/slice_us" >/proc/sys/kernel/sched_cfs_bandwidth_slice_us # see daemons.sh
rm -rf -- "${folders[@]}"
for thing in "${ours_there[@]}"; do rm -rf -- "${state:?}/$thing"; done # the two locks, too
rmdir "$state" 2>/dev/null || [[ ! -d $state ]] || echo "$state stays: there are other things in it."
echo 'Removed.'
[[ -z $packages ]] || echo "Packages that set-up installed and that stay: $packages"
