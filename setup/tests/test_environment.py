"""The Python environment and its lock."""

from __future__ import annotations

import os
import re
import subprocess
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_lock_names_no_registry_and_has_hashes():
    text = (ROOT / "requirements.txt").read_text()
    assert "://" not in text
    pins = re.findall(r"^[a-z0-9][^ ]*==[^ ]+", text, re.MULTILINE)
    assert len(pins) > 100
    blocks = re.split(r"\n(?=[a-z0-9])", text)
    assert all("--hash=sha256:" in block for block in blocks if "==" in block)


def test_lock_has_every_requirement():
    locked = set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    asked = re.findall(r"^([a-z][a-z0-9._-]*)", (ROOT / "requirements.in").read_text(), re.MULTILINE)
    assert len(asked) > 20
    assert set(asked) <= locked


def test_lock_serves_python_3_11_and_newer():
    text = (ROOT / "requirements.txt").read_text()
    assert re.search(r"^ansible-core==\S+ ; python_full_version < '3.12'", text, re.MULTILINE)
    assert re.search(r"^ansible-core==\S+ ; python_full_version >= '3.12'", text, re.MULTILINE)


def test_second_bootstrap_does_nothing():
    subprocess.run([ROOT / "setup/bootstrap.sh"], check=True)
    begin = time.monotonic()
    done = subprocess.run([ROOT / "setup/bootstrap.sh"], check=True, capture_output=True, text=True)
    assert done.stdout == ""
    assert time.monotonic() - begin < 2  # 0.02 s on an idle machine


def test_wrong_python_is_an_error():
    environment = {**os.environ, "NTIER_PYTHON": "/bin/false"}
    done = subprocess.run([ROOT / "setup/bootstrap.sh"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "NTIER_PYTHON=/bin/false is not a Python >= 3.11" in done.stderr
