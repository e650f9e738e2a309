"""Base images: a root file system made by mmdebstrap from this machine's own package source."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
import urllib.parse
import urllib.request
from functools import cache
from io import BytesIO
from pathlib import Path
from typing import Any

import incus
import yaml

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SNAPSHOT = "http://snapshot.debian.org/archive"
SCRATCH = "/var/tmp"  # noqa: S108 (a folder of our own is made in it); /tmp may be memory
ROOT = Path(__file__).parent / "rootfs"
HOST_CERTIFICATES = Path("/usr/local/share/ca-certificates")
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
BRIDGE = "198.18.0.1"  # ntierbr0, see preseed.yml.j2
# Acquire options of the host that a node behind the same network needs too.
HOST_OPTIONS = ("Acquire::http::Proxy", "Acquire::https::Proxy", "Acquire::Check-Valid-Until", "Acquire::Check-Date")


def sources(base: dict, pinned: bool) -> list[str]:
    """The base's apt sources: the archive as it was on the base's day, or this machine's mirrors."""
    places = [f"{SNAPSHOT}/{archive}/{base['snapshot']}" for archive in ("debian", "debian-security")]
    mirror, security = places if pinned else mirrors()
    return [line.format(mirror=mirror, security=security) for line in base["sources"]]


def is_pinned(state: Path, bases: dict[str, dict], *, ask: bool = False) -> bool:
    """Whether packages come from the snapshots of Debian's archive: if they are reached and no mirror was named. Asked
    once and noted in `state`, so that images do not change with the network; `ask`: again."""
    if os.environ.get("NTIER_DEBIAN_MIRROR"):
        return False
    note = state / "images/snapshot"
    if ask or not note.exists():
        note.parent.mkdir(parents=True, exist_ok=True)
        days = sorted({base["snapshot"] for base in bases.values()})
        note.write_text("reached" if all(map(reached, days)) else "not reached")
    return note.read_text() == "reached"


def reached(day: str) -> bool:
    """As apt reaches it: with its proxy and its certificates."""
    with tempfile.TemporaryDirectory() as folder:
        options = ["-oAcquire::Retries=0", *(f"-oAcquire::{way}::Timeout=5" for way in ("http", "https"))]
        url = f"{SNAPSHOT}/debian/{day}/dists/sid/InRelease"
        command = ["/usr/lib/apt/apt-helper", *options, "download-file", url, f"{folder}/InRelease"]
        return subprocess.run(command, capture_output=True).returncode == 0


@cache
def mirrors() -> tuple[str, str]:
    """(mirror, security mirror) of Debian: the settings, else what this machine uses itself. Exits with 2 if neither
    says it, as on a machine that is not a Debian."""
    given = {"main": os.environ.get("NTIER_DEBIAN_MIRROR"), "security": os.environ.get("NTIER_SECURITY_MIRROR")}
    sources = package_sources()
    if os.geteuid() == 0 and not any(origin for origin, _, _ in sources):  # lists removed, as in slim images
        subprocess.run(["apt-get", "update", "-qq"], capture_output=True)
        sources = package_sources()
    for origin, label, uri in sources:
        which = "security" if label == "Debian-Security" else "main"
        if origin == "Debian":
            given[which] = given[which] or reachable_mirror(uri)
    if not given["main"]:
        print("error: this machine's apt sources name no Debian mirror, from which the nodes are made; say "
              "NTIER_DEBIAN_MIRROR=http://deb.debian.org/debian, or a mirror of yours (and NTIER_SECURITY_MIRROR)",
              file=sys.stderr)  # fmt: skip
        raise SystemExit(2)
    given["security"] = given["security"] or f"{given['main']}-security"  # mirrors with both have them side by side
    for address in given.values():
        refuse_loopback("the mirror", address)
    return given["main"], given["security"]


def package_sources() -> list[list[str]]:
    """[origin, label, address] of each package source; without apt's lists the first two are empty."""
    call = ["apt-get", "indextargets", "--format", "$(ORIGIN)|$(LABEL)|$(REPO_URI)", "Identifier: Packages"]
    done = subprocess.run(call, capture_output=True, text=True)
    return [line.split("|", 2) for line in done.stdout.splitlines()]


def reachable_mirror(uri: str) -> str | None:
    """`uri` as a node can use it: of a list of mirrors (as cloud images have) the first; None for a disk or DVD."""
    scheme, _, path = uri.partition(":")
    if scheme in ("http", "https"):
        return uri.rstrip("/")
    if scheme == "mirror+file" and Path(path).is_file():
        return Path(path).read_text().split()[0].rstrip("/")
    return None


def keep_proxies(state: Path, *, ask: bool = False) -> None:
    """The environment's proxies (http_proxy, https_proxy, no_proxy) are noted in `state`; an environment without any
    gets those of the note, since sudo drops them and an image must not change with the shell. `ask`: forget them."""
    note = state / "images/proxies.json"
    given = {name: v for name in PROXIES if (v := os.environ.get(name) or os.environ.get(name.upper()))}
    if given or ask:
        note.parent.mkdir(parents=True, exist_ok=True)
        note.touch(mode=0o600)
        note.write_text(json.dumps(given))
    elif note.exists():
        given = json.loads(note.read_text())
    os.environ.update(given)  # apt here reads the names in small letters only


def environment_proxies(named: list[str], hosts: list[str]) -> list[str]:
    """Options by which a node's apt goes the way that apt goes here with the environment's proxies. `named`: options of
    the host's configuration, which come first; `hosts`: those of the packages."""
    found = []
    for scheme in ("http", "https"):
        proxy = os.environ.get(f"{scheme}_proxy")
        if proxy and not any(option.startswith(f"Acquire::{scheme}::Proxy ") for option in named):
            past = [host for host in hosts if urllib.request.proxy_bypass_environment(host)]
            found += [f'Acquire::{scheme}::Proxy "{proxy}"']
            found += [f'Acquire::{scheme}::Proxy::{host} "DIRECT"' for host in past]
    return found


def refuse_loopback(what: str, address: str) -> None:
    """Exits with 2 if `address` is this machine by a name that on a node means the node itself."""
    host = urllib.parse.urlsplit(address if "//" in address else f"//{address}").hostname or ""
    if host == "localhost" or host == "::1" or host.startswith("127."):
        instead = address.replace(host, BRIDGE)
        print(f"error: {what} {address}: on a node {host} is the node itself; let it listen on {BRIDGE} too, by which "
              f"nodes and this machine reach it, and say {instead}", file=sys.stderr)  # fmt: skip
        raise SystemExit(2)


def apt_options(base: dict, pinned: bool) -> list[str]:
    """Options of the node's apt: the base's own, the host's, and the environment's proxies. A snapshot stands still,
    and is still signed. Exits with 2 for a proxy that a node cannot reach."""
    dump = subprocess.run(["apt-config", "dump", *HOST_OPTIONS], capture_output=True, text=True).stdout
    own = [
        f"{name} {value.rstrip(';')}"
        for name, _, value in (line.partition(" ") for line in dump.splitlines())
        if value not in ('"";', "")
    ]
    addresses = [word for line in sources(base, pinned) for word in line.split() if "://" in word]
    own += environment_proxies(own, sorted({host for a in addresses if (host := urllib.parse.urlsplit(a).hostname)}))
    for option in own:
        name, _, value = option.partition(" ")
        if name.endswith("::Proxy"):
            refuse_loopback("the proxy", value.strip('"'))
    old = ['Acquire::Check-Valid-Until "false"'] if pinned else []
    return sorted({*own, *old, *base.get("apt_options", [])})


def build(name: str, base: dict, pinned: bool, options: list[str], digest: str, log: Any) -> None:
    """Builds and imports the image `base-<name>`. Takes about 25 s."""
    with tempfile.TemporaryDirectory(prefix="ntier-base-", dir=os.environ.get("TMPDIR", SCRATCH)) as scratch:
        tar = Path(scratch) / "root.tar"
        files = readable_copy(ROOT, Path(scratch) / "rootfs")
        command = [  # its mounts are in a name space of their own, so that they go if it is killed
            "unshare", "--mount", "mmdebstrap", *options, f"--keyring={KEYRING}",
            *[f"--aptopt={option}" for option in apt_options(base, pinned)],
            f"--customize-hook=copy-in {shlex.quote(str(files / 'etc'))} /", *host_certificates(), customize(),
            name, str(tar), *sources(base, pinned),
        ]  # fmt: skip
        environment = {**os.environ, "TMPDIR": scratch, "LC_ALL": "C.UTF-8"}
        subprocess.run(command, check=True, stdout=log, stderr=subprocess.STDOUT, env=environment)
        metadata(Path(scratch) / "metadata.tar", name)
        said = incus.run("image", "import", f"{scratch}/metadata.tar", str(tar), f"{incus.DIGEST}={digest}", log=log)
        incus.replace_alias(f"base-{name}", incus.fingerprint(said), log)


def customize() -> str:
    """The hook with the text itself: a shell would split a checkout's path at its blanks, and run nothing."""
    text = (Path(__file__).parent / "customize.sh").read_text()
    return f'--customize-hook=chroot "$1" sh -c {shlex.quote(text)}'


def readable_copy(source: Path, target: Path) -> Path:
    """Files and folders that all may read, whatever umask the checkout was made with: the folders become the node's."""
    shutil.copytree(source, target, symlinks=True)
    for path in (target, *target.rglob("*")):
        if not path.is_symlink():
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
    return target


def remove_leftovers() -> None:
    """What a set-up that was killed left behind (nobody else is at work: set-up has a lock)."""
    for folder in Path(os.environ.get("TMPDIR", SCRATCH)).glob("ntier-base-*"):
        subprocess.run(["rm", "-rf", "--one-file-system", str(folder)], check=False)


def host_certificates() -> list[str]:
    """Certificate authorities that this machine's administrator added: a node is behind the same network."""
    if not any(HOST_CERTIFICATES.glob("*.crt")):
        return []
    return [f"--customize-hook=copy-in {HOST_CERTIFICATES} /usr/local/share"]


TEMPLATES = {
    "/etc/hostname": "{{ container.name }}\n",
    "/etc/hosts": "127.0.0.1 localhost\n127.0.1.1 {{ container.name }}\n",
}


def metadata(path: Path, suite: str) -> None:
    """Incus's description of the image; its templates give each clone its name."""
    now = int(time.time())
    templates = {target: {"when": ["create", "copy"], "template": Path(target).name} for target in TEMPLATES}
    about = {
        "architecture": platform.machine(),
        "creation_date": now,
        "properties": {"os": "debian", "release": suite, "description": f"Ntier base {suite}"},
        "templates": templates,
    }
    files = {f"templates/{Path(target).name}": text for target, text in TEMPLATES.items()}
    with tarfile.open(path, "w") as tar:
        for name, text in {"metadata.yaml": yaml.safe_dump(about), **files}.items():
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(text.encode()), now, 0o644
            tar.addfile(entry, BytesIO(text.encode()))
