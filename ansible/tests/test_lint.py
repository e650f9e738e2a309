"""ansible-lint, profile production, without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ANSIBLE = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent


def test_production_profile_passes():
    environment = {**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}", "NO_COLOR": "1"}
    done = subprocess.run(
        [BIN / "ansible-lint", "--offline"], cwd=ANSIBLE, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "production" in done.stderr + done.stdout
