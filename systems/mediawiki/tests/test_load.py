"""The loader of the wiki, beside stand-ins for PHP and for MediaWiki's scripts: what it does with what is there."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

FILES = Path(__file__).resolve().parents[1] / "roles/mediawiki_app/files"
PHP = """#!/bin/sh
case "$*" in
  *--key*) cat $HOME_OF_IT/holds ;;
  *--begin*) echo begin >>$HOME_OF_IT/did; echo loading >$HOME_OF_IT/holds ;;
  *--empty*) echo empty >>$HOME_OF_IT/did ;;
  *--mark*) echo mark >>$HOME_OF_IT/did ;;
  *"$FAILS"*) exit 1 ;;
  *install*) echo install >>$HOME_OF_IT/did ;;
esac
"""
STUBS = {
    "php": PHP,
    "runuser": '#!/bin/sh\nshift 3\nexec "$@"\n',
    "python3": "#!/bin/sh\nfor to; do :; done\nmkdir $to; echo '{\"accounts\": 3}' >$to/data.json\n",
    "chown": "#!/bin/sh\n",
}


def load(folder: Path, holds: str | None, fails: str = "nothing") -> tuple[subprocess.CompletedProcess[str], list[str]]:
    """`holds`: what the database does, None: what an earlier call left. Returns the call and what MediaWiki did."""
    (folder / "bin").mkdir(exist_ok=True)
    for name, text in STUBS.items():
        (folder / "bin" / name).write_text(text)
        (folder / "bin" / name).chmod(0o755)
    (folder / "generate.py").write_text("one")
    (folder / "did").write_text("")
    if holds is not None:
        (folder / "holds").write_text(f"{holds}\n")
    told = {"WIKI_HOME": str(folder), "HOME_OF_IT": str(folder), "FAILS": fails, "WIKI_DBTYPE": "mysql"}
    told |= {f"WIKI_{name}": "x" for name in ("DBSERVER", "DBNAME", "DBUSER", "PASSWORD")}
    path = f"{folder / 'bin'}:{os.environ['PATH']}"
    argv = ["sh", FILES / "load", "tiny", "1"]
    done = subprocess.run(argv, env=os.environ | told | {"PATH": path}, capture_output=True, text=True)
    return done, (folder / "did").read_text().split()


def test_an_empty_database_is_loaded(tmp_path):
    done, did = load(tmp_path, "none")
    assert (done.returncode, done.stdout) == (0, "loaded\n"), done.stderr
    assert did == ["begin", "install", "mark"]


def test_a_load_that_was_cut_short_is_begun_anew(tmp_path):
    done, did = load(tmp_path, "none", fails="importDump")
    assert done.returncode == 1
    assert "load: importDump failed" in done.stderr
    assert did == ["begin", "install"]
    done, did = load(tmp_path, None)
    assert (done.returncode, did) == (0, ["empty", "begin", "install", "mark"]), done.stderr


@pytest.mark.parametrize("holds", ["ntier small 1 abc", "a wiki that was not loaded to its end"])
def test_what_is_not_to_be_emptied_stays_and_the_message_has_the_command(tmp_path, holds):
    done, did = load(tmp_path, holds)
    assert (done.returncode, did) == (1, [])
    assert f"the database holds '{holds}'" in done.stderr
    assert "make down  and the same command again" in done.stderr
