"""What purge removes of the state, and when it refuses: on a machine without Incus, so that it touches nothing else."""

from __future__ import annotations

import fcntl
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from ntier_harness.targets import NAMES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def purge(tmp_path):
    """purge(OPTIONS) of a checkout of its own."""
    for folder in ("bin", "checkout/setup", "state/local", "state/ssh"):
        (tmp_path / folder).mkdir(parents=True)
    for name in ("incus", "iptables"):
        (tmp_path / "bin" / name).write_text("#!/bin/sh\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    script = tmp_path / "checkout/setup/purge.sh"
    script.write_text((ROOT / "setup/purge.sh").read_text())
    environment = os.environ | {
        "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}",
        "NTIER_NAME": "ntierpurge",
        "NTIER_STATE": str(tmp_path / "state"),
    }

    def run(*arguments: str, become: tuple[str, ...] = (), **given: str) -> subprocess.CompletedProcess[str]:
        command, env = [*become, "bash", str(script), *arguments], environment | given
        return subprocess.run(command, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)

    return run


def test_what_is_not_ours_stays_in_the_state(purge, tmp_path):
    state = tmp_path / "state"
    for name in ("thesis.txt", "images.json", "lock.json"):
        (state / name).write_text("{}")
    done = purge("--yes")
    assert done.returncode == 0, done.stderr
    assert [p.name for p in state.iterdir()] == ["thesis.txt"]
    assert f"{state} stays" in done.stdout
    (state / "thesis.txt").unlink()
    (state / "local").mkdir()
    assert purge("--yes").returncode == 0
    assert not state.exists()
    assert "nothing is here" in purge("--yes").stdout


def web1_of(state: Path, tmp_path: Path) -> Path:
    """An Incus that has web1, which this state made; returns the file of what it was asked."""
    asked = tmp_path / "asked"
    (tmp_path / "bin/incus").write_text(f"""#!/bin/sh
echo "$*" >>{asked}
case "$*" in
  *" list "*) echo web1;;
  *"config get web1 user.ntier.state"*) echo {state};;
esac
""")
    return asked


def test_nodes_of_another_state_are_not_removed(purge, tmp_path):
    other = tmp_path / "other"
    (other / "local/nodes/web1").mkdir(parents=True)
    asked = web1_of(other, tmp_path)
    done = purge("--yes")
    assert done.returncode == 2
    assert "node web1 is of another deployment, perhaps at work: wait for it, or remove its nodes with" in done.stderr
    assert f"NTIER_STATE={other} make down" in done.stderr
    assert (tmp_path / "state/local").exists()
    assert "delete" not in asked.read_text()
    (other / "local/nodes/web1").rmdir()  # nobody has it any more
    purge("--yes")
    assert "delete --force web1" in asked.read_text()


def test_our_own_nodes_are_removed_also_if_the_state_is_written_otherwise(purge, tmp_path):
    state = tmp_path / "state"
    (state / "local/nodes/web1").mkdir(parents=True)
    asked = web1_of(state, tmp_path)
    purge("--yes", NTIER_STATE=f"{state}/")
    assert "delete --force web1" in asked.read_text()


def test_snapshots_that_cost_are_not_forgotten(purge, tmp_path):
    record = tmp_path / "state/hcloud/snapshots.json"
    record.parent.mkdir()
    record.write_text("{}")
    done = purge("--yes")
    assert done.returncode == 1
    assert "make images REMOVE=1 TARGET=hcloud" in done.stderr
    assert record.exists()
    assert (tmp_path / "state/ssh").exists()
    record.unlink()
    assert purge("--yes").returncode == 0


def test_a_state_whose_place_depends_on_where_one_stands_is_refused(purge):
    done = purge("--yes", NTIER_STATE="state")
    assert done.returncode == 2
    assert "NTIER_STATE: 'state' is not an absolute path" in done.stderr
    assert "Nothing was removed" in done.stderr


def test_all_that_is_made_in_the_state_is_known():
    """Folders and files that the programs name in it, and a folder for each target."""
    known = re.search(r"^ours_there=\((.*)\)$", (ROOT / "setup/purge.sh").read_text(), re.MULTILINE)[1].split()
    sources = [*ROOT.glob("setup/*.sh"), *ROOT.glob("terraform/targets/local/*.sh"), *ROOT.glob("setup/*.yml")]
    named = re.compile(r"\$(?:NTIER_STATE|state|\{state_dir\})/([a-z_][a-z_.]*)|\{\{ state_dir \}\}/([a-z_][a-z_.]*)")
    found = {a or b for file in sources for a, b in named.findall(file.read_text())}
    python = [ROOT / "harness/src/ntier_harness/paths.py", *ROOT.glob("setup/images/*.py")]
    found |= {n for f in python for n in re.findall(r'(?:self\.state|STATE|state) / f?"([a-z_.]+)', f.read_text())}
    assert {"images", "logs", "ssh", "lock", "setup.lock", "slice_us", "controller.digest", "images.json"} <= found
    assert found | set(NAMES) | {"lock.json"} <= set(known)


def test_another_ntier_is_named_and_nothing_is_removed(purge, tmp_path):
    state = tmp_path / "state"
    at_work = {"pid": 4711, "start_s": 1.5, "command": "ntier sweep --topo 1/1/1/1M"}
    (state / "lock.json").write_text(json.dumps(at_work))
    with (state / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = purge("--yes")
    assert done.returncode == 2
    assert "another ntier is at work: pid 4711 (ntier sweep --topo 1/1/1/1M)" in done.stderr
    assert (state / "local").exists()
    with (state / "setup.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = purge("--yes")
    assert (done.returncode, "a set-up is building images" in done.stderr) == (2, True)
    assert (state / "local").exists()
    assert purge("--yes").returncode == 0


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root to give up its powers")
def test_a_state_that_cannot_be_written_is_refused_first(purge, tmp_path):
    """As an ordinary user after root's set-up: here root without the powers over what is others'."""
    os.chown(tmp_path / "state", 65534, 65534)
    done = purge("--yes", become=("setpriv", "--bounding-set=-dac_override,-dac_read_search"))
    if "setpriv:" in done.stderr:
        pytest.skip(done.stderr)
    assert done.returncode == 2
    assert f"{tmp_path / 'state'} cannot be written; as root, run  make purge" in done.stderr
    assert "This is removed" not in done.stdout
