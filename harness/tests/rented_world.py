"""What tests of rented machines need: a checkout, a state and an environment of their own, the fake provider, and a
stand-in for SSH that answers as a fresh machine would, since the fake's machines are only records. Provider and
Terraform are the real ones."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from filelock import FileLock
from ntier_harness import tables
from ntier_harness.request import make_spec

from .fake_cloud import FakeCloud

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("NTIER_PROVIDERS") or ROOT / "build" / "providers")
TERRAFORM = os.environ.get("TERRAFORM") or shutil.which("terraform") or shutil.which("tofu")


@functools.cache
def provider_folder(fake: type[FakeCloud]) -> Path | None:
    """Folder with the provider: as `make providers` builds it, else from the registry, fetched once."""
    if not TERRAFORM:
        return None
    if any(BUILT.glob(f"*/{fake.provider}/{fake.version}/*/terraform-provider-*")):
        return BUILT
    folder = Path(tempfile.gettempdir()) / f"ntier-provider-{fake.target}-{fake.version}-{os.getuid()}"
    (folder / "root").mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        tried = folder / "tried"  # beside other workers, and for an hour: a silent registry takes its time
        if not tried.exists() or time.time() - tried.stat().st_mtime > 3600:
            wanted = f'{fake.target} = {{ source = "{fake.provider}", version = "{fake.version}" }}'
            (folder / "root" / "main.tf").write_text(f"terraform {{\n required_providers {{\n {wanted}\n }}\n}}\n")
            argv = [TERRAFORM, f"-chdir={folder / 'root'}", "providers", "mirror", str(folder)]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(argv, capture_output=True, timeout=60, env=os.environ | {"CHECKPOINT_DISABLE": "1"})
            tried.touch()
    return folder if any(folder.glob(f"*/{fake.provider}/*")) else None


def provider(fake: type[FakeCloud]) -> Path:
    """Skips the test where there is none."""
    folder = provider_folder(fake)
    if folder is None:
        pytest.skip(f"no provider {fake.target}: the registry does not answer, and make providers was not run")
    return folder


SEEN_FROM = "198.51.100.9"
ROLES = ("common", "monitor", "web", "app", "haproxy", "shardingsphere", "postgresql", "mysql", "client")
BUILD = """import pathlib, shutil, sys
if "--stale" in sys.argv:
    sys.exit()
target = pathlib.Path(sys.argv[sys.argv.index("--digests") + 1])
shutil.copy(pathlib.Path(__file__).with_name("digests.json"), target)
"""
ANSIBLE = """#!/bin/sh
# Stand-in: says what it was called with, and fails while $NTIER_STAND_IN/fails is there.
echo "$*" >>"$NTIER_STAND_IN/played"
[ ! -e "$NTIER_STAND_IN/fails" ] || { echo "no space left"; exit 2; }
"""
SSH = r"""#!/bin/sh
# Stand-in: what a fresh Debian 13 answers. Machines whose address is in $NTIER_STAND_IN/silent do not answer.
for last; do before=$arg arg=$last; done
command=$arg address=${before##*@}
case " $* " in *" -O "*|*" -fN "*) exit 0;; esac
grep -qxF "$address" "$NTIER_STAND_IN/silent" 2>/dev/null && exit 255
echo "$address $command" | head -n 1 >>"$NTIER_STAND_IN/called"
case $command in
  *SSH_CONNECTION*) echo "from=198.51.100.9";;
  *os-release*) printf 'uid=0\nos=Debian 13\ndistribution=debian\nrelease=13\ninit=systemd\ncores=2\n'
    printf 'memory_kib=7900000\n'
    printf 'python=/usr/bin/python3\nowner=\nprograms=sshd\nlistening=0016\ntime=%s\ndatabases=\n' "$(date +%s.%N)";;
  "python3 -c"*) echo ready; echo 4000000000;;
  "sh -s") cat >"$NTIER_STAND_IN/sealed"; printf 'all\tpackages\n---\ndates\n---\nprogram 1.2\n';;
  "python3 -") cat >/dev/null
    echo '{"cpu_one_per_s": 9000, "cpu_all_per_s": 18000, "memory_bytes_s": 1e10, "disk_bytes_s": 3e8}';;
esac
exit 0
"""


class RentedWorld:
    """`folder` must be short: the path of an SSH connection's socket has 108 bytes."""

    def __init__(self, folder: Path, fake: FakeCloud) -> None:
        self.folder, self.fake, self.providers = folder, fake, provider(type(fake))
        self.root, self.state, self.stand_in = folder / "root", folder / "state", folder / "stand-in"
        self.root.mkdir(parents=True)
        for name in ("systems", "workloads", "ansible", "rubbos-app", "middleware"):
            (self.root / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "terraform", self.root / "terraform", ignore=shutil.ignore_patterns(".terraform*"))
        (self.root / "setup" / "images").mkdir(parents=True)
        for name in ("images.yml", "seal.sh"):
            shutil.copy(ROOT / "setup/images" / name, self.root / "setup/images")
        (self.root / "setup" / "build.py").write_text(BUILD)  # nothing is installed on records
        self.installs()
        self.python = self._own_python(folder / "venv")
        spec = make_spec({"topo": "1/1/1/1P", "data": "tiny", "target": fake.target}, self.root, 2)
        data = self.place / "data" / spec.data_folder
        data.mkdir(parents=True)
        (data / "data.json").write_text("{}")
        (data / tables.MADE_FROM).write_text(tables.origin(self.root, spec.system.definition.data.generate))
        self.stand_in.mkdir()
        (self.stand_in / "ssh").write_text(SSH)
        (self.stand_in / "ssh").chmod(0o755)
        offer = json.loads((ROOT / "terraform/targets" / fake.target / "machines.json").read_text())
        self.offer = folder / "machines.json"
        self.offer.write_text(json.dumps(offer | fake.offer))

    @property
    def place(self) -> Path:
        return self.state / self.fake.target

    def installs(self, **changed: str) -> None:
        """Digests of what the roles install, as set-up would make them."""
        digests = {role: f"{role}-1" for role in ROLES} | changed
        (self.root / "setup" / "digests.json").write_text(json.dumps({"ntier_install_digests": digests}))

    def _own_python(self, venv: Path) -> Path:
        """This Python, but the Ansible beside it is a stand-in."""
        (venv / "bin").mkdir(parents=True)
        (venv / "lib").symlink_to(Path(sys.prefix) / "lib")
        shutil.copy(Path(sys.prefix) / "pyvenv.cfg", venv)
        (venv / "bin" / "python").symlink_to(Path(sys.executable).resolve())
        (venv / "bin" / "ansible-playbook").write_text(ANSIBLE)
        (venv / "bin" / "ansible-playbook").chmod(0o755)
        return venv / "bin" / "python"

    def played(self) -> list[str]:
        """What Ansible was called with."""
        file = self.stand_in / "played"
        return file.read_text().splitlines() if file.exists() else []

    @property
    def environment(self) -> dict[str, str]:
        return (
            os.environ
            | self.fake.environment
            | {
                "NTIER_PROVIDERS": str(self.providers),
                "NTIER_ROOT": str(self.root),
                "NTIER_STATE": str(self.state),
                "NTIER_STAND_IN": str(self.stand_in),
                "PATH": f"{self.stand_in}:{os.environ['PATH']}",
                "TF_CLI_CONFIG_FILE": "/dev/null",
                "CHECKPOINT_DISABLE": "1",
            }
        )

    def argv(self, *arguments: str) -> list[str]:
        return [str(self.python), "-m", "ntier_harness.cli", *arguments, "--target", self.fake.target]

    def up_argv(self, topo: str = "1/1/1/1P") -> list[str]:
        return self.argv("up", "--topo", topo, "--data", "tiny", "--machines", str(self.offer))

    def ntier(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.argv(*arguments), env=self.environment, cwd=self.root, capture_output=True, text=True, timeout=300
        )

    def up(self, topo: str = "1/1/1/1P") -> subprocess.CompletedProcess[str]:
        return self.ntier("up", "--topo", topo, "--data", "tiny", "--machines", str(self.offer))

    def down(self) -> subprocess.CompletedProcess[str]:
        return self.ntier("down")

    def silence(self, *addresses: str) -> None:
        (self.stand_in / "silent").write_text("".join(f"{a}\n" for a in addresses))

    def read(self, name: str) -> object:
        return json.loads((self.place / name).read_text())
