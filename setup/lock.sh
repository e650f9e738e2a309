#!/usr/bin/env bash
# analysis/pyproject.toml, harness/pyproject.toml (what our own packages import) and requirements.in (what else the environment
# needs) -> requirements.txt: one lock for Python 3.11 and newer, with hashes and without a registry's host. What is locked stays
# unless asked otherwise: arguments go to uv (for example --upgrade, or --upgrade-package pandas).
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
.venv/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
  --no-emit-find-links --no-emit-package ntier-analysis --extra fast --extra notebooks --extra cluster --extra remote "$@" \
  requirements.in analysis/pyproject.toml harness/pyproject.toml --output-file requirements.txt
if grep -n '://' requirements.txt; then
  echo 'error: the lock names a registry' >&2
  exit 1
fi
