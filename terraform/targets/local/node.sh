#!/usr/bin/env bash
# One node of the local target: an Incus container with its own address, that answers SSH with a host key we made.
#   node.sh create NAME IMAGE ADDRESS [MEMORY_BYTES|- [NETWORK_BITS_S|-]]   (replaces what is left of an earlier attempt)
#   node.sh delete NAME
#   node.sh guard                before the nodes are made: refuses to work beside strangers, removes our own leftovers,
#                                brings stopped and vanished nodes back; NTIER_SPECS has a line
#                                "NAME IMAGE ADDRESS MEMORY NETWORK" for each
#   node.sh known-hosts NAME...  the host keys of these nodes into local/known_hosts
#   node.sh clear                removes every node of the project (make down), but those that another state on this
#                                machine has
# NTIER_STATE: the machine-wide state. Every node that we begin to make has a folder there, so that whatever a killed
# run leaves behind is known to be ours; the file `made` in it says that the node was finished, and from what.
set -euo pipefail

state=${NTIER_STATE:-/var/lib/ntier}
nodes=${NTIER_NODES:-$state/local/nodes}
project=${NTIER_NAME:-ntier} # this and the next are others in the tests
gateway=${NTIER_GATEWAY:-198.18.0.1}
mark=user.ntier.state # of each node: the NTIER_STATE that made it
wait_seconds=30 # a node answers after 1-2 s; more only if the machine is very busy

fail() { printf 'error: %s\n' "$1" >&2; exit 1; }
silent='Incus does not answer, so nobody knows which nodes there are: run make setup'
incus() { command incus --project "$project" "$@" </dev/null; }
everything() { incus list --format csv --columns n; }
folders() { find "$nodes" -mindepth 1 -maxdepth 1 -type d -printf '%f\n' 2>/dev/null || true; }
# Image building has nodes of its own, named build-*: they come and go by themselves.
running() { incus list --format csv --columns n status=running; }
present() { everything | { grep -v '^build-' || true; }; }

# Another state that made a node and still has it; empty if it is ours, or nobody's any more. States of which one may not
# look into the folder count as having it.
other_owner() {
  local name=$1 owner there
  owner=$(incus config get "$name" "$mark" 2>/dev/null) || {
    there=$(everything) && ! grep -qx -- "$name" <<<"$there" || fail "$silent"
    return 0
  }
  [[ -z $owner || $owner -ef $state ]] && return
  [[ ! -d $owner/local/nodes/$name && ( ! -d $owner || -x $owner ) ]] || printf '%s' "$owner"
}

create() {
  local name=$1 image=$2 address=$3 memory=${4:--} network=${5:--} folder=$nodes/$1
  local key=$folder/ssh_host_ed25519_key made="$image $address $memory $network" options=() mac other
  [[ -r $state/ssh/id_ed25519.pub ]] || fail "$state/ssh/id_ed25519.pub is missing: run make setup"
  mkdir -p "$folder"
  exec 9>"$folder/lock"
  flock --wait 60 9 || fail "another process is making or deleting node $name"
  other=$(other_owner "$name") || exit 1
  [[ -z $other ]] || fail "node $name is of NTIER_STATE=$other, so it stays"
  if [[ -f $folder/made && $(<"$folder/made") == "$made" ]] && running | grep -qx -- "$name"; then
    return # a run that was killed had come this far, or the guard was first
  fi
  rm -f "$folder/made" "$key" "$key.pub"
  remove "$name"
  ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$key"
  printf '%s,%s %s\n' "$address" "$name" "$(cut -d' ' -f1,2 "$key.pub")" >"$folder/known_hosts"
  # The same address has always the same MAC (locally administered): a node made anew is not lost in its peers' ARP tables.
  # shellcheck disable=SC2086
  mac=$(printf '02:00:%02x:%02x:%02x:%02x' ${address//./ })
  [[ $memory == - ]] || options+=(--config "limits.memory=$memory")
  [[ $network == - ]] || options+=(--device "eth0,limits.ingress=$network")
  launch "$image" "$name" --config "$mark=$state" --config "environment.NTIER_ADDRESS=$address/16" \
    --config "environment.NTIER_GATEWAY=$gateway" --device "eth0,hwaddr=$mac" "${options[@]}"
  shape "$name" "$network"
  put_keys "$name" "$key" || fail "node $name does not take its keys: incus --project $project console $name --show-log"
  wait_for_ssh "$name" "$address"
  printf '%s' "$made" >"$folder/made"
}

launch() { # what a killed run asked for may still be under way, and Incus then refuses the name for a moment
  local image=$1 name=$2 end=$((SECONDS + wait_seconds)) said
  until said=$(incus launch "$@" --quiet 2>&1); do
    [[ $said == *busy* || $said == *'already exists'* ]] && ((SECONDS < end)) ||
      fail "node $name could not be made from image $image (make it: setup/setup.sh --images $image): $said"
    sleep 0.2
    remove "$name"
  done
}

shape() { # what the node sends; Incus' own limits.egress needs a policer, which not every kernel has
  local name=$1 network=${2:--} pid
  [[ $network != - ]] || return 0
  pid=$(incus list "^$name\$" --format csv --columns p)
  # a burst of 10 ms, at least what one segment offload may hand over at once; 100 ms of queue
  nsenter --target "$pid" --net tc qdisc replace dev eth0 root tbf rate "${network}bit" \
    burst $((network / 800 > 65536 ? network / 800 : 65536)) latency 100ms ||
    fail "node $name: its network cannot be limited to $network bit/s (tc)"
}

start() { # the same: what a killed run began may still be under way
  local name=$1 end=$((SECONDS + wait_seconds)) said
  until said=$(incus start "$name" 2>&1) || running | grep -qx -- "$name"; do
    [[ $said == *busy* ]] && ((SECONDS < end)) || fail "node $name does not start: $said"
    sleep 0.2
  done
}

# One archive through one call; the node's sshd tries until its key is there. The archive's files are beside the key, where
# those of a run that was killed are found again.
put_keys() {
  local name=$1 key=$2 tree=${2%/*}/tree sent=0
  rm -rf "$tree"
  { install -d -m 0700 "$tree" && install -d -m 0755 "$tree/etc/ssh" && install -d -m 0700 "$tree/root" "$tree/root/.ssh" &&
    install -m 0600 "$key" "$tree/etc/ssh/" && install -m 0644 "$key.pub" "$tree/etc/ssh/" &&
    install -m 0600 "$state/ssh/id_ed25519.pub" "$tree/root/.ssh/authorized_keys" &&
    tar -C "$tree" --create --owner=0 --group=0 etc/ssh/ssh_host_ed25519_key etc/ssh/ssh_host_ed25519_key.pub \
      root/.ssh/authorized_keys |
    command incus --project "$project" exec "$name" --disable-stdin=false -- tar -C / --extract; } || sent=$?
  rm -rf "$tree"
  return "$sent"
}

wait_for_ssh() {
  local name=$1 address=$2 end=$((SECONDS + wait_seconds))
  until timeout 1 bash -c "read -r banner </dev/tcp/$address/22" 2>/dev/null; do
    ((SECONDS < end)) || fail "node $name ($address) does not answer SSH after $wait_seconds s"
    sleep 0.1
  done
}

remove() { # a start that a killed run asked for may still be under way, and Incus then refuses
  local name=$1 end=$((SECONDS + wait_seconds)) said there
  while there=$(everything) || fail "$silent"; grep -qx -- "$name" <<<"$there"; do
    said=$(incus delete --force "$name" 2>&1) && return
    ((SECONDS < end)) || fail "node $name cannot be removed: $said"
    sleep 0.2
  done
}

delete() { # of a node that another state has by now, only what we know of it
  local name=$1 folder=$nodes/$1 other
  mkdir -p "$folder"
  exec 9>"$folder/lock"
  flock --wait 60 9 || fail "another process is making or deleting node $name"
  other=$(other_owner "$name") || exit 1
  [[ -n $other ]] || remove "$name"
  rm -r "$folder"
}

guard() {
  local present running strangers=() wanted=() name image address memory network pids=() pid other
  { present=$(present) && running=$(running); } || fail "$silent"
  while read -r name image address memory network; do
    [[ -n $name ]] || continue
    wanted+=("$name")
    [[ -d $nodes/$name ]] || continue # terraform makes it
    other=$(other_owner "$name") || exit 1
    if [[ -n $other ]]; then
      strangers+=("$name")
    elif ! grep -qx -- "$name" <<<"$present" || [[ ! -f $nodes/$name/made ]]; then
      create "$name" "$image" "$address" "$memory" "$network" &
      pids+=($!)
    elif ! grep -qx -- "$name" <<<"$running"; then
      { start "$name" && shape "$name" "$network" && wait_for_ssh "$name" "$address"; } &
      pids+=($!)
    else # something else may have restarted it, and its limit is gone then
      shape "$name" "$network" &
      pids+=($!)
    fi
  done <<<"${NTIER_SPECS:-}"
  for name in $({ echo "$present"; folders; } | sort -u); do
    if [[ " ${wanted[*]} " == *" $name "* && -d $nodes/$name ]]; then
      continue
    elif [[ -d $nodes/$name ]]; then
      other=$(other_owner "$name") || exit 1
      (delete "$name")
      [[ -z $other ]] || strangers+=("$name")
    elif grep -qx -- "$name" <<<"$present"; then
      strangers+=("$name")
    fi
  done
  for pid in "${pids[@]}"; do wait "$pid" || fail 'a node of the deployment does not come back'; done
  ((${#strangers[@]} == 0)) || refuse_strangers "${strangers[@]}"
}

refuse_strangers() { # nodes that this state did not make
  local name other said='' nobody=()
  local -A of=()
  for name; do
    other=$(other_owner "$name") || exit 1
    if [[ -n $other ]]; then of[$other]+="${of[$other]:+ }$name"; else nobody+=("$name"); fi
  done
  for other in "${!of[@]}"; do
    said+=" NTIER_STATE=$other made ${of[$other]} and may be at work: wait, or remove them with  NTIER_STATE=$(printf %q "$other") make down ;"
  done
  ((${#nobody[@]} == 0)) ||
    said+=" no NTIER_STATE has ${nobody[*]}: if nobody needs them, remove them with  make down ;"
  fail "Incus project $project has nodes that NTIER_STATE=$state did not make, and one deployment has the machine:${said% ;}"
}

clear_all() {
  local name there other
  there=$(present) || fail "$silent"
  for name in $there; do
    other=$(other_owner "$name") || exit 1
    if [[ -n $other ]]; then
      printf 'node %s stays: it is of NTIER_STATE=%s\n' "$name" "$other" >&2
    else
      (remove "$name")
    fi
  done
  rm -f "$nodes"/*/made # should Terraform's state still have them, the guard makes them again
  rmdir "$nodes" 2>/dev/null || true
}

known_hosts() {
  local file=$state/local/known_hosts name
  for name in "$@"; do cat "$nodes/$name/known_hosts"; done >"$file.new"
  mv "$file.new" "$file"
}

case ${1:-} in
  create) shift; create "$@" ;;
  delete) shift; delete "$@" ;;
  guard) guard ;;
  clear) clear_all ;;
  known-hosts) shift; known_hosts "$@" ;;
  *) fail "unknown command '${1:-}'; allowed: create, delete, guard, clear, known-hosts" ;;
esac
