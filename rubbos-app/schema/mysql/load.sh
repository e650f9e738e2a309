#!/bin/sh
# Loads a generated data set into a new schema `rubbos` (an existing one is dropped).
# usage: load.sh DATA_DIR [prefix|full] [options of the mysql client]     e.g. load.sh data/small prefix --user=root
# prefix (default) or full: the index that searches use, see search_index.sh.
# Needs an account that may create databases and set global variables. Exit code 2: wrong call, 1: load failed.
set -eu

tables="categories users stories old_stories submissions comments old_comments moderator_log"
here=$(cd "$(dirname "$0")" && pwd)

[ $# -ge 1 ] || { echo "usage: $0 DATA_DIR [prefix|full] [mysql options]" >&2; exit 2; }
data=$1; shift
index=prefix
case ${1-} in prefix | full) index=$1; shift ;; esac
for table in $tables; do
  [ -r "$data/$table.tsv" ] || { echo "$0: $data/$table.tsv is missing: make it with the data generator" >&2; exit 2; }
done

sql() { mysql "$@" --local-infile=1 --default-character-set=utf8mb4 --batch --skip-column-names; } # a file of options must come first

before=$(sql "$@" -e 'SELECT @@GLOBAL.local_infile')
trap 'sql "$@" -e "SET GLOBAL local_infile = $before" || true' EXIT
sql "$@" -e 'SET GLOBAL local_infile = 1'

sql "$@" < "$here/1_tables.sql"
for table in $tables; do
  # NO_AUTO_VALUE_ON_ZERO: user 0 and category 0 keep their ids.
  sql "$@" rubbos -e "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO', unique_checks = 0;
    LOAD DATA LOCAL INFILE '$data/$table.tsv' INTO TABLE $table CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' LINES TERMINATED BY '\n'"
  # LOCAL turns errors into warnings: compare the number of rows instead.
  loaded=$(sql "$@" rubbos -e "SELECT COUNT(*) FROM $table")
  expected=$(wc -l < "$data/$table.tsv")
  [ "$loaded" -eq "$expected" ] || { echo "$0: $table has $loaded rows, $data/$table.tsv has $expected" >&2; exit 1; }
done
# an assignment, whose exit code is the client's; that of a pipe would be awk's
analyzed=$(sql "$@" rubbos < "$here/2_indexes.sql")
echo "$analyzed" | awk '$3 == "Error" || $4 != "OK" { print; bad = 1 } END { exit bad }'
sh "$here/search_index.sh" $index "$@" >/dev/null
