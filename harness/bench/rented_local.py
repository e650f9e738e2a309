"""A whole sweep on target hcloud, end to end, without renting: the provider's API is the fake of the tests, and the
machines that it "rents" are containers of the base image on this machine. Each takes the host key and the authorized
key from its user data, as cloud-init would bring them. Terraform and the provider are the real ones.

Needs root, Incus and the image base-trixie, as the tests on real nodes do, and the provider (make providers).

Usage: python harness/bench/rented_local.py [--topo 1/1/1/1P] [--users 500] [--phases 3/10/1] [--budget 2EUR]

Prints what `ntier` says, then what was rented, what it did cost, and what is left; exit code 1 unless the sweep was
valid, its report says the cost, and nothing is left."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fake_hcloud import TOKEN, FakeHcloud

ROOT = Path(__file__).resolve().parents[2]
NODE_SH = ROOT / "terraform/targets/local/node.sh"
INCUS = ["incus", "--project", "ntier"]
NETWORK = "198.18.128.0/17"  # of the bridge; the local target's own nodes have lower addresses
TIERS = ("web", "app", "middleware", "db", "client")  # of the reference system, in the order of its topology
PUT_KEY = """
set -e
cat >/etc/ssh/ssh_host_ed25519_key
chmod 0600 /etc/ssh/ssh_host_ed25519_key
ssh-keygen -y -f /etc/ssh/ssh_host_ed25519_key >/etc/ssh/ssh_host_ed25519_key.pub
systemctl restart ssh
"""


def node_of(name: str) -> str:
    """`ntier-vm-12ab34cd-db1` is node db1."""
    return name.rpartition("-")[2]


def address_of(name: str) -> str:
    """As terraform/modules/topology gives it in NETWORK."""
    node = node_of(name)
    tier = node.rstrip("0123456789")
    return f"198.18.{129 + TIERS.index(tier)}.{node.removeprefix(tier)}"


class Containers:
    """Real nodes for the fake's servers. They come in the background: a server answers before its machine is up."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "ssh").mkdir(parents=True)
        self.environment = os.environ | {"NTIER_STATE": str(folder), "NTIER_NODES": str(folder / "nodes")}
        self.threads: list[threading.Thread] = []
        self.there: set[str] = set()

    def created(self, server: dict[str, Any]) -> None:
        self._begin(self._create, server)

    def deleted(self, server: dict[str, Any]) -> None:
        self._begin(self._delete, server)

    def _begin(self, do: Any, server: dict[str, Any]) -> None:
        self.threads.append(threading.Thread(target=do, args=(server,)))
        self.threads[-1].start()

    def _create(self, server: dict[str, Any]) -> None:
        data = yaml.safe_load(server["user_data"])
        (self.folder / "ssh" / "id_ed25519.pub").write_text(data["ssh_authorized_keys"][0] + "\n")
        name = f"build-rent-{node_of(server['name'])}"  # names of image building, which the local target leaves alone
        self.there.add(name)
        subprocess.run([NODE_SH, "create", name, "base-trixie", address_of(server["name"])], env=self.environment,
                       check=True)  # fmt: skip
        put = [*INCUS, "exec", name, "--disable-stdin=false", "--", "sh", "-c", PUT_KEY]
        subprocess.run(put, input=data["ssh_keys"]["ed25519_private"], text=True, check=True)

    def _delete(self, server: dict[str, Any]) -> None:
        name = f"build-rent-{node_of(server['name'])}"
        subprocess.run([NODE_SH, "delete", name], env=self.environment, check=True)
        self.there.discard(name)

    def clear(self) -> None:
        for thread in self.threads:
            thread.join()
        for name in sorted(self.there):
            subprocess.run([NODE_SH, "delete", name], env=self.environment, check=False)


def sweep(given: argparse.Namespace, fake: FakeHcloud, folder: Path) -> tuple[int, dict[str, Any]]:
    """Exit code of the sweep and its report as data."""
    offer = json.loads((ROOT / "terraform/targets/hcloud/machines.json").read_text())
    offer["options"] = {"network": NETWORK, "poll_interval": "200ms"}
    (folder / "machines.json").write_text(json.dumps(offer))
    environment = os.environ | {
        "HCLOUD_TOKEN": TOKEN,
        "HCLOUD_ENDPOINT": fake.endpoint,
        "NTIER_STATE": str(folder / "s"),
    }
    ntier = str(Path(sys.executable).with_name("ntier"))
    argv = ["sweep", "--topo", given.topo, "--data", "tiny", "--users", given.users, "--phases", given.phases]
    argv += ["--target", "hcloud", "--machines", str(folder / "machines.json"), "--budget", given.budget]
    argv += ["--results", str(folder / "results")]
    done = subprocess.run([ntier, *argv], env=environment, cwd=ROOT, check=False)
    subprocess.run([ntier, "leftovers", "--target", "hcloud"], env=environment, cwd=ROOT, check=False)
    reports = list((folder / "results" / "reports").glob("*/report.json"))
    return done.returncode, json.loads(reports[0].read_text()) if reports else {}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("topo", "1/1/1/1P"), ("users", "500"), ("phases", "3/10/1"), ("budget", "2EUR")):
        parser.add_argument(f"--{name}", default=default)
    given = parser.parse_args()
    lock = ROOT / "terraform/targets/hcloud/.terraform.lock.hcl"
    had_lock, began = lock.exists(), time.monotonic()
    with tempfile.TemporaryDirectory(prefix="nt-") as text:
        folder = Path(text)  # short: the path of an SSH connection's socket has 108 bytes
        containers = Containers(folder / "c")
        fake = FakeHcloud(address_of=address_of, created=containers.created, deleted=containers.deleted)
        try:
            with fake:
                code, report = sweep(given, fake, folder)
        finally:
            containers.clear()
            if not had_lock:  # its checksums are those of a provider built here, not of the registry
                lock.unlink(missing_ok=True)
    left = fake.count()
    valid = [t["valid"] for t in report.get("trials", [])]
    print(json.dumps({"code": code, "rented": fake.made, "left": left, "containers_left": sorted(containers.there),
                      "trials_valid": valid, "cost": report.get("cost"),
                      "seconds": round(time.monotonic() - began)}, indent=1))  # fmt: skip
    good = code == 0 and not left and not containers.there and valid and all(valid) and report.get("cost")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
