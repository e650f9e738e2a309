#!/bin/sh
# Loads a generated data set into a new schema `rubbos` of a cluster (an existing one is dropped), through one SQL node.
# usage: load.sh DATA_DIR [options of the mysql client]     e.g. load.sh data/small --user=root
# Needs an account that may create databases and set global variables. Exit code 2: wrong call, 1: load failed.
set -eu

tables="categories users stories old_stories submissions comments old_comments moderator_log"
here=$(cd "$(dirname "$0")" && pwd)
# Rows of one statement: a statement is one transaction, which takes an operation for each row and for each of its indexes
# (MaxNoOfConcurrentOperations). NDB itself ends one every 1024 rows or so (ndb_use_transactions = OFF), which is enough for loading.
# Every batch waits for the data nodes, so one client uses half a core of them: several load a table at once.
clients=4
session="SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_AUTO_VALUE_ON_ZERO', unique_checks = 0, ndb_use_transactions = OFF, ndb_autoincrement_prefetch_sz = 1024"

[ $# -ge 1 ] || { echo "usage: $0 DATA_DIR [mysql options]" >&2; exit 2; }
data=$1; shift
for table in $tables; do
  [ -r "$data/$table.tsv" ] || { echo "$0: $data/$table.tsv is missing: make it with the data generator" >&2; exit 2; }
done

sql() { mysql "$@" --local-infile=1 --default-character-set=utf8mb4 --batch --skip-column-names; }

# FILE [mysql options]: part of a table, named after it (users.2)
load() {
  file=$1; shift
  table=$(basename "$file")
  # NO_AUTO_VALUE_ON_ZERO: user 0 and category 0 keep their ids.
  sql "$@" -e "USE rubbos; $session; LOAD DATA LOCAL INFILE '$file' INTO TABLE ${table%.*} CHARACTER SET utf8mb4 FIELDS TERMINATED BY '\t' LINES TERMINATED BY '\n'"
}

before=$(sql "$@" -e 'SELECT @@GLOBAL.local_infile')
parts=$(mktemp -d)
trap 'rm -rf "$parts"; sql "$@" -e "SET GLOBAL local_infile = $before" || true' EXIT
sql "$@" -e 'SET GLOBAL local_infile = 1'

sql "$@" < "$here/1_tables.sql"
for table in $tables; do
  split -n "l/$clients" -d -a 1 "$data/$table.tsv" "$parts/$table."
  pids=""
  for part in "$parts/$table."*; do
    load "$part" "$@" &
    pids="$pids $!"
  done
  for pid in $pids; do wait "$pid" || { echo "$0: $table was not loaded" >&2; exit 1; }; done
  rm "$parts/$table."*
  # LOCAL turns errors into warnings: compare the number of rows instead.
  loaded=$(sql "$@" -e "SELECT COUNT(*) FROM rubbos.$table")
  expected=$(wc -l < "$data/$table.tsv")
  [ "$loaded" -eq "$expected" ] || { echo "$0: $table has $loaded rows, $data/$table.tsv has $expected" >&2; exit 1; }
done
# an assignment, whose exit code is the client's; that of a pipe would be awk's
analyzed=$( (echo 'USE rubbos;'; cat "$here/2_indexes.sql") | sql "$@")
echo "$analyzed" | awk '$3 == "Error" || $4 != "OK" { print; bad = 1 } END { exit bad }'
