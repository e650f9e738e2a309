"""The loader of the wiki, beside stand-ins for PHP and for MediaWiki's scripts: what it does with what is there."""

from __future__ import annotations

import json
import os
import shutil
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


MAINTENANCE = """<?php
namespace MediaWiki\\Maintenance;
define( 'RUN_MAINTENANCE_IF_MAIN', __DIR__ . '/run.php' );
class Database {
	private $tables;
	private $lasting = true;
	public function __construct() { $this->tables = json_decode( file_get_contents( 'tables' ) ); }
	private function keep() { file_put_contents( 'tables', json_encode( array_values( $this->tables ) ) ); }
	public function getType() { return getenv( 'TYPE' ); }
	public function addIdentifierQuotes( $name ) { return $name; }
	public function listTables() { return $this->tables; }
	public function tableExists( $name ) { return in_array( $name, $this->tables ); }
	public function startAtomic() { $this->lasting = false; }
	public function endAtomic() { $this->lasting = true; $this->keep(); }
	public function query( $text ) {
		static $done = 0;
		if ( $done++ == getenv( 'CUT_AFTER' ) ) { exit( 9 ); }
		$name = explode( ' ', $text )[2];
		if ( str_starts_with( $text, 'CREATE TABLE' ) ) { $this->tables[] = $name; }
		if ( str_starts_with( $text, 'DROP TABLE' ) ) { $this->tables = array_diff( $this->tables, [ $name ] ); }
		if ( str_starts_with( $text, 'DROP SCHEMA' ) ) { $this->tables = [ 'no schema' ]; }
		if ( str_starts_with( $text, 'CREATE SCHEMA' ) ) { $this->tables = []; }
		if ( $this->lasting ) { $this->keep(); }
	}
}
class Maintenance {
	public function __construct() {}
	public function addOption() {}
	public function hasOption( $name ) { return $name === getenv( 'OPTION' ); }
	public function getPrimaryDB() { return new Database; }
	public function output( $text ) { echo $text; }
	public function fatalError( $text ) { fwrite( STDERR, $text ); exit( 1 ); }
}
"""
RUN = """<?php
$wgMemCachedServers = array_filter( [ getenv( 'CACHE' ) ] );
( new $maintClass )->execute();
"""


@pytest.mark.skipif(not shutil.which("php"), reason="no PHP on this machine")
@pytest.mark.parametrize("kind", ["mysql", "postgres"])
def test_emptying_can_be_cut_short_anywhere_and_repeated(tmp_path, kind):
    """The next load must see that one did not end: what is left is no wiki, and the cache knows texts of it."""
    source = (FILES / "NtierWiki.php").read_text()
    whole = "'/usr/share/mediawiki/maintenance/Maintenance.php'"
    assert whole in source
    (tmp_path / "wiki.php").write_text(source.replace(whole, "__DIR__ . '/maintenance.php'"))
    (tmp_path / "maintenance.php").write_text(MAINTENANCE)
    (tmp_path / "run.php").write_text(RUN)

    def php(option: str, cut_after: int = 99, cache: str = "") -> subprocess.CompletedProcess[str]:
        told = {"OPTION": option, "TYPE": kind, "CUT_AFTER": str(cut_after), "CACHE": cache}
        argv = ["php", "-n", "wiki.php"]
        return subprocess.run(argv, env=os.environ | told, cwd=tmp_path, capture_output=True, text=True, check=False)

    for cut_after in range(5):
        (tmp_path / "tables").write_text(json.dumps(["actor", "ntier_loading", "page", "updatelog"]))
        done = php("empty", cut_after)
        assert php("key").stdout == ("loading\n" if done.returncode else "none\n"), (cut_after, done.stderr)
        if done.returncode:
            assert php("empty", cache="127.0.0.1:1").returncode == 1, "a cache that does not answer"
            assert php("key").stdout == "loading\n"
            assert php("empty").returncode == 0
        assert json.loads((tmp_path / "tables").read_text()) == []
    assert done.returncode == 0, "it was never cut short"
