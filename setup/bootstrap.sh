#!/usr/bin/env bash
# Python environment of the project: .venv in the checkout, from requirements.txt (hashes, no registry's host), with
# analysis/ and harness/ installed in place. Does nothing when its inputs did not change.
#   NTIER_PYTHON   the Python (>= 3.11) to use; default: the first fitting of python3, python3.13, python3.12, python3.11, /usr/bin/python3
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() { printf 'error: %s\n' "$1" >&2; exit "${2:-1}"; }

projects=()
for project in analysis harness; do
  [[ -f $project/pyproject.toml ]] && projects+=("$project")
done

inputs() { # what the environment is made of; the checkout's path is in it, since a venv cannot be moved
  printf '%s\n' "$PWD" "${NTIER_PYTHON:-}"
  cat setup/bootstrap.sh requirements.txt "${projects[@]/%//pyproject.toml}"
}
# macOS has neither sha256sum nor flock; a lock of Python's belongs to the open file, so it outlives the call.
sha256() { if command -v sha256sum >/dev/null; then sha256sum; else shasum -a 256; fi; }
lock() { if command -v flock >/dev/null; then flock "$1"; else python3 -c "import fcntl; fcntl.flock($1, fcntl.LOCK_EX)"; fi; }
stamp=.venv/.ntier-inputs
wanted=$(inputs | sha256)
# The version query proves that the interpreter a stamped environment points to is still there.
if [[ -f $stamp && $(<"$stamp") == "$wanted" ]] && .venv/bin/python -S -c '' 2>/dev/null; then
  exit 0
fi

find_python() {
  local candidate
  for candidate in "${NTIER_PYTHON:-}" python3 python3.13 python3.12 python3.11 /usr/bin/python3; do
    [[ -n $candidate ]] && "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null &&
      command -v "$candidate" && return
    [[ -n $candidate && $candidate == "${NTIER_PYTHON:-}" ]] && return 1
  done
  return 1
}

apt_install() {
  [[ $(id -u) == 0 ]] || fail "$* missing: as root, run  apt-get update && apt-get install $*" 2
  command -v apt-get >/dev/null || fail "$* missing, and this is not a Debian-like system: install it yourself" 2
  printf 'setup: installing %s\n' "$*"
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$@" >/dev/null
}

exec 9<requirements.txt # the lock file of concurrent runs: any file that is always here will do
lock 9
[[ -f $stamp && $(<"$stamp") == "$wanted" ]] && exit 0 # another make target was faster

if [[ -n ${NTIER_PYTHON:-} ]]; then
  python=$(find_python) || fail "NTIER_PYTHON=$NTIER_PYTHON is not a Python >= 3.11" 2
else
  python=$(find_python) || { apt_install python3 python3-venv; python=$(find_python); } || fail "no Python >= 3.11 (set NTIER_PYTHON)" 2
fi
"$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv

if ! .venv/bin/python -c '' 2>/dev/null || [[ $(readlink -f .venv/bin/python) != $(readlink -f "$("$python" -c 'import sys; print(sys.executable)')") ]]; then
  printf 'setup: Python environment .venv from %s\n' "$("$python" -V)"
  rm -rf .venv
  "$python" -m venv .venv
fi
rm -f "$stamp"
if ! .venv/bin/uv --version >/dev/null 2>&1; then # uv itself, at the locked version and hash; the rest comes by uv
  awk '/^[^ #]/ {wanted = /^uv==/} wanted' requirements.txt >.venv/uv.txt
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r .venv/uv.txt
fi
# uv does not read pip's configuration: hand on a mirror that the user or the company has set for pip.
if [[ -z ${UV_DEFAULT_INDEX:-}${UV_INDEX_URL:-} ]]; then
  mirror=${PIP_INDEX_URL:-$("$python" -m pip config get global.index-url 2>/dev/null || true)}
  [[ -z $mirror ]] || export UV_DEFAULT_INDEX=$mirror
fi
# uv has certificates of its own and does not look at this machine's, among which are those of a proxy that inspects TLS.
if [[ -z ${SSL_CERT_FILE:-}${SSL_CERT_DIR:-}${UV_NATIVE_TLS:-} && -s /etc/ssl/certs/ca-certificates.crt ]]; then
  export UV_SYSTEM_CERTS=${UV_SYSTEM_CERTS-true}
fi
export VIRTUAL_ENV=$PWD/.venv UV_LINK_MODE=${UV_LINK_MODE:-hardlink} UV_NO_PROGRESS=1
printf 'setup: Python packages (%s)\n' "$(grep -c '^[a-z0-9]' requirements.txt)"
.venv/bin/uv pip sync --quiet --require-hashes requirements.txt
# Compiled once here, so that programs do not begin with it. Of Ansible's 15,000 modules hardly any is imported on this machine.
.venv/bin/python -m compileall -q -j 0 -x /ansible_collections/ .venv/lib >/dev/null || true # templates among them are no Python
if ((${#projects[@]})); then
  .venv/bin/uv pip install --quiet --no-deps --no-build-isolation "${projects[@]/#/--editable=./}"
fi
printf '%s' "$wanted" >"$stamp"
