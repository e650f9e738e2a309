#!/bin/sh
# Makes the index that searches use what it is to be, and says "changed" if it was not:
#   prefix  title(10) and subject(10), as in RUBBoS: the "faulty index" of the paper's section 4
#   full    the whole title and subject
# usage: search_index.sh prefix|full [options of the mysql client]
set -eu

kind=${1-}
case $kind in
  prefix) length='(10)' ;;
  full) length= ;;
  *) echo "usage: $0 prefix|full [mysql options]" >&2; exit 2 ;;
esac
shift
sql() { statement=$1; shift; mysql "$@" --batch --skip-column-names -e "$statement"; } # a file of options must come first

for one in stories:title old_stories:title comments:subject old_comments:subject; do
  table=${one%:*}
  has=$(sql "SELECT IF(SUB_PART IS NULL, 'full', 'prefix') FROM information_schema.STATISTICS
    WHERE TABLE_SCHEMA = 'rubbos' AND TABLE_NAME = '$table' AND INDEX_NAME = 'search'" "$@")
  [ "$has" = "$kind" ] && continue
  sql "ALTER TABLE rubbos.$table ${has:+DROP INDEX search,} ADD INDEX search (${one#*:}$length); ANALYZE TABLE rubbos.$table" "$@" >/dev/null
  changed=1
done
[ -z "${changed-}" ] || echo changed
