"""The Python environment and its lock."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CERTIFICATES = Path("/etc/ssl/certs/ca-certificates.crt")


def test_lock_names_no_registry_and_has_hashes():
    text = (ROOT / "requirements.txt").read_text()
    assert "://" not in text
    pins = re.findall(r"^[a-z0-9][^ ]*==[^ ]+", text, re.MULTILINE)
    assert len(pins) > 100
    blocks = re.split(r"\n(?=[a-z0-9])", text)
    assert all("--hash=sha256:" in block for block in blocks if "==" in block)


def asked() -> dict[str, list[str]]:
    """File -> names of what it asks for."""
    requirements = {
        "requirements.in": re.findall(r"^[a-z][a-z0-9._-]*", (ROOT / "requirements.in").read_text(), re.MULTILINE)
    }
    for name in ("analysis", "harness"):
        project = tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"]
        lines = [*project["dependencies"], *chain(*project.get("optional-dependencies", {}).values())]
        requirements[name] = [re.match(r"[a-z][a-z0-9._-]*", line)[0] for line in lines]
    return requirements


def test_lock_has_every_requirement():
    locked = set(re.findall(r"^([a-z0-9][a-z0-9._-]*)==", (ROOT / "requirements.txt").read_text(), re.MULTILINE))
    names = set().union(*asked().values()) - {"ntier-analysis"}
    assert len(names) > 30
    assert names <= locked


def test_what_a_package_of_ours_imports_is_asked_for_by_it_alone():
    requirements = asked()
    own = set(requirements["analysis"]) | set(requirements["harness"])
    assert not own & set(requirements["requirements.in"])


def test_lock_is_what_the_three_files_ask_for(tmp_path):
    """A requirement that was added, dropped or changed without setup/lock.sh; nothing is looked up anew."""
    uv = Path(sys.executable).with_name("uv")
    for file in (
        "setup/lock.sh",
        "requirements.in",
        "requirements.txt",
        "analysis/pyproject.toml",
        "harness/pyproject.toml",
    ):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/uv").symlink_to(uv)
    done = subprocess.run([tmp_path / "setup/lock.sh"], capture_output=True, text=True)
    if done.returncode and "fetch" in done.stderr:
        pytest.skip(f"no package index: {done.stderr.strip()[-200:]}")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "requirements.txt").read_text() == (ROOT / "requirements.txt").read_text()


def test_lock_serves_python_3_11_and_newer():
    text = (ROOT / "requirements.txt").read_text()
    assert re.search(r"^ansible-core==\S+ ; python_full_version < '3.12'", text, re.MULTILINE)
    assert re.search(r"^ansible-core==\S+ ; python_full_version >= '3.12'", text, re.MULTILINE)


def test_second_bootstrap_does_nothing():
    subprocess.run([ROOT / "setup/bootstrap.sh"], check=True)
    before = os.times()
    done = subprocess.run([ROOT / "setup/bootstrap.sh"], check=True, capture_output=True, text=True)
    after = os.times()
    assert done.stdout == ""
    cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
    assert cpu_s < 1, "0.02 s on an idle machine; pip alone takes more"


@pytest.mark.skipif(not CERTIFICATES.exists(), reason="this machine has no certificates")
@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, "true"),
        ({"UV_SYSTEM_CERTS": "false"}, "false"),
        ({"UV_NATIVE_TLS": "false"}, ""),
        ({"SSL_CERT_FILE": str(CERTIFICATES)}, ""),
    ],
)
def test_uv_trusts_whom_this_machine_trusts(tmp_path, settings, expected):
    """As a proxy that inspects TLS: its authority is among the machine's certificates, not among uv's own."""
    for folder in ("setup", ".venv/bin"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(ROOT / "setup/bootstrap.sh", tmp_path / "setup")
    (tmp_path / "requirements.txt").write_text("uv==1\n")
    (tmp_path / ".venv/bin/python").symlink_to(sys.executable)
    (tmp_path / ".venv/bin/uv").write_text('#!/bin/sh\necho "$UV_SYSTEM_CERTS" >uv_trusts\n')
    (tmp_path / ".venv/bin/uv").chmod(0o755)
    plain = {k: v for k, v in os.environ.items() if not k.startswith(("UV_", "SSL_CERT", "PIP_"))}
    environment = {**plain, "NTIER_PYTHON": sys.executable, "PIP_INDEX_URL": "http://index/", **settings}
    subprocess.run([tmp_path / "setup/bootstrap.sh"], env=environment, check=True, capture_output=True)
    assert (tmp_path / "uv_trusts").read_text().strip() == expected


def test_wrong_python_is_an_error():
    environment = {**os.environ, "NTIER_PYTHON": "/bin/false"}
    done = subprocess.run([ROOT / "setup/bootstrap.sh"], env=environment, capture_output=True, text=True)
    assert done.returncode == 2
    assert "NTIER_PYTHON=/bin/false is not a Python >= 3.11" in done.stderr
