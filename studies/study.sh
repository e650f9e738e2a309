#!/usr/bin/env bash
# study.sh NAME RESULTS SPEC [OPTION...]: runs what is missing of a study's campaigns (SPEC, if it is not empty: of this
# one), then makes the study's page anew from RESULTS. OPTIONs are those of `ntier campaign`. Called by `make study`.
# Exit codes: 0 done, 1 a trial has no valid attempt (the page is made all the same), else that of what failed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

name=$1 results=$2 spec=$3
shift 3
if [[ -z $name || ! -f studies/$name/page.py ]]; then
  echo "error: name: no study '$name'; there are: $(cd studies && printf '%s\n' */page.py | sed 's|/page.py||' | paste -sd' ')" >&2
  exit 2
fi
shopt -s nullglob
campaigns=(studies/"$name"/campaign*.yaml studies/"$name"/campaigns/*.yaml)
[[ -z $spec ]] || campaigns=("$spec")
code=0
for campaign in "${campaigns[@]}"; do
  images=$(.venv/bin/ntier campaign --spec "$campaign" --results "$results" "$@" --needs)
  [[ -z $images ]] || setup/setup.sh --images "$images" </dev/null >&2
  .venv/bin/ntier campaign --spec "$campaign" --results "$results" "$@" || code=$?
  ((code <= 1)) || exit "$code"
done
.venv/bin/python "studies/$name/page.py" "$results"
echo "page: studies/$name/README.md"
exit "$code"
