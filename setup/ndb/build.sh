# On the build node (sh, as root): MySQL Cluster's programs from Debian's mysql-source, in /root/ndb. Each step is done once; the
# compilation goes on where it stopped. `sh build.sh end` ends one that runs. IDLE=1: only with CPU time that nobody else wants.
set -eu
work=/root/ndb
if [ "${1-}" = end ]; then
  [ ! -s $work/pid ] || kill -INT "$(cat $work/pid)" 2>/dev/null || true
  exit 0
fi
mkdir -p $work
cd $work
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

text=$(sha256sum <"$0")
once() { # once STEP: unless it was done before, by this very script
  [ "$(cat "$work/$1.done" 2>/dev/null || true)" = "$text" ] && return
  echo "step $1"
  "$1"
  printf '%s\n' "$text" >"$work/$1.done"
}

packages() {
  apt-get update -q
  apt-get install -qy --no-install-recommends bison cmake g++ libaio-dev libncurses-dev libnuma-dev libssl-dev libtirpc-dev ninja-build \
    pkgconf xz-utils zlib1g-dev zstd mysql-source
}

source_tree() {
  rm -rf source source.new
  mkdir source.new
  tarball=$(dpkg --listfiles mysql-source | grep -E '\.tar(\.[a-z0-9]+)?$' | head -n 1)
  if [ -n "$tarball" ]; then
    tar -C source.new --strip-components=1 -xf "$tarball"
  else # the package has it unpacked
    cp -a "$(dirname "$(dpkg --listfiles mysql-source | grep -E '/MYSQL_VERSION$' | head -n 1)")/." source.new
  fi
  [ -d source.new/storage/ndb/src ] || { echo "mysql-source holds no storage/ndb"; exit 1; }
  mv source.new source
}

configure() {
  rm -rf build
  # NDEBUG: without it all assertions stay, which cost time in each statement, and parts of NDB do not compile
  cmake -S source -B build -G Ninja -DCMAKE_BUILD_TYPE=None -DCMAKE_C_FLAGS="-O1 -DNDEBUG" -DCMAKE_CXX_FLAGS="-O1 -DNDEBUG" -DCMAKE_INSTALL_PREFIX=/opt/ntier/ndb/programs \
    -DWITH_NDB=ON -DWITH_NDB_JAVA=OFF -DWITH_NDB_TEST=OFF -DWITH_ROUTER=OFF -DWITH_UNIT_TESTS=OFF -DWITH_FIDO=none \
    -DWITH_AUTHENTICATION_WEBAUTHN=OFF -DWITH_GROUP_REPLICATION=OFF -DWITH_MYSQLX=OFF -DWITH_CURL=0
}

compile() {
  idle=
  [ -z "${IDLE-}" ] || idle='chrt --idle 0 nice -n 19'
  # nproc and one: a compiler waits for the disk now and then. One for each GiB at most: mysqld's largest files take that much.
  jobs=$(($(nproc) + 1)) gib=$(awk '/^MemAvailable/ {print int($2 / 1048576)}' /proc/meminfo)
  [ "$gib" -ge "$jobs" ] || jobs=$((gib > 1 ? gib : 1))
  # idle is a command with arguments, or nothing
  # shellcheck disable=SC2086
  NINJA_STATUS='[%p] %f/%t ' $idle ninja -C build -j $jobs mysqld mysql mysqladmin ndb_mgmd ndb_mgm ndbmtd ndb_waiter &
  echo $! >pid
  wait $!
}

once packages
once source_tree
once configure
echo "step compile"
compile
