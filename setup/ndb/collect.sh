# What nodes get, in one folder: bin, lib (libraries that come along), share (messages, character sets), VERSION.
#   sh collect.sh build WORK TREE      from a build (WORK/source, WORK/build)
#   sh collect.sh packages ROOT TREE   from unpacked packages of MySQL's
set -eu
kind=$1 from=$2 tree=$3
rm -rf "$tree"
mkdir -p "$tree/bin" "$tree/lib" "$tree/share"
programs='mysqld mysql mysqladmin ndb_mgmd ndb_mgm ndbmtd ndb_waiter'

case $kind in
  build)
    for program in $programs; do cp "$from/build/runtime_output_directory/$program" "$tree/bin/"; done
    find "$from/build/library_output_directory" -maxdepth 1 -name '*.so*' -exec cp -P {} "$tree/lib/" \; 2>/dev/null || true
    cp -r "$from/source/share/." "$tree/share/"
    cp -r "$from/build/share/." "$tree/share/" # errmsg.sys of each language
    find "$tree/bin" "$tree/lib" -type f -exec strip --strip-unneeded {} + 2>/dev/null || true
    ;;
  packages)
    for program in $programs; do
      found=$(find "$from" -type f \( -path "*/bin/$program" -o -path "*/sbin/$program" \) | head -n 1)
      [ -z "$found" ] || cp "$found" "$tree/bin/"
    done
    find "$from" -type d -path '*/lib/mysql/private' -exec cp -rP {}/. "$tree/lib/" \;
    find "$from" -maxdepth 3 -type d -path '*/usr/share/mysql*' -exec cp -r {}/. "$tree/share/" \;
    ;;
  *) echo "collect.sh: unknown kind '$kind'; allowed: build, packages" >&2; exit 2 ;;
esac
[ -x "$tree/bin/mysqld" ] || { echo "collect.sh: there is no mysqld in $from" >&2; exit 1; }
# "/path/mysqld  Ver 9.7.4-cluster for Linux on x86_64 (...)"
LD_LIBRARY_PATH=$tree/lib "$tree/bin/mysqld" --no-defaults --version | sed 's/.*Ver \([^ ]*\).*/\1/' >"$tree/VERSION"
