"""Images and a whole sweep on target hcloud, end to end, without renting: the provider's API is the fake of the tests,
and the machines that it "rents" are containers of the base image on this machine. Each takes the host key, the
authorized key and the files of its user data, as cloud-init would bring them. A snapshot is a copy of its container.
Terraform, the provider, SSH and Ansible are the real ones.

Needs root, Incus and the image base-trixie, as the tests on real nodes do, and the provider (make providers).

Usage: python harness/bench/rented_local.py [--topo 1/1/1/1P] [--users 200] [--phases smoke] [--clients 2]
                                            [--budget 2EUR] [--middleware haproxy] [--bare] [--keep FOLDER]

--bare: without images, so that the sweep installs from packages. --keep: copies the results there.

Prints what `ntier` says, then what was rented, what it did cost, which files hold a secret, after how many seconds a
machine that hears nothing is off, and what is left; exit code 1 unless the sweep was valid, its report says the cost,
it was made from snapshots, no secret is where it should not be, and nothing is left."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fake_hcloud import TOKEN, FakeHcloud

ROOT = Path(__file__).resolve().parents[2]
PROJECT = ["--project", "ntier"]
NETWORK = "198.18.128.0/17"  # of the bridge; the local target's own nodes have lower addresses
GATEWAY = "198.18.0.1"
TIERS = ("web", "app", "middleware", "db", "client")  # of the reference system, in the order of its topology
OURS = "build-rent-"  # names of image building, which the local target leaves alone
FIRST_BOOT = """
import json, os, subprocess, sys
data = json.load(sys.stdin)
def put(path, text, mode):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
os.makedirs("/root/.ssh", mode=0o700, exist_ok=True)
put("/root/.ssh/authorized_keys", "\\n".join(data["ssh_authorized_keys"]) + "\\n", 0o600)
put("/etc/ssh/ssh_host_ed25519_key", data["ssh_keys"]["ed25519_private"], 0o600)
put("/etc/ssh/ssh_host_ed25519_key.pub", data["ssh_keys"]["ed25519_public"] + "\\n", 0o644)
for file in data["write_files"]:
    put(file["path"], file["content"], 0o644)
for command in [*data["runcmd"], ["systemctl", "restart", "ssh"]]:
    subprocess.run(command, check=True)
"""
SECRET_FILES = ("/root/.ssh/authorized_keys", "/etc/ssh/ssh_host_ed25519_key", "/etc/ntier/secrets.yml")
SILENT_S = 15
UP = ("starting", "running", "degraded")
"""What systemd says of itself once it takes commands."""


def incus(*arguments: str, check: bool = True, **options: Any) -> subprocess.CompletedProcess[str]:
    argv = ["incus", *PROJECT, *arguments]
    options = {"stdin": subprocess.DEVNULL} | options if "input" not in options else options
    return subprocess.run(argv, check=check, capture_output=True, text=True, **options)


def node_of(name: str) -> str:
    """`ntier-vm-12ab34cd-db1` is node db1."""
    return name.rpartition("-")[2]


def address_of(name: str) -> str:
    """As terraform/modules/topology gives it in NETWORK."""
    node = node_of(name)
    tier = node.rstrip("0123456789")
    return f"198.18.{129 + TIERS.index(tier)}.{node.removeprefix(tier)}"


class Containers:
    """Real nodes for the fake's servers. They come and go in the background, those of one name one after the other: a
    server answers before its machine is up."""

    def __init__(self) -> None:
        self.queues: dict[str, ThreadPoolExecutor] = {}
        self.begun: list[Future[None]] = []
        self.from_snapshots: list[str] = []
        self.clear()

    def created(self, server: dict[str, Any]) -> None:
        self._begin(self._create, server)

    def deleted(self, server: dict[str, Any]) -> None:
        self._begin(self._delete, server)

    def stopped(self, server: dict[str, Any]) -> None:
        self._wait()
        incus("stop", self.name(server), "--timeout", "60", check=False)  # asked again, it may be off
        if "STOPPED" not in incus("list", f"^{self.name(server)}$", "--format", "csv", "--columns", "s").stdout:
            raise TimeoutError(f"{self.name(server)} does not stop")

    def taken(self, server: dict[str, Any], image: dict[str, Any]) -> None:
        copy = f"{OURS}image-{image['id']}"
        incus("copy", self.name(server), copy)
        incus("config", "device", "remove", copy, "eth0")  # else Incus starts no other node with its MAC

    def dropped(self, image: dict[str, Any]) -> None:
        incus("delete", "--force", f"{OURS}image-{image['id']}")

    @staticmethod
    def name(server: dict[str, Any]) -> str:
        return OURS + node_of(server["name"])

    def _begin(self, do: Any, server: dict[str, Any]) -> None:
        queue = self.queues.setdefault(self.name(server), ThreadPoolExecutor(max_workers=1))
        self.begun.append(queue.submit(self._told, do, server))

    def _told(self, do: Any, server: dict[str, Any]) -> None:
        try:
            do(server)
        except Exception as error:
            print(f"{self.name(server)}: {error} {getattr(error, 'stderr', '')}", file=sys.stderr, flush=True)
            raise

    def _wait(self) -> None:
        for future in self.begun:
            future.result()

    def _create(self, server: dict[str, Any]) -> None:
        image, snapshot = str(server["image"]), f"{OURS}image-{server['image']}"
        self.make(self.name(server), snapshot if image.isdigit() and snapshot in self.there() else None,
                  address_of(server["name"]), server["user_data"])  # fmt: skip

    def make(self, name: str, snapshot: str | None, address: str, user_data: str) -> None:
        mac = "02:00:" + ":".join(f"{int(part):02x}" for part in address.split("."))
        how = ["copy", snapshot, name] if snapshot else ["init", "base-trixie", name]
        incus(*how, "--config", f"environment.NTIER_ADDRESS={address}/16",
              "--config", f"environment.NTIER_GATEWAY={GATEWAY}")  # fmt: skip
        incus("config", "device", "override", name, "eth0", f"hwaddr={mac}")
        self.from_snapshots += [name] if snapshot else []
        incus("start", name)
        end = time.monotonic() + 60
        while incus("exec", name, "--", "systemctl", "is-system-running", check=False).stdout.strip() not in UP:
            if time.monotonic() > end:
                raise TimeoutError(f"{name} does not boot")
            time.sleep(0.5)
        data = json.dumps(yaml.safe_load(user_data))
        incus("exec", name, "--disable-stdin=false", "--", "python3", "-c", FIRST_BOOT, input=data)

    def _delete(self, server: dict[str, Any]) -> None:
        incus("delete", "--force", self.name(server))

    def there(self) -> list[str]:
        names = incus("list", "--format", "csv", "--columns", "n").stdout.split()
        return [name for name in names if name.startswith(OURS)]

    def secrets_in_snapshots(self) -> list[str]:
        """Files of one machine alone that came into a snapshot."""
        images = [name for name in self.there() if name.startswith(f"{OURS}image-")]
        return [f"{name}{file}" for name in images for file in SECRET_FILES
                if incus("file", "pull", f"{name}{file}", "-", check=False).returncode == 0]  # fmt: skip

    def expires(self, user_data: str) -> float | None:
        """Seconds after which a machine that hears nothing is off; None: it stays."""
        text = user_data.replace("OnActiveSec=3600", f"OnActiveSec={SILENT_S}")
        assert text != user_data
        name, began = f"{OURS}silent", time.monotonic()
        self.make(name, None, "198.18.255.1", text)
        while time.monotonic() < began + SILENT_S + 60:
            if "STOPPED" in incus("list", f"^{name}$", "--format", "csv", "--columns", "s").stdout:
                return round(time.monotonic() - began, 1)
            time.sleep(1)
        return None

    def clear(self) -> list[str]:
        """What was still there."""
        for queue in self.queues.values():
            queue.shutdown(wait=True)
        left = self.there()
        for name in left:
            incus("delete", "--force", name)
        return left


class Person:
    """Who calls `ntier`, with a state and results of their own."""

    def __init__(self, given: argparse.Namespace, fake: FakeHcloud, folder: Path) -> None:
        offer = json.loads((ROOT / "terraform/targets/hcloud/machines.json").read_text())
        offer["options"] = {"network": NETWORK, "poll_interval": "200ms"}
        (folder / "machines.json").write_text(json.dumps(offer))
        self.state, self.results = folder / "s", folder / "results"
        self.environment = os.environ | fake.environment | {"NTIER_STATE": str(self.state)}
        self.request = ["--topo", given.topo, "--data", "tiny", "--machines", str(folder / "machines.json"),
                        "--middleware", given.middleware, "--budget", given.budget]  # fmt: skip
        self.trials = ["--users", given.users, "--phases", given.phases, "--clients", given.clients,
                       "--results", str(self.results)]  # fmt: skip

    def ntier(self, *arguments: str) -> int:
        print("$ ntier", *arguments[:1], flush=True)
        argv = [str(Path(sys.executable).with_name("ntier")), *arguments, "--target", "hcloud"]
        return subprocess.run(argv, env=self.environment, cwd=ROOT, check=False).returncode

    def report(self) -> dict[str, Any]:
        files = list((self.results / "reports").glob("*/report.json"))
        return json.loads(files[0].read_text()) if files else {}

    def secrets(self) -> list[str]:
        """Files with a secret in them that is not theirs."""
        place = self.state / "hcloud"
        own = [(file, file.read_text().splitlines()[2]) for file in (place / "host_keys").glob("*[!b]")]
        passwords = place / "secrets.yml"
        if passwords.exists():
            own += [(passwords, line.partition(": ")[2]) for line in passwords.read_text().splitlines()]
        files = [f for top in (self.state, self.results) for f in top.rglob("*") if f.is_file() and not f.is_symlink()]
        found = []
        for file in files:
            data = plain(file)
            found += [f"{file}: the token"] if TOKEN.encode() in data else []
            found += [f"{file}: of {f.name}" for f, text in own if f != file and text.encode() in data]
        return found


def plain(file: Path) -> bytes:
    if file.suffix != ".zst":
        return file.read_bytes()
    import zstandard

    with file.open("rb") as stream:
        return zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True).read()


def carry_out(given: argparse.Namespace, fake: FakeHcloud, containers: Containers, folder: Path) -> dict[str, Any]:
    person, began = Person(given, fake, folder), time.monotonic()
    outcome: dict[str, Any] = {}
    if not given.bare:
        outcome["images"] = person.ntier("images", *person.request)
        outcome |= {"images_s": round(time.monotonic() - began), "left_of_images": fake.count(),
                    "secrets_in_snapshots": containers.secrets_in_snapshots()}  # fmt: skip
        if outcome["images"]:
            return outcome | {"down": person.ntier("down")}
    began, before = time.monotonic(), fake.made
    outcome["sweep"] = person.ntier("sweep", *person.request, *person.trials)
    outcome |= {"sweep_s": round(time.monotonic() - began), "made_from_snapshots": sorted(containers.from_snapshots)}
    report = person.report()
    outcome |= {"valid": [t["valid"] for t in report.get("trials", [])], "cost": report.get("cost")}
    outcome |= {"rented": [before, fake.made - before], "left": fake.count(), "secrets": person.secrets()}
    outcome["leftovers"] = person.ntier("leftovers")
    outcome["snapshots_removed"] = person.ntier("images", "--remove")
    outcome["silent_off_after_s"] = containers.expires(next(iter(fake.user_data.values())))
    if given.keep and person.results.exists():
        shutil.copytree(person.results, given.keep, dirs_exist_ok=True)
    return outcome


def good(outcome: dict[str, Any], bare: bool) -> bool:
    if "sweep" not in outcome:
        return False
    ended = all(outcome[what] == 0 for what in ("sweep", "leftovers", "snapshots_removed"))
    empty = not any(outcome[what] for what in ("left", "secrets", "containers_left"))
    measured = bool(outcome["valid"]) and all(outcome["valid"]) and bool(outcome["cost"])
    imaged = bare or (outcome["images"] == 0 and len(outcome["made_from_snapshots"]) == outcome["rented"][1]
                      and not outcome["left_of_images"] and not outcome["secrets_in_snapshots"])  # fmt: skip
    return ended and empty and measured and imaged and outcome["silent_off_after_s"] is not None


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, default in (("topo", "1/1/1/1P"), ("users", "200"), ("phases", "smoke"), ("clients", "2"),
                          ("budget", "2EUR"), ("middleware", "haproxy")):  # fmt: skip
        parser.add_argument(f"--{name}", default=default)
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--keep", type=Path)
    given = parser.parse_args()
    lock = ROOT / "terraform/targets/hcloud/.terraform.lock.hcl"
    had_lock, outcome = lock.exists(), {}
    with tempfile.TemporaryDirectory(prefix="nt-") as text:  # short: an SSH connection's socket has 108 bytes
        containers = Containers()
        fake = FakeHcloud(address_of=address_of, created=containers.created, deleted=containers.deleted,
                          stopped=containers.stopped, taken=containers.taken, dropped=containers.dropped)  # fmt: skip
        try:
            with fake:
                outcome = carry_out(given, fake, containers, Path(text))
        finally:
            outcome["containers_left"] = [n for n in containers.clear() if n != f"{OURS}silent"]
            if not had_lock:  # its checksums are those of a provider built here, not of the registry
                with contextlib.suppress(FileNotFoundError):
                    lock.unlink()
    print(json.dumps(outcome, indent=1))
    return 0 if good(outcome, given.bare) else 1


if __name__ == "__main__":
    sys.exit(main())
