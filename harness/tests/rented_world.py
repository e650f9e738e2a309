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

from .fake_hcloud import TOKEN, FakeHcloud

ROOT = Path(__file__).resolve().parents[2]
BUILT = Path(os.environ.get("NTIER_PROVIDERS") or ROOT / "build" / "providers")
TERRAFORM = os.environ.get("TERRAFORM") or shutil.which("terraform") or shutil.which("tofu")
VERSION = "1.58.0"
"""Of the provider in tests: a newer one might ask for what the fake does not answer."""


@functools.cache
def provider_folder() -> Path | None:
    """Folder with the provider: as `make providers` builds it, else from the registry, fetched once."""
    if not TERRAFORM:
        return None
    if any(BUILT.glob(f"*/hetznercloud/hcloud/{VERSION}/*/terraform-provider-hcloud_*")):
        return BUILT
    folder = Path(tempfile.gettempdir()) / f"ntier-provider-{VERSION}-{os.getuid()}"
    (folder / "root").mkdir(parents=True, exist_ok=True)
    with FileLock(folder / "lock"):
        tried = folder / "tried"  # beside other workers, and for an hour: a silent registry takes its time
        if not tried.exists() or time.time() - tried.stat().st_mtime > 3600:
            wanted = f'hcloud = {{ source = "hetznercloud/hcloud", version = "{VERSION}" }}'
            (folder / "root" / "main.tf").write_text(f"terraform {{\n required_providers {{\n {wanted}\n }}\n}}\n")
            argv = [TERRAFORM, f"-chdir={folder / 'root'}", "providers", "mirror", str(folder)]
            with contextlib.suppress(subprocess.TimeoutExpired):
                subprocess.run(argv, capture_output=True, timeout=60, env=os.environ | {"CHECKPOINT_DISABLE": "1"})
            tried.touch()
    return folder if any(folder.glob("*/hetznercloud/hcloud/*")) else None


def provider() -> Path:
    """Skips the test where there is none."""
    folder = provider_folder()
    if folder is None:
        pytest.skip("no provider hcloud: the registry does not answer, and make providers was not run")
    return folder


SEEN_FROM = "198.51.100.9"
SSH = r"""#!/bin/sh
# Stand-in: what a fresh Debian 13 answers. Machines whose address is in $NTIER_STAND_IN/silent do not answer.
for last; do before=$arg arg=$last; done
command=$arg address=${before##*@}
case " $* " in *" -O "*|*" -fN "*) exit 0;; esac
grep -qxF "$address" "$NTIER_STAND_IN/silent" 2>/dev/null && exit 255
echo "$address $command" | head -n 1 >>"$NTIER_STAND_IN/called"
case $command in
  *SSH_CONNECTION*) echo "from=198.51.100.9";;
  *os-release*) printf 'uid=0\nos=Debian 13\nfamily=debian\ninit=systemd\ncores=2\nmemory_kib=7900000\n'
    printf 'python=/usr/bin/python3\nowner=\nprograms=sshd\nlistening=0016\ntime=%s\ndatabases=\n' "$(date +%s.%N)";;
  "python3 -c"*) echo ready; echo 4000000000;;
  "python3 -") cat >/dev/null
    echo '{"cpu_one_per_s": 9000, "cpu_all_per_s": 18000, "memory_bytes_s": 1e10, "disk_bytes_s": 3e8}';;
esac
exit 0
"""


class RentedWorld:
    """`folder` must be short: the path of an SSH connection's socket has 108 bytes."""

    def __init__(self, folder: Path, fake: FakeHcloud) -> None:
        self.folder, self.fake, self.providers = folder, fake, provider()
        self.root, self.state, self.stand_in = folder / "root", folder / "state", folder / "stand-in"
        self.root.mkdir(parents=True)
        for name in ("systems", "workloads", "ansible", "rubbos-app", "middleware"):
            (self.root / name).symlink_to(ROOT / name)
        shutil.copytree(ROOT / "terraform", self.root / "terraform", ignore=shutil.ignore_patterns(".terraform*"))
        (self.root / "setup" / "images").mkdir(parents=True)
        shutil.copy(ROOT / "setup/images/images.yml", self.root / "setup/images")
        (self.root / "setup" / "build.py").write_text("")  # nothing is installed on records
        data = self.state / "hcloud" / "data" / "postgresql-tiny"
        data.mkdir(parents=True)
        (data / "data.json").write_text("{}")
        self.stand_in.mkdir()
        (self.stand_in / "ssh").write_text(SSH)
        (self.stand_in / "ssh").chmod(0o755)
        offer = json.loads((ROOT / "terraform/targets/hcloud/machines.json").read_text())
        self.offer = folder / "machines.json"
        self.offer.write_text(json.dumps(offer | {"options": {"poll_interval": "50ms"}}))

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {
            "HCLOUD_TOKEN": TOKEN,
            "HCLOUD_ENDPOINT": self.fake.endpoint,
            "NTIER_PROVIDERS": str(self.providers),
            "NTIER_ROOT": str(self.root),
            "NTIER_STATE": str(self.state),
            "NTIER_STAND_IN": str(self.stand_in),
            "PATH": f"{self.stand_in}:{os.environ['PATH']}",
            "TF_CLI_CONFIG_FILE": "/dev/null",
            "CHECKPOINT_DISABLE": "1",
        }

    def argv(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "ntier_harness.cli", *arguments, "--target", "hcloud"]

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
        return json.loads((self.state / "hcloud" / name).read_text())
