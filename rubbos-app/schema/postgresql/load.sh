#!/bin/sh
# Loads a generated data set into a new database `rubbos` (an existing one is dropped).
# usage: load.sh DATA_DIR [full|prefix] [options of psql]     e.g. load.sh data/small full --host=/run/postgresql
# full (default) or prefix: the index that searches use, see search_index.sh. Needs an account that may create databases.
# Exit code 2: wrong call, 1: load failed.
set -eu

tables="categories users stories old_stories submissions comments old_comments moderator_log"
here=$(cd "$(dirname "$0")" && pwd)

[ $# -ge 1 ] || { echo "usage: $0 DATA_DIR [full|prefix] [psql options]" >&2; exit 2; }
data=$1; shift
index=full
case ${1-} in full|prefix) index=$1; shift ;; esac
for table in $tables; do
  [ -r "$data/$table.tsv" ] || { echo "$0: $data/$table.tsv is missing: make it with the data generator" >&2; exit 2; }
done

sql() { psql --no-psqlrc --quiet --set=ON_ERROR_STOP=1 "$@"; }

sql "$@" --dbname=postgres -c 'DROP DATABASE IF EXISTS rubbos' -c "CREATE DATABASE rubbos ENCODING 'UTF8' TEMPLATE template0"
sql "$@" --dbname=rubbos --single-transaction --file="$here/1_tables.sql"
for table in $tables; do
  # COPY fails on the first wrong row, so nothing is left out silently.
  sql "$@" --dbname=rubbos -c "\\copy $table FROM '$data/$table.tsv'"
done
sql "$@" --dbname=rubbos --output=/dev/null --file="$here/2_indexes.sql"
sh "$here/search_index.sh" $index "$@" >/dev/null
