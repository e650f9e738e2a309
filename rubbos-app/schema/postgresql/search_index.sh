#!/bin/sh
# Makes the index that searches use what it is to be, and says "changed" if it was not:
#   full    on the whole title and subject
#   prefix  on left(title, 10) and left(subject, 10): what MySQL's subject(10) becomes in PostgreSQL. Searches name the column,
#           not the expression, so PostgreSQL cannot use it and reads the whole table
# usage: search_index.sh full|prefix [options of psql]
set -eu

kind=${1-}
case $kind in full | prefix) ;; *) echo "usage: $0 full|prefix [psql options]" >&2; exit 2 ;; esac
shift
sql() { statement=$1; shift; psql --no-psqlrc --quiet --tuples-only --no-align --set=ON_ERROR_STOP=1 "$@" --dbname=rubbos -c "$statement"; }

for one in stories:title old_stories:title comments:subject old_comments:subject; do
  table=${one%:*} column=${one#*:}
  # varchar_pattern_ops: LIKE 'word%' can use it whatever the locale
  if [ "$kind" = full ]; then key="$column varchar_pattern_ops"; else key="left($column, 10)"; fi
  has=$(sql "SELECT CASE WHEN indexprs IS NULL THEN 'full' ELSE 'prefix' END FROM pg_index
    WHERE indexrelid = to_regclass('${table}_search')" "$@")
  [ "$has" = "$kind" ] && continue
  # no notice of an index that is not there; errors are shown
  sql "SET client_min_messages = warning; BEGIN; DROP INDEX IF EXISTS ${table}_search; CREATE INDEX ${table}_search ON $table ($key); COMMIT; ANALYZE $table" "$@"
  changed=1
done
[ -z "${changed-}" ] || echo changed
