"""What is known of each activity: its fields in the order of the file, and what becomes of them.

Facts of sysstat's `rd_stats.h`, as data. Columns have the names that `sadf -j` gives them. A column of the same name as
a field is that field: per second if it counts, as it is if it is a level."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from ntier_analysis.sysstat import figures
from ntier_analysis.sysstat.figures import Columns
from ntier_analysis.sysstat.items import Readings
from ntier_analysis.sysstat.keys import (
    Keys,
    by_battery,
    by_cpu,
    by_device,
    by_filesystem,
    by_interrupt,
    by_line,
    by_name,
    by_position,
    only,
)

BASE = 0x8A
"""The first format of each activity; a change that a reader cannot skip adds one."""


@dataclass(frozen=True)
class Activity:
    """`wide`, `longs`, `narrow`: names of its 64-bit, long and 32-bit numbers; `texts`: bytes of what follows them.
    `most`: items that one record can hold. `keys`: what tells its items apart. `figures`: what is computed. `first`:
    how many numbers of each kind 12.0 had, if fewer. `first_number`: of items that have no name."""

    id: int
    format: int
    name: str
    wide: str = ""
    longs: str = ""
    narrow: str = ""
    texts: tuple[int, ...] = ()
    most: int = 1
    keys: Callable[[Readings], Keys] = only
    figures: Callable[[Readings], Columns] = figures.rates
    floats: bool = False
    sub_items: int = 1
    first: tuple[int, int, int] | None = None
    first_number: int = 1

    @cached_property
    def fields(self) -> tuple[tuple[str, ...], ...]:
        """Names of the 64-bit, long and 32-bit numbers."""
        return tuple(tuple(kind.split()) for kind in (self.wide, self.longs, self.narrow))

    @cached_property
    def least(self) -> tuple[int, ...]:
        return self.first or tuple(map(len, self.fields))


CPUS, DEVICES, INTERFACES, SENSORS = 8193, 65536 * 4096, 65536, 4096

ACTIVITIES = [
    Activity(1, BASE + 1, "cpu-load", "user nice sys idle iowait steal irq soft guest gnice", most=CPUS, keys=by_cpu,
             figures=figures.cpu),
    Activity(2, BASE + 1, "process-and-context-switch", "cswch", "proc"),
    Activity(3, BASE + 1, "interrupts", "value", most=CPUS, keys=by_interrupt, figures=figures.rates),
    Activity(3, BASE + 2, "interrupts", narrow="value", texts=(8,), most=CPUS, keys=by_interrupt,
             figures=figures.interrupts, sub_items=4096),
    Activity(4, BASE, "swap-pages", longs="pswpin pswpout"),
    Activity(5, BASE, "paging", longs="pgpgin pgpgout fault majflt pgfree pgscank pgscand pgsteal pgprom pgdem",
             first=(0, 8, 0)),
    Activity(6, BASE + 1, "io", "tps rtps wtps bread bwrtn dtps bdscd", figures=figures.rates_or_zero,
             first=(5, 0, 0)),
    Activity(7, BASE + 1, "memory", "memfree buffers cached total swpfree swptotal swpcad commit active inactive dirty "
             "anonpg slab kstack pgtbl vmused avail shared", figures=figures.memory, first=(17, 0, 0)),
    Activity(8, BASE + 1, "kernel", "file-nr inode-nr dentunusd pty-nr", figures=figures.levels),
    Activity(9, BASE + 2, "queue", "runq-sz blocked plist-sz", narrow="ldavg-1 ldavg-5 ldavg-15",
             figures=figures.queue),
    Activity(10, BASE + 1, "serial", narrow="rcvin xmtin framerr prtyerr brk ovrun line", most=65536, keys=by_line,
             figures=figures.serial),
    Activity(11, BASE + 2, "disk", "ios wwn0 wwn1", "rd_sec wr_sec dc_sec",
             "rd_ticks wr_ticks tot_ticks rq_ticks major minor dc_ticks part", most=DEVICES, keys=by_device,
             figures=figures.disk, first=(1, 2, 6)),
    Activity(12, BASE + 3, "net-dev", "rxpck txpck rxbytes txbytes rxcmp txcmp rxmcst", narrow="speed", texts=(16, 1),
             most=INTERFACES, keys=by_name, figures=figures.interface),
    Activity(13, BASE + 2, "net-edev", "coll rxerr txerr rxdrop txdrop rxfifo txfifo rxfram txcarr", texts=(16,),
             most=INTERFACES, keys=by_name, figures=figures.interface_errors),
    Activity(14, BASE, "net-nfs", narrow="call retrans read write access getatt"),
    Activity(15, BASE, "net-nfsd",
             narrow="scall badcall packet udp tcp hit miss sread swrite saccess sgetatt"),
    Activity(16, BASE, "net-sock", narrow="totsck tcpsck tcp-tw udpsck rawsck ip-frag", figures=figures.levels),
    Activity(17, BASE + 2, "net-ip", "irec fwddgm idel orq asmrq asmok fragok fragcrt"),
    Activity(18, BASE + 2, "net-eip", "ihdrerr iadrerr iukwnpr idisc odisc onort asmf fragf"),
    Activity(19, BASE, "net-icmp",
             longs="imsg omsg iech iechr oech oechr itm itmr otm otmr iadrmk iadrmkr oadrmk oadrmkr"),
    Activity(20, BASE, "net-eicmp",
             longs="ierr oerr idstunr odstunr itmex otmex iparmpb oparmpb isrcq osrcq iredir oredir"),
    Activity(21, BASE, "net-tcp", longs="active passive iseg oseg"),
    Activity(22, BASE, "net-etcp", longs="atmptf estres retrans isegerr orsts"),
    Activity(23, BASE, "net-udp", longs="idgm odgm noport idgmerr"),
    Activity(24, BASE, "net-sock6", narrow="tcp6sck udp6sck raw6sck ip6-frag", figures=figures.levels),
    Activity(25, BASE + 2, "net-ip6",
             "irec6 fwddgm6 idel6 orq6 asmrq6 asmok6 imcpck6 omcpck6 fragok6 fragcr6"),
    Activity(26, BASE + 2, "net-eip6",
             "ihdrer6 iadrer6 iukwnp6 i2big6 idisc6 odisc6 inort6 onort6 asmf6 fragf6 itrpck6"),
    Activity(27, BASE, "net-icmp6", longs="imsg6 omsg6 iech6 iechr6 oechr6 igmbq6 igmbr6 ogmbr6 igmbrd6 ogmbrd6 "
             "irtsol6 ortsol6 irtad6 inbsol6 onbsol6 inbad6 onbad6"),
    Activity(28, BASE, "net-eicmp6", longs="ierr6 idtunr6 odtunr6 itmex6 otmex6 iprmpb6 oprmpb6 iredir6 oredir6 "
             "ipck2b6 opck2b6"),
    Activity(29, BASE, "net-udp6", longs="idgm6 odgm6 noport6 idgmer6"),
    Activity(30, BASE, "cpu-frequency", longs="frequency", most=CPUS, keys=by_cpu, figures=figures.frequency),
    Activity(31, BASE, "fan-speed", "rpm rpm_min", texts=(20,), most=SENSORS, keys=by_position, figures=figures.fan,
             floats=True),
    Activity(32, BASE, "temperature", "degC low high", texts=(20,), most=SENSORS, keys=by_position,
             figures=figures.temperature, floats=True),
    Activity(33, BASE, "voltage-input", "inV low high", texts=(20,), most=SENSORS, keys=by_position,
             figures=figures.voltage, floats=True, first_number=0),
    Activity(34, BASE + 1, "hugepages", "hugfree hugtotal hugrsvd hugsurp", figures=figures.hugepages,
             first=(2, 0, 0)),
    Activity(35, BASE + 1, "cpu-weighted-frequency", "time", "frequency", most=CPUS, keys=by_cpu,
             figures=figures.weighted_frequency, sub_items=4096),
    Activity(36, BASE, "usb-devices", narrow="bus_number idvendor idprod maxpower", texts=(24, 48), most=65536,
             keys=by_position, figures=figures.usb),
    Activity(37, BASE + 1, "filesystems", "blocks bfree bavail files Ifree", texts=(128, 128), most=DEVICES,
             keys=by_filesystem, figures=figures.filesystem),
    Activity(38, BASE, "fchosts", longs="fch_rxf fch_txf fch_rxw fch_txw", texts=(16,), most=65536, keys=by_name,
             figures=figures.new_rates),
    Activity(39, BASE, "softnet", narrow="total dropd squeezd rx_rps flw_lim blg_len", most=CPUS, keys=by_cpu,
             figures=figures.softnet, first=(0, 0, 5)),
    Activity(40, BASE, "psi-cpu", "some_total", "some_avg10 some_avg60 some_avg300", figures=figures.pressure),
    Activity(41, BASE, "psi-io", "some_total full_total",
             "some_avg10 some_avg60 some_avg300 full_avg10 full_avg60 full_avg300", figures=figures.pressure),
    Activity(42, BASE, "psi-mem", "some_total full_total",
             "some_avg10 some_avg60 some_avg300 full_avg10 full_avg60 full_avg300", figures=figures.pressure),
    Activity(43, BASE, "battery", texts=(1, 1, 1), most=SENSORS, keys=by_battery, figures=figures.battery),
]  # fmt: skip

KNOWN = {(a.id, a.format): a for a in ACTIVITIES}
NAMES = list(dict.fromkeys(a.name for a in ACTIVITIES))
