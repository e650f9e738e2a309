#!/usr/bin/env bash
# Programs of MySQL Cluster (mysqld with NDB, ndb_mgmd, ndbmtd, clients), which no Debian package has: one archive in the
# machine-wide state, from which the images of the roles ndbmgmd, ndbmtd and ndbsql are made. Goes on where it was interrupted.
#   setup/ndb.sh [--idle] [--check]
#     --idle    uses only CPU time that nobody else wants
#     --check   only says whether they are there; exit code 1 if not
#   NTIER_STATE          the machine-wide state (/var/lib/ntier)
#   NTIER_NDB_PACKAGES   MySQL's own packages instead of a build: a folder of .deb files, one .tar or .deb file, or an apt source
#                        ("deb [signed-by=/path/key.asc] https://repo.mysql.com/apt/debian/ trixie mysql-cluster-8.4-lts")
# Without it they are built from Debian sid's mysql-source in the build node `build-ndb`, which stays until that is done.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

state=${NTIER_STATE:-/var/lib/ntier}
out=$state/ndb
archive=$out/programs.tar.zst version=$out/version.json log=$state/logs/setup-ndb.log
packages=${NTIER_NDB_PACKAGES:-}
node=build-ndb address=198.18.200.250 # beyond those of the images' build nodes
idle=
fail() { printf 'error: %s\n' "$1" >&2; exit "${2:-1}"; }
[[ $state == /* ]] || fail "NTIER_STATE: '$state' is not an absolute path; allowed are those that begin with /" 2

for argument in "$@"; do
  case $argument in
    --idle) idle=1 ;;
    --check) check=1 ;;
    *) fail "unknown option '$argument'; allowed: --idle, --check" 2 ;;
  esac
done

digest() { # what they are made from: how, and for packages which
  { cat setup/ndb/build.sh setup/ndb/collect.sh; printf '%s\n' "$packages"; if [[ -e $packages ]]; then find "$packages" -type f -printf '%p %s %T@\n' | sort; fi; } |
    sha256sum | cut -d' ' -f1
}
of() { sed -n "s/^ *\"$1\": \"\(.*\)\",\$/\1/p" "$version" 2>/dev/null || true; }
# without a word, packages that were given once are as good as a build
enough() { [[ -s $archive && ($(of made_from) == "$(digest)" || (-z $packages && $(of source) != mysql-source)) ]]; }

if enough; then
  echo "MySQL Cluster's programs are there: $(of version), from $(of source)"
  exit 0
fi
[[ -z ${check-} ]] || { echo "MySQL Cluster's programs are not there, or made from something else; run: make ndb"; exit 1; }

(umask 022 && mkdir -p "$out") 2>/dev/null || fail "$out cannot be made: run it as root, or give NTIER_STATE=/a/folder/of/yours" 2
mkdir -p "$state/logs"
exec 8>"$out/lock"
flock --nonblock 8 || fail 'another process is making them' 1

rm -rf "$out"/.new.* # of a run that was killed
scratch=$(mktemp -d "$out/.new.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# ---- from MySQL's packages ---------------------------------------------------------------------------------------------

unpack() { # the folder of .deb files $1 -> $scratch/root
  local deb found=
  for deb in "$1"/*.deb; do
    [[ -e $deb ]] || break
    found=1
    dpkg-deb --extract "$deb" "$scratch/root"
  done
  [[ $found ]] || fail "NTIER_NDB_PACKAGES: there is no .deb file in $packages" 2
}

from_files() {
  command -v dpkg-deb >/dev/null || fail 'dpkg-deb is missing; it is on every Debian' 2
  case $packages in
    *.tar) mkdir "$scratch/debs" && tar -C "$scratch/debs" -xf "$packages" && unpack "$scratch/debs" ;;
    *.deb) mkdir "$scratch/debs" && cp "$packages" "$scratch/debs" && unpack "$scratch/debs" ;;
    *) [[ -d $packages ]] || fail "NTIER_NDB_PACKAGES: $packages is neither a folder nor a .tar or .deb file" 2
       unpack "$packages" ;;
  esac
  sh setup/ndb/collect.sh packages "$scratch/root" "$scratch/tree"
}

# ---- in the build node -------------------------------------------------------------------------------------------------

ours() { incus --project ntier "$@"; }
there() { ours list "^$node\$" --format csv --columns ns; }

start_node() {
  setup/setup.sh --images base-sid </dev/null
  case $(there) in
    "$node,RUNNING") ;;
    "$node,"*) ours start "$node" ;;
    *) NTIER_STATE=$state NTIER_NODES=$state/images/nodes terraform/targets/local/node.sh create "$node" base-sid "$address" ;;
  esac
  ours config set "$node" "limits.cpu.allowance=${idle:+1%}" # empty: no limit
}

in_node() { # a script of setup/ndb on the node, with its arguments; its output goes to the log, percents to the screen
  local script=$1 line last='' percent failed=
  shift
  ours file push --quiet "setup/ndb/$script" "$node/root/$script"
  # the signal that interrupts us ends the program there too, so that no compiler is left over
  trap 'ours exec "$node" -- sh /root/build.sh end </dev/null || true; echo "interrupted; the same command goes on here" >&2; exit 130' INT TERM
  ours exec "$node" --env "IDLE=$idle" -- sh "/root/$script" "$@" </dev/null 2>&1 | while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    case $line in
      'step '*) echo "ndb: ${line#step }" ;;
      '['*'%]'*)
        percent=${line#[}
        percent=${percent%%%*}
        percent=${percent// /}
        if [[ $percent != "$last" ]]; then
          last=$percent
          if [[ -t 1 ]]; then printf '\rndb: compiling, %3s %%' "$percent"; elif ((percent % 10 == 0)); then echo "ndb: compiling, $percent %"; fi
          if [[ -t 1 && $percent == 100 ]]; then echo; fi
        fi ;;
    esac
  done || failed=1
  trap - INT TERM
  [[ -z $failed ]]
}

from_source() {
  in_node build.sh || { tail -n 20 "$log" >&2; fail "the build failed; its log: $log. The same command goes on where it stopped"; }
  ours file push --quiet setup/ndb/collect.sh "$node/root/collect.sh"
  ours exec "$node" -- sh /root/collect.sh build /root/ndb /root/ndb/tree </dev/null >>"$log" 2>&1 || fail "collecting failed; its log: $log"
  fetch_tree
}

from_repository() { # packages of an apt source, downloaded by the build node, whose distribution they must fit
  local key
  key=$(sed -n 's/.*signed-by=\([^] ]*\).*/\1/p' <<<"$packages")
  if [[ $key ]]; then
    [[ -r $key ]] || fail "NTIER_NDB_PACKAGES: the key $key cannot be read" 2
    ours file push --quiet --create-dirs "$key" "$node$key"
  fi
  ours file push --quiet setup/ndb/collect.sh "$node/root/collect.sh"
  in_node repository.sh "$packages" || { tail -n 20 "$log" >&2; fail "MySQL's packages were not got; log: $log"; }
  fetch_tree
}

fetch_tree() {
  mkdir "$scratch/tree"
  ours exec "$node" -- tar -C /root/ndb/tree -c . </dev/null | tar -C "$scratch/tree" -x
}

# ---- the archive -------------------------------------------------------------------------------------------------------

: >"$log"
if [[ -z $packages || $packages == 'deb '* ]]; then
  start_node
  if [[ $packages ]]; then from_repository; else from_source; fi
else
  from_files
fi

programs=(mysqld mysql ndb_mgmd ndb_mgm ndbmtd)
for program in "${programs[@]}"; do
  [[ -x $scratch/tree/bin/$program ]] || fail "$program is not among what was made${packages:+ from $packages}; needed are ${programs[*]}"
done
tar -C "$scratch/tree" --sort=name --owner=0 --group=0 -c . | zstd --quiet -10 -T0 -o "$scratch/programs.tar.zst"
{
  printf '{\n "version": "%s",\n' "$(<"$scratch/tree/VERSION")"
  printf ' "source": "%s",\n' "$([[ $packages ]] && echo "MySQL's packages" || echo mysql-source)"
  printf ' "made_from": "%s",\n "sha256": "%s",\n' "$(digest)" "$(sha256sum <"$scratch/programs.tar.zst" | cut -d' ' -f1)"
  printf ' "bytes": %s,\n "made_s": %s\n}\n' "$(stat -c %s "$scratch/programs.tar.zst")" "$(date +%s)"
} >"$scratch/version.json"
rm -f "$version" # while the two do not belong together, there are none
mv "$scratch/programs.tar.zst" "$archive"
mv "$scratch/version.json" "$version"
if [[ -z $packages || $packages == 'deb '* ]]; then
  ours delete --force "$node" && rm -rf "$state/images/nodes/$node"
fi
echo "MySQL Cluster's programs are there: $(of version), from $(of source) ($(du -h "$archive" | cut -f1))"
