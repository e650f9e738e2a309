"""Makes one of the files beside it: `unshare --net --mount python make.py SADC FILE` (root, Linux; about 15 s).

SADC is a sysstat's own collector, its words separated by spaces ("qemu-s390x-static -L ROOT ROOT/.../sadc").
It records what it sees of this machine in a network and mount namespace of their own: interfaces come and go, four CPUs
of which one goes offline and comes back, a comment, and a restart. The CPUs are made up, and so is hardware that few
machines have: frequencies, sensors, battery, Fibre Channel, USB."""

import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sadc, target = sys.argv[1].split(), sys.argv[2]
work = Path(tempfile.mkdtemp())


def run(*words: str) -> None:
    subprocess.run(words, check=True)


def cpus(second: int, online: tuple[int, ...]) -> None:
    """/proc/stat as of a second of this made-up machine: 100 ticks a second and CPU."""
    lines = []
    for cpu in online:
        user, nice, system, wait, steal = (31 + cpu) * second, cpu * second, 11 * second, 3 * second, second // 2
        rest = 100 * second - user - nice - system - wait - steal
        soft = second // 3
        lines.append((f"cpu{cpu}", user, nice, system, 4000 + rest, wait, cpu * second // 7, soft, steal, user // 5, 0))
    total = ("cpu ", *(sum(line[i] for line in lines) for i in range(1, 11)))
    text = "\n".join(" ".join(map(str, line)) for line in [total, *lines])
    (work / "stat").write_text(f"{text}\n{OTHERS}\n")


OTHERS = "\n".join(line for line in Path("/proc/stat").read_text().split("\n") if not line.startswith("cpu"))
cpus(1000, (0, 1, 2, 3))
run("mount", "--bind", str(work / "stat"), "/proc/stat")


def hardware(second: int) -> None:
    """What stands in /sys of it, in this second."""
    for cpu in range(4):
        states = f"3000000 {70 * second + cpu}\n2000000 {20 * second}\n1000000 {10 * second + cpu}\n"
        written(f"/sys/devices/system/cpu/cpu{cpu}/cpufreq/stats/time_in_state", states)
    written("/sys/class/power_supply/BAT0/capacity", f"{90 - second % 1000}\n")
    written("/sys/class/power_supply/BAT0/status", "Discharging\n")
    for i, name in enumerate(("rx_frames", "tx_frames", "rx_words", "tx_words")):
        written(f"/sys/class/fc_host/host0/statistics/{name}", f"{hex((i + 3) * second)}\n")
    written("/sys/class/net/eth7/speed", "1000\n")
    written("/sys/class/net/eth7/duplex", "full\n")
    written("/sys/class/net/lo/speed", "10\n")
    written("/sys/class/net/lo/duplex", "half\n")
    written("/sys/class/hwmon/hwmon0/name", "ours\n")
    for name, value in (("fan1_input", 1000 + second % 7), ("fan1_min", 500), ("temp1_input", 41000 + second % 900),
                        ("temp1_min", 10000), ("temp1_max", 90000), ("in0_input", 3328 + second % 5),
                        ("in0_min", 3000), ("in0_max", 3600)):  # fmt: skip
        written(f"/sys/class/hwmon/hwmon0/{name}", f"{value}\n")
    for name, value in (("idVendor", "8087"), ("idProduct", "002c"), ("bMaxPower", "100mA"),
                        ("manufacturer", "Ours"), ("product", "A stick")):  # fmt: skip
        written(f"/sys/bus/usb/devices/1-1/{name}", f"{value}\n")


def written(path: str, text: str) -> None:
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    Path(path).write_text(text)


for place in ("/sys/devices/system/cpu", "/sys/class", "/sys/bus"):
    run("mount", "-t", "tmpfs", "none", place)
hardware(1000)
run("ip", "link", "set", "lo", "up")
run("ip", "link", "add", "eth7", "type", "bridge")
run("ip", "link", "set", "eth7", "up")


def record(start: int) -> None:
    """Six readings, one a second."""
    process = subprocess.Popen([*sadc, "-S", "XALL", "1", "6", target])
    for second in range(start, start + 6):
        time.sleep(0.5)
        hardware(second)
        cpus(second, (0, 1, 2, 3) if (second - start) % 4 in (0, 3) else (0, 1, 3))
        if second - start == 1:
            run("ip", "link", "add", "veth1", "type", "veth", "peer", "name", "veth2")
            run("ip", "link", "set", "veth1", "up")
            run("ip", "link", "set", "veth2", "up")
            socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(5000), ("127.0.0.1", 9))
        if second - start == 3:
            run("ip", "link", "del", "veth1")
        time.sleep(0.5)
    process.wait()


record(1001)
run(*sadc, "-C", "a comment", target)
run(*sadc, target)  # without an interval: a restart
cpus(20, (0, 1, 2, 3))
hardware(20)
record(21)
