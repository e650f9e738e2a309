"""Golden images: a build node, the same role's install tasks as in deployment, then published."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import digests
import incus
import yaml

HERE = Path(__file__).parent
STATE = Path(os.environ.get("NTIER_STATE") or "/var/lib/ntier")
NODE = digests.ROOT / "terraform/targets/local/node.sh"
LOAD_ON_NODE = "/mnt/ntier-load"
OF_EACH_NODE = ("common", "monitor")  # roles that every other one stands on: installed once for each base


@dataclass(frozen=True)
class BuildNode:
    """A node that lives as long as an image is built on it."""

    image: str
    address: str
    role: str
    tier: str

    @property
    def name(self) -> str:
        return f"build-{self.image}"

    @property
    def clone(self) -> str:
        """Never started: it unpacks the image."""
        return f"{self.name}-unpack"

    @property
    def folder(self) -> Path:
        return STATE / "images" / self.image

    def start(self, source: str, log: Any) -> None:
        """Made like every node of the target: same script, same keys."""
        self.folder.mkdir(parents=True, exist_ok=True)
        environment = {**os.environ, "NTIER_NODES": str(STATE / "images/nodes"), "NTIER_STATE": str(STATE)}
        call([str(NODE), "create", self.name, source, self.address], log, env=environment)
        known = STATE / "images/nodes" / self.name / "known_hosts"
        shutil.copy(known, self.folder / "known_hosts")
        node = {"name": self.name, "tier": self.tier, "index": 1, "node_type": "normal", "address": self.address}
        (self.folder / "nodes.json").write_text(json.dumps([{**node, "role": self.role}]))

    def play(self, playbook: Path, variables: dict, log: Any) -> None:
        """Runs a playbook on the node. Connections are not shared with a former node at the same address."""
        with tempfile.TemporaryDirectory(prefix="ntier-") as sockets:
            environment = {
                **os.environ,
                "ANSIBLE_CONFIG": str(digests.ROOT / "ansible/ansible.cfg"),
                "ANSIBLE_SSH_CONTROL_PATH_DIR": sockets,
                "ANSIBLE_NOCOLOR": "1",
                "LC_ALL": "C.UTF-8",  # Ansible ends at once in a locale that is not UTF-8 or does not exist
                "ANSIBLE_CALLBACKS_ENABLED": "ansible.posix.profile_tasks",  # the log shows where the time goes
                "NTIER_STATE": str(STATE),
            }
            command = [str(Path(sys.executable).with_name("ansible-playbook")), "-i", str(self.folder / "nodes.json")]
            command += [str(playbook), "-e", json.dumps(variables)]
            call(command, log, cwd=digests.ROOT / "ansible", env=environment)

    def publish(self, digest: str, log: Any, *, is_final: bool = True) -> str:
        """Cleans and stops the node, makes it the image; a first clone unpacks it in the pool so that `up` need not.
        Returns the versions of what its role is about, which are in its description too. An image that is not final,
        since others are built on it, keeps the lists of packages for them."""
        seal = (HERE / "seal.sh").read_text()
        arguments = [] if is_final else ["keep-lists"]
        output = incus.run("exec", self.name, "--", "sh", "-s", *arguments, stdin=seal, log=log)
        packages, dates, held = output.split("---\n")
        versions = ", ".join(held.split("\n")[:-1])
        (self.folder / "packages.tsv").write_text(packages)
        incus.run("stop", self.name, "--timeout", "30", log=log)
        properties = [
            f"{incus.DIGEST}={digest}",
            f"user.ntier.apt_date={dates.strip()}",
            f"{incus.VERSIONS}={versions}",
            f"description=Ntier {self.image}: {versions}",
        ]
        said = incus.run("publish", self.name, "--compression=zstd", *properties, log=log)
        fingerprint = incus.fingerprint(said)
        incus.delete_instance(self.clone)  # of a set-up that was killed
        incus.run("create", fingerprint, self.clone, log=log)
        incus.run("delete", self.clone, log=log)
        incus.replace_alias(self.image, fingerprint, log)
        return versions

    def remove(self) -> None:
        for name in (self.name, self.clone):
            incus.delete_instance(name)
        shutil.rmtree(STATE / "images/nodes" / self.name, ignore_errors=True)


def call(command: list[str], log: Any, **options: Any) -> None:
    log.write(f"$ {' '.join(command)}\n")
    log.flush()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, **options)


def build(node: BuildNode, below: str, digest: str, role_digests: dict[str, str], log: Any) -> str:
    """The image `below` -> the same with the roles installed."""
    try:
        node.start(below, log)
        roles = {"ntier_install_roles": list(role_digests), "ntier_install_digests": role_digests}
        node.play(HERE / "install.yml", roles, log)
        return node.publish(digest, log, is_final=node.role not in OF_EACH_NODE)
    finally:
        node.remove()


def data_of(system: str) -> dict:
    """What a system's own description says of its data: the command that makes them, and the seed."""
    return yaml.safe_load((digests.ROOT / "systems" / system / "system.yaml").read_text())["data"]


def build_data(node: BuildNode, dbms: str, made: dict, profile: str, digest: str, log: Any) -> str:
    """Golden image of a DBMS -> the same with data. `made`: how they are made (`data_of`). Their dates are relative to
    now. What users are told of the data (data.json) changes with the image, not before: a build that fails leaves both
    as they were."""
    kept = STATE / "data" / f"{dbms}-{profile}"
    data = kept.with_name(f".{kept.name}.new")
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir(parents=True)
    facts = {"profile": profile, "seed": made["seed"], "now_s": int(time.time()), "out": data}
    call([part.format(**facts) for part in made["generate"]], log, cwd=digests.ROOT)
    for path in (data, *data.iterdir()):
        path.chmod(0o755 if path.is_dir() else 0o644)  # MySQL reads them through a mount, with another owner
    try:
        node.start(dbms, log)
        disk = ["config", "device", "add", node.name, "data", "disk", f"source={data}", f"path={LOAD_ON_NODE}"]
        incus.run(*disk, "readonly=true", "shift=true", log=log)
        node.play(HERE / "load.yml", {f"{dbms}_load_on_node": LOAD_ON_NODE}, log)
        incus.run("config", "device", "remove", node.name, "data", log=log)
        versions = node.publish(digest, log)
        for table in data.glob("*.tsv"):  # the image has them; dictionary.txt and data.json stay
            table.unlink()
        shutil.rmtree(kept, ignore_errors=True)
        data.rename(kept)
        return versions
    finally:
        node.remove()
        shutil.rmtree(data, ignore_errors=True)
