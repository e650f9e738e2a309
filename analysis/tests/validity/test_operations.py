"""Checks of connections, hidden retries, statements, Little's law, warmth and other events: each finds its own fault,
and what no collector told is undecidable."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import zstandard
from checked import Checks
from ntier_analysis.contracts import Check, Manifest, Outcome
from ntier_analysis.validity.registry import registered
from synthetic import T0, Spec, Truth, write_trial

SPEC = Spec(
    600,
    Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012}),
    phases=(20.0, 40.0, 5.0),
    seal=False,
)
NEW = {"G6", "G6.connect", "E3", "E3.accept", "C6", "O2", "S3", "S3.cache", "S4", "H7"}


def rewrite(path: Path, change) -> None:
    """Applies `change(text) -> text` to a raw file, compressed or not."""
    packed = path.suffix == ".zst"
    content = path.read_bytes()
    data = change((zstandard.ZstdDecompressor().decompress(content) if packed else content).decode()).encode()
    path.write_bytes(zstandard.ZstdCompressor().compress(data) if packed else data)


@pytest.fixture
def folder(tmp_path) -> Path:
    return write_trial(tmp_path, SPEC)


def check(folder: Path, id_: str) -> Check:
    return Checks(folder)[id_]


def column(text: str, name: str, change) -> str:
    """CSV with one column changed, or added: change(number of the row, value) -> value."""
    head, *rows = text.strip().split("\n")
    names = head.split(",")
    names += [] if name in names else [name]
    at = names.index(name)
    out = [",".join(names)]
    for i, row in enumerate(rows):
        fields = row.split(",")
        fields += [""] * (len(names) - len(fields))
        fields[at] = str(change(i, fields[at]))
        out.append(",".join(fields))
    return "\n".join(out) + "\n"


def test_none_is_required_and_an_honest_trial_fails_none(folder):
    assert {c.id for c in registered()} >= NEW
    by_id = Checks(folder)
    assert not any(by_id[i].required for i in NEW)
    assert {i for i in NEW if by_id[i].outcome is Outcome.FAIL} == set()
    assert {i for i in NEW if by_id[i].outcome is Outcome.PASS} >= {"G6", "G6.connect", "E3", "O2"}
    for id_ in ("E3.accept", "C6", "S3.cache", "S4", "H7"):
        assert by_id[id_].outcome is Outcome.UNDECIDABLE
        assert "not collected" in by_id[id_].detail


def test_a_client_without_ports_is_exhausted(folder):
    jtl = folder / "clients/client1/interactions.jtl.csv.zst"

    def no_port(text: str) -> str:
        lines = text.strip().split("\n")
        middle = len(lines) // 2
        lines[middle] = re.sub(
            ",200,OK,(.*?),true,,", r",Non HTTP response code: java.net.BindException,x,\1,false,,", lines[middle]
        )
        return "\n".join(lines) + "\n"

    rewrite(jtl, no_port)
    ports = check(folder, "G6")
    assert ports.outcome is Outcome.FAIL
    assert ports.value == 1


def test_slow_connections_are_found_beyond_chance(folder):
    jtl = folder / "clients/client1/interactions.jtl.csv.zst"
    rewrite(jtl, lambda text: column(text, "Connect", lambda i, _: 30 if i % 10 == 0 else 0))
    assert check(folder, "G6.connect").outcome is Outcome.FAIL
    rewrite(jtl, lambda text: column(text, "Connect", lambda i, _: 30 if i % 80 == 0 else 0))
    assert check(folder, "G6.connect").outcome is Outcome.UNDECIDABLE


def tcp(folder: Path, node: str, *, again: float = 0.0, drops: float = 0.0, twice: float | None = None) -> None:
    """Counters of one node for 68 s, so many per second; `twice`: segments sent again that had arrived (None: a kernel
    that does not count them)."""
    per_s = {
        "out_segs": 50,
        "retrans_segs": again,
        "attempt_fails": 0,
        "listen_overflows": drops,
        "listen_drops": drops,
    }
    per_s |= {} if twice is None else {"dsacks": twice}
    rows = [",".join([f"{T0 - 2 + i:.3f}", *(str(int(rate * i)) for rate in per_s.values())]) for i in range(68)]
    (folder / f"nodes/{node}/tcp.csv").write_text("\n".join([",".join(["t_s", *per_s]), *rows]) + "\n")


def test_retransmissions_are_hidden_retries(folder):
    tcp(folder, "db1", again=1.0)
    retries = check(folder, "E3")
    assert retries.outcome is Outcome.FAIL
    assert "most by db1" in retries.detail
    tcp(folder, "db1", again=0.1)  # four in the run: beyond a thousandth of the interactions, within chance
    assert check(folder, "E3").outcome is Outcome.UNDECIDABLE


def test_a_segment_that_was_sent_again_though_it_had_arrived_hides_nothing(folder):
    tcp(folder, "db1", again=5.0, twice=5.0)
    assert check(folder, "E3").outcome is Outcome.PASS
    tcp(folder, "db1", again=5.0, twice=3.0)
    assert check(folder, "E3").outcome is Outcome.FAIL


def test_a_full_accept_queue_is_named_with_its_tier(folder):
    for node in ("web1", "app1", "middleware1", "db1", "client1"):
        tcp(folder, node)
    assert check(folder, "E3.accept").outcome is Outcome.PASS
    tcp(folder, "web1", drops=0.2)
    queue = check(folder, "E3.accept")
    assert queue.outcome is Outcome.FAIL
    assert "web1 (web)" in queue.detail


def count_statements(folder: Path, share: float) -> None:
    """What pages say: the synthetic middleware executes three per interaction."""
    progress = folder / "clients/client1/progress.csv"
    completed = [int(row.split(",")[2]) for row in progress.read_text().strip().split("\n")[1:]]
    rewrite(progress, lambda text: column(text, "statements", lambda i, _: int(3 * completed[i] / share)))


@pytest.mark.parametrize(("share", "outcome"), [(1.0, "pass"), (0.7, "fail")])
def test_statements_are_those_that_the_pages_took(folder, share, outcome):
    count_statements(folder, share)
    assert check(folder, "C6").outcome.value == outcome


def test_pages_that_began_before_the_run_do_not_tell_what_was_executed_in_it(folder):
    count_statements(folder, 0.7)
    assert check(folder, "C6").outcome is Outcome.FAIL
    progress = folder / "clients/client1/progress.csv"
    done = int(progress.read_text().strip().split("\n")[-1].split(",")[2])
    rewrite(progress, lambda text: column(text, "in_flight", lambda *_: done))
    found = check(folder, "C6")
    assert found.outcome is Outcome.UNDECIDABLE
    assert f"{done} pages were under way at once" in found.detail


def test_a_log_with_wrong_durations_breaks_littles_law(folder):
    """Durations that grow over the log: what was in service is not what completions and their times say."""
    log = folder / "nodes/web1/logs/access.log.zst"

    def longer(text: str) -> str:
        out = []
        for line in text.strip().split("\n"):
            start, duration, rest = line.split(" ", 2)
            late = max(0.0, float(start) - T0 - 40) * 200_000  # 0.2 s longer for each second
            out.append(f"{start} {int(duration) + int(late)} {rest}")
        return "\n".join(out) + "\n"

    rewrite(log, longer)
    littles_law = check(folder, "O2")
    assert abs(littles_law.value) > littles_law.limit
    assert littles_law.outcome in (Outcome.FAIL, Outcome.UNDECIDABLE)


def test_an_application_that_still_compiles_is_not_warm(folder):
    status = folder / "nodes/app1/tomcat_status.csv"
    rewrite(status, lambda text: column(text, "jit_ms", lambda i, _: 10 * i))  # a tenth of its tenth of a core
    warm = check(folder, "S3")
    assert warm.outcome is Outcome.FAIL
    assert warm.value == pytest.approx(10, rel=0.05)
    rewrite(status, lambda text: column(text, "jit_ms", lambda i, _: 5))
    assert check(folder, "S3").outcome is Outcome.PASS


def test_a_cache_that_still_fills_is_not_stationary(folder):
    status, name = folder / "nodes/db1/mysql_status.csv", "Innodb_buffer_pool_reads"
    rewrite(status, lambda text: column(text, name, lambda i, _: 100 * i))
    assert check(folder, "S3.cache").outcome is Outcome.PASS
    rewrite(status, lambda text: column(text, name, lambda i, _: int(1e5 * (1 - 0.96**i))))
    cache = check(folder, "S3.cache")
    assert cache.outcome is Outcome.FAIL
    assert cache.value < -50
    rewrite(status, lambda text: column(text, name, lambda i, _: i // 30))  # one page now and then
    assert check(folder, "S3.cache").outcome is Outcome.PASS


JOURNAL = """{0}.5 db1 systemd[1]: Starting logrotate.service - Rotate log files...
{1}.25 db1 systemd[1]: Starting apt-daily.service - Daily apt download activities...
{1}.75 db1 sshd[99]: Accepted publickey for root
"""


def test_other_events_of_the_run_are_listed_those_before_it_are_not(folder):
    for node in ("web1", "app1", "middleware1", "db1", "client1"):
        (folder / f"nodes/{node}/logs").mkdir(exist_ok=True)
        (folder / f"nodes/{node}/logs/journal.log").write_text("")
    assert check(folder, "S4").outcome is Outcome.PASS
    (folder / "nodes/db1/logs/journal.log").write_text(JOURNAL.format(int(T0) + 5, int(T0) + 33))
    events = check(folder, "S4")
    assert events.outcome is Outcome.FAIL
    assert events.detail == "package timer on db1 at second 13"


@pytest.mark.parametrize(("slower", "outcome"), [(1.0, "pass"), (0.8, "fail")])
def test_a_cpu_that_changes_its_frequency_is_told(folder, slower, outcome):
    path = folder / "nodes/host/sysstat.json.zst"

    def clocked(text: str) -> str:
        document = json.loads(text)
        records = document["sysstat"]["hosts"][0]["statistics"]
        for i, record in enumerate(records):
            mhz = 2300.0 * (slower if i > len(records) / 2 else 1.0)
            record["power-management"] = {"cpu-frequency": [{"number": "all", "frequency": mhz}]}
        return json.dumps(document)

    rewrite(path, clocked)
    frequency = check(folder, "H7")
    assert frequency.outcome.value == outcome
    assert "MHz" in frequency.detail


def test_a_trial_of_a_few_interactions_is_undecidable(tmp_path):
    folder = write_trial(tmp_path, replace(SPEC, users=40))
    for id_ in ("G6.connect", "O2"):
        assert check(folder, id_).outcome is Outcome.UNDECIDABLE
    Manifest.read(folder).model_copy(update={"phases": []}).write(folder)
    assert check(folder, "O2").outcome is Outcome.UNDECIDABLE
