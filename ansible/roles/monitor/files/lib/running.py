"""Versions of programs as they run: asked of the file that a process was started from, or read in a jar that it holds
open. A package that was upgraded since, or a file that was replaced, does not deceive it."""

import contextlib
import fnmatch
import glob
import os
import re
import subprocess
import zipfile
from pathlib import Path

from processes import process_status

UNKNOWN = "unknown"
LIMIT_S = 10
# The first number that stands by itself: "Apache/2.4.66 (Debian)", 'openjdk version "25.0.1"', "Ver 9.7.4-1 for Linux"
NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)*(?:[-+~][\w.+~-]*)?")
IN_MANIFEST = re.compile(r"^(?:Implementation|Bundle)-Version: *(\S+)", re.M)


def version(line):
    """(component, version) of a line `COMPONENT PROCESS HOW [WHAT...]` of ETC/running.d; `unknown` where nothing tells.

    PROCESS: a unit, whose main process it is, or a glob of files with a pid, of which the newest counts. HOW:
    `says ARGUMENT...` (what the program prints), `jar GLOB` (a jar that it uses), `wrote FILE` (what it wrote down)."""
    component, process, how, *what = line.split()
    with contextlib.suppress(OSError, ValueError, subprocess.TimeoutExpired, zipfile.BadZipFile):
        version = HOW[how](main_process(process), *what)
        return component, version or UNKNOWN
    return component, UNKNOWN


def main_process(process):
    """Its pid. Raises ValueError if it does not run."""
    if process.startswith("/"):
        newest = max(glob.glob(process), key=os.path.getmtime, default=None)
        said = Path(newest).read_text() if newest else "0"
    else:
        command = ["systemctl", "show", "--property=MainPID", "--value", process]
        said = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S, check=False).stdout
    pid = int(said.strip() or 0)
    if process_status(pid) is None:
        raise ValueError(f"{process} does not run")
    return pid


def says(pid, *arguments):
    program = f"/proc/{pid}/exe"
    name = os.path.basename(os.readlink(program)).split()[0]  # of a replaced file: "mysqld (deleted)"
    return said(
        subprocess.run(
            [name, *arguments],
            executable=program,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=LIMIT_S,
            check=False,
            cwd="/",
            env={"LC_ALL": "C.UTF-8"},
        )
    )


def said(done):
    match = NUMBER.search(done.stdout + done.stderr)
    return match[0] if match else UNKNOWN


def jar(pid, pattern):
    for link in sorted(Path(f"/proc/{pid}/fd").iterdir()):
        with contextlib.suppress(FileNotFoundError):  # closed meanwhile
            if fnmatch.fnmatch(os.readlink(link).removesuffix(" (deleted)"), pattern):
                with zipfile.ZipFile(link) as opened:
                    match = IN_MANIFEST.search(opened.read("META-INF/MANIFEST.MF").decode())
                    return match and match[1]
    return None


def wrote(_pid, file):
    return Path(file).read_text().strip()


HOW = {"says": says, "jar": jar, "wrote": wrote}
