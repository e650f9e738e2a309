"""`ntier-analysis` within the test's own process: starting Python and importing pandas takes longer than most commands.
That the program itself ends with these exit codes is tested in store/test_store.py."""

from __future__ import annotations

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

from ntier_analysis import cli

PROGRAM = Path(sys.executable).with_name("ntier-analysis")


def started(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The program itself."""
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, cwd=cwd, check=False)


def called(*arguments: object, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The same without a process of its own."""
    words, out, err, code = list(map(str, arguments)), io.StringIO(), io.StringIO(), 0
    with (
        contextlib.chdir(cwd or "."),
        mock.patch.object(sys, "argv", [str(PROGRAM), *words]),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        try:
            cli.main()
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return subprocess.CompletedProcess(words, code, out.getvalue(), err.getvalue())
