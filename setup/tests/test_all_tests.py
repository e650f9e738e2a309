"""`make test` as a whole: which parts run at once, and what their ends mean. The goals are a small Makefile's."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
MAKEFILE = """
test-without test-alone:
	@echo $@ >>done
test-bases:
	@echo $@ >>done; {bases}
test-tools:
	@{tools}
test-images:
	@until [[ -e done ]] && grep -q test-without done; do sleep 0.05; done; echo $@ >>done; echo made; exit {code}
SHELL := bash
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    (tmp_path / "setup").mkdir()
    shutil.copy(ROOT / "setup/all_tests.py", tmp_path / "setup")
    return tmp_path


def start(
    checkout: Path, *, code: int = 0, tools: str = "echo tools on the screen", bases: str = "true"
) -> subprocess.Popen[str]:
    (checkout / "Makefile").write_text(MAKEFILE.format(code=code, tools=tools, bases=bases))
    return subprocess.Popen(
        [sys.executable, checkout / "setup/all_tests.py"],
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True,
    )  # fmt: skip


def test_images_are_made_beside_the_tests_that_need_none(checkout):
    """Those wait here for these, which follow them in the plan."""
    process = start(checkout)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 0, said
    done = (checkout / "done").read_text().split()
    assert done == ["test-bases", "test-without", "test-images", "test-alone"]
    assert "tools on the screen" in said
    assert said.index("test-images begins") < said.index("\nmade\n") < said.index("test-images: passed")
    assert said.splitlines()[-1].startswith("test: all passed")


def test_a_failure_ends_the_tests_but_not_what_runs_beside_it(checkout):
    process = start(checkout, code=3)
    said = process.communicate(timeout=60)[0]
    assert process.returncode == 1
    assert "test-images: failed" in said
    assert "test-without: passed" in said
    assert "test-alone" not in said
    assert said.splitlines()[-1].startswith("test: FAILED")


def test_ctrl_c_ends_what_has_the_screen_and_what_has_not(checkout):
    wait = "touch began-$@; sleep 60; touch ended-$@"
    process = start(checkout, tools=wait, bases=wait)
    while len(list(checkout.glob("began-*"))) < 2:
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does it: to its group, in which the other part is not
    process.wait(20)
    assert process.returncode == 130
    assert not list(checkout.glob("ended-*"))
