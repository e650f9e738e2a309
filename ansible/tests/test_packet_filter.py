"""The packet filter of a node, in networks of the test's own, and the ports of SSH that it leaves open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jinja2
import pytest

ROLES = Path(__file__).resolve().parents[1] / "roles"

LISTEN = """
import socket, sys, time
held = [socket.create_server(("10.77.0.1", int(port)), backlog=8) for port in sys.argv[1:]]
print("ready", flush=True)
time.sleep(60)
"""
CONNECT = """
import socket, sys
for port in sys.argv[1:]:
    try:
        socket.create_connection(("10.77.0.1", int(port)), timeout=2).close()
        print(port)
    except OSError:
        pass
"""


@pytest.fixture
def networks() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable: a machine of somebody else's, and we."""
    names = (f"ntier-m{os.getpid()}", f"ntier-u{os.getpid()}")
    if os.geteuid() or subprocess.run(["ip", "netns", "add", names[0]], capture_output=True).returncode:
        pytest.skip("needs root and ip netns")
    try:
        script = f"""set -e
ip netns add {names[1]}
ip -n {names[0]} link add cable type veth peer name cable netns {names[1]}
ip -n {names[0]} address add 10.77.0.1/24 dev cable; ip -n {names[1]} address add 10.77.0.2/24 dev cable
for n in {names[0]} {names[1]}; do ip -n $n link set lo up; ip -n $n link set cable up; done"""
        subprocess.run(["sh", "-c", script], check=True)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True)


HEAR = """
import socket
heard = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
heard.bind(("10.77.0.1", 123))
heard.settimeout(3)
print("ready", flush=True)
try:
    while True:
        print(heard.recvfrom(9)[1][1], flush=True)
except TimeoutError:
    pass
"""
SAY = """
import socket, sys
for port in sys.argv[1:]:
    said = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    said.bind(("10.77.0.2", int(port)))
    said.sendto(b"time", ("10.77.0.1", 123))
"""


def filter_rules(file: Path) -> Path:
    """The packet filter of a client's node, with SSH at two ports."""
    environment = jinja2.Environment(trim_blocks=True, undefined=jinja2.StrictUndefined, autoescape=False)
    template = environment.from_string((ROLES / "common/templates/nftables.conf.j2").read_text())
    common = {"ansible_managed": "", "groups": {}, "hostvars": {}, "common_controller_addresses": ["any"]}
    file.write_text(template.render(common, ntier_tier="client", common_services={}, common_ssh_ports=[22, 2222]))
    return file


def test_answers_of_time_servers_come_in_also_to_the_port_that_they_have_themselves(networks, tmp_path):
    """ntpd and ntpsec ask from port 123."""
    machine, us = networks
    rules = filter_rules(tmp_path / "rules")
    subprocess.run(["ip", "netns", "exec", machine, "nft", "--file", rules], check=True)
    hears = ["ip", "netns", "exec", machine, sys.executable, "-c", HEAR]
    with subprocess.Popen(hears, stdout=subprocess.PIPE, text=True) as listener:
        assert listener.stdout.readline() == "ready\n"
        subprocess.run(["ip", "netns", "exec", us, sys.executable, "-c", SAY, "5000", "123"], check=True)
        assert listener.stdout.read().split() == ["123"]


def test_ssh_stays_open_where_the_machine_has_it(networks, tmp_path):
    machine, us = networks
    rules = filter_rules(tmp_path / "rules")
    ports = ["22", "2222", "9100"]
    listener = subprocess.Popen(
        ["ip", "netns", "exec", machine, sys.executable, "-c", LISTEN, *ports], stdout=subprocess.PIPE
    )
    try:
        assert listener.stdout.readline() == b"ready\n"

        def open_ports() -> list[str]:
            argv = ["ip", "netns", "exec", us, sys.executable, "-c", CONNECT, *ports]
            return subprocess.run(argv, capture_output=True, text=True, check=True).stdout.split()

        assert open_ports() == ports
        subprocess.run(["ip", "netns", "exec", machine, "nft", "--file", rules], check=True)
        assert open_ports() == ["22", "2222"]
        subprocess.run(["ip", "netns", "exec", machine, "nft", "delete", "table", "inet", "ntier"], check=True)
        assert open_ports() == ports
    finally:
        listener.kill()
        listener.wait()


@pytest.mark.parametrize(
    ("sshd", "sockets", "units", "ports"),
    [
        ("port 22\nlistenaddress 0.0.0.0:22\nlistenaddress [::]:22", "", "", [22]),
        ("port 22\nport 2222\nlistenaddress 10.0.0.1:2022", "", "", [22, 2022, 2222]),
        ("port 22", 'LISTEN 0 128 0.0.0.0:2200 0.0.0.0:* users:(("sshd",pid=7,fd=3))', "", [22, 2200]),
        ("port 22", 'LISTEN 0 5 *:80 *:* users:(("nginx",pid=7,fd=3))', "[::]:2201 ssh.socket ssh.service", [22, 2201]),
    ],
    ids=["usual", "several", "another sshd", "socket activation"],
)
def test_ports_of_ssh_are_read_from_the_machine(tmp_path, sshd, sockets, units, ports):
    script = (ROLES / "common/files/ssh-ports").read_text().replace("/usr/sbin/sshd", "sshd")
    for name, text in (("sshd", sshd), ("ss", sockets), ("systemctl", units)):
        (tmp_path / name).write_text(f"#!/bin/sh\ncat <<'END'\n{text}\nEND\n")
        (tmp_path / name).chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
    assert json.loads(done.stdout) == ports, done.stderr
