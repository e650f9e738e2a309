"""Raw results and store elsewhere: on an S3-compatible server and behind SSH, both real servers of this machine."""

import asyncio
import json
import os
import socket
import subprocess
import threading
from pathlib import Path

import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.places import Place
from program import PROGRAM, called

SWEEPS = [f"1-1-1-{n}M.browse_only.shardingsphere" for n in (1, 2)]


@pytest.fixture(scope="module")
def here(raw, made_once):
    """Store and densities of this machine, and what was printed."""

    def make(folder):
        said = [called("ingest", "--raw", raw, "--store", folder / "store"),
                called("densities", folder / "store", "--out", folder / "densities")]  # fmt: skip
        assert [s.returncode for s in said] == [0, 0], said
        (folder / "said.json").write_text(json.dumps([s.stdout for s in said]))

    folder = made_once("here", make)
    return folder, json.loads((folder / "said.json").read_text())


@pytest.fixture(scope="module")
def s3(raw, bucket):
    """(URL, settings) of a bucket with the raw results."""
    client, settings = bucket
    for path in (p for p in raw.rglob("*") if p.is_file()):
        client.upload_file(str(path), "bucket", f"raw/{path.relative_to(raw)}")
    return "s3://bucket", settings


@pytest.fixture(scope="module")
def ssh(raw, tmp_path_factory):
    """The same of a folder behind SSH, with a key and a known host."""
    import asyncssh

    home = tmp_path_factory.mktemp("home")
    (home / ".ssh").mkdir(mode=0o700)
    own, hosts = asyncssh.generate_private_key("ssh-ed25519"), asyncssh.generate_private_key("ssh-ed25519")
    own.write_private_key(home / ".ssh/id_ed25519")
    own.write_public_key(home / ".ssh/authorized")
    loop, port = asyncio.new_event_loop(), []

    async def serve():
        listening = await asyncssh.listen("127.0.0.1", 0, server_host_keys=[hosts], sftp_factory=True,
                                          authorized_client_keys=str(home / ".ssh/authorized"))  # fmt: skip
        port.append(listening.get_port())
        return listening

    server = loop.run_until_complete(serve())
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    (home / ".ssh/known_hosts").write_text(f"[127.0.0.1]:{port[0]} {hosts.export_public_key().decode()}")
    folder = tmp_path_factory.mktemp("there")
    (folder / "raw").symlink_to(raw)
    yield f"ssh://root@127.0.0.1:{port[0]}{folder}", {"HOME": str(home)}
    loop.call_soon_threadsafe(server.close)
    loop.call_soon_threadsafe(loop.stop)
    thread.join(10)


def contents(folder: Path) -> dict:
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*.parquet")}


@pytest.mark.whole
@pytest.mark.parametrize("kind", ["s3", pytest.param("ssh", marks=pytest.mark.long)])
def test_raw_and_store_elsewhere_give_the_same_bytes(here, tmp_path, kind, request, monkeypatch):
    url, settings = request.getfixturevalue(kind)
    for name, value in settings.items():
        monkeypatch.setenv(name, value)
    there = [called("ingest", "--raw", f"{url}/raw", "--store", f"{url}/store", "--jobs", "2"),
             called("densities", f"{url}/store", "--out", f"{url}/densities")]  # fmt: skip
    assert [d.returncode for d in there] == [0, 0], there
    assert [d.stdout for d in there] == here[1]
    again = called("ingest", "--raw", f"{url}/raw", "--store", f"{url}/store")
    assert [line.split(": ")[1] for line in again.stdout.splitlines()] == ["unchanged", "unchanged"]
    assert called("judge", f"{url}/store", SWEEPS[0]).returncode == 0
    for part in ("store", "densities"):
        Place.of(f"{url}").fetch(part, tmp_path / "there" / part)
    assert contents(tmp_path / "there") == contents(here[0]) != {}
    left = [p for p in (tmp_path / "there").rglob("*") if p.is_file() and p.suffix != ".parquet"]
    assert left == [], "no file of a temporary name"


def test_what_cannot_be_reached_is_one_error(tmp_path):
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        settings = {"AWS_ACCESS_KEY_ID": "made", "AWS_SECRET_ACCESS_KEY": "up", "NO_PROXY": "127.0.0.1",
                    "AWS_ENDPOINT_URL": f"http://127.0.0.1:{port}", "AWS_MAX_ATTEMPTS": "1"}  # fmt: skip
        words = [PROGRAM, "ingest", "--raw", "s3://bucket/raw", "--store", tmp_path]
        done = subprocess.run(words, capture_output=True, text=True, check=False, env=os.environ | settings)
    assert done.returncode == 2
    assert done.stderr.startswith("error: s3://bucket/raw: cannot be reached")
    assert "Traceback" not in done.stderr


def test_a_kind_of_place_that_nobody_knows(tmp_path):
    with pytest.raises(DataError, match="nothing://x: "):
        Place.of("nothing://x").folders()


def test_paths_stay_paths(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Place.of("results/raw").local == Path("results/raw")
    assert Place.of("results/raw", absolute=True).local == tmp_path / "results/raw"
    assert Place.of(f"file://{tmp_path}/raw").local == tmp_path / "raw"
    assert Place.of("s3://bucket/raw/").text == "s3://bucket/raw"
