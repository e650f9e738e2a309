# ruff: noqa: E501 (tables: a line per case)
"""`import --prometheus`: asked over HTTP, and as it came out of a real one."""

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socketserver import BaseRequestHandler, ThreadingTCPServer
from urllib.parse import parse_qs, urlsplit

import load_files
import numpy as np
import pytest
from ntier_analysis.errors import DataError
from ntier_analysis.parsers.prometheus import snapshot
from prometheus_files import CPU, T0, cpu, read, utilization

DATA = Path(__file__).parent / "data" / "loadtests"


class Answers(BaseHTTPRequestHandler):
    """/api/v1/query with a range, of the series in `stored`: both ends of the range belong to it (Prometheus 2)."""

    stored: dict[str, list[tuple[float, float]]] = {}  # noqa: RUF012
    asked: list[str] = []  # noqa: RUF012

    def do_GET(self) -> None:
        query = parse_qs(urlsplit(self.path).query)
        name, _, seconds = query["query"][0].removesuffix("s]").rpartition("[")
        end = float(query["time"][0])
        self.asked.append(query["query"][0])
        result = []
        for key, points in self.stored.items():
            metric, _, labels = key.partition("{")
            inside = [[t, str(v)] for t, v in points if end - float(seconds) <= t <= end]
            if metric == name.partition("{")[0] and inside:
                told = dict(part.split("=") for part in labels.rstrip("}").replace('"', "").split(","))
                result.append({"metric": told | {"__name__": metric}, "values": inside})
        body = json.dumps({"status": "success", "data": {"resultType": "matrix", "result": result}}).encode()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Answers) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{made.server_port}"
        made.shutdown()


def test_a_long_time_is_asked_for_in_pages(server):
    times = T0 + np.arange(0.0, 1501.0, 2.5)
    Answers.stored = cpu("db1:9100", times)
    Answers.stored['scrape_duration_seconds{instance="db1:9100"}'] = [(t, 0.5) for t in times]
    Answers.asked = []
    metrics = read(server, end=T0 + 1500)
    assert utilization(metrics).tolist() == pytest.approx([25.0] * 600)
    assert utilization(metrics).index.tolist() == pytest.approx(times[1:] + 0.25)
    assert metrics.notices == []
    assert sum(text.startswith(CPU + "{") for text in Answers.asked) == 3


@pytest.mark.parametrize(
    "source", ["ftp://127.0.0.1/", "http://", "http://127.0.0.1:1", "http://127.0.0.1:9x", "http://[::1"]
)
def test_what_cannot_be_asked_is_an_error(source):
    with pytest.raises(DataError, match=r"--prometheus .*(expected http://HOST:PORT|cannot be reached)"):
        read(source)


@pytest.mark.parametrize("source", ["http://127.0.0.1:9x", "http://127.0.0.1:99999", "http://127.0.0.1:1/a b"])
def test_an_address_at_which_nothing_can_be_asked_is_told_its_form(source):
    with pytest.raises(DataError, match=rf"--prometheus {source}: expected http://HOST:PORT, https://..., or a file"):
        read(source)


@pytest.mark.parametrize(
    "said", [b"J\0\0\0\n8.0.36\0greets first\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"]
)
def test_a_port_of_another_protocol_is_an_error(said):
    """MySQL; a Prometheus that ends in the middle of its answer."""

    class Greets(BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(4096)
            self.request.sendall(said)

    with ThreadingTCPServer(("127.0.0.1", 0), Greets) as made:
        threading.Thread(target=made.serve_forever, daemon=True).start()
        with pytest.raises(DataError, match=r"cannot be reached \(no answer of HTTP: (BadStatusLine|IncompleteRead)\)"):
            read(f"http://127.0.0.1:{made.server_address[1]}")
        made.shutdown()


def test_a_year_is_not_asked_for(server):
    with pytest.raises(DataError, match=r"the loads span 365 days, allowed are 11"):
        read(server, end=T0 + 365 * 86400)


def everything(_: str) -> bool:
    return True


def test_a_real_dump_tells_of_the_exporter_that_was_stopped():
    start, end = 1_795_451_830, 1_795_451_872
    metrics = read(DATA / "prometheus.dump.zst", start=start, end=end)
    assert metrics.tiers == {"web1": "web"}
    assert any("web1: 5 scrapes of node_exporter missing (16:37:27 to 16:37:33" in text for text in metrics.notices)
    assert metrics.cores == {"web1": 2.0}
    values = utilization(metrics, "web1").dropna()
    assert values.between(0, 103).all()
    kinds = set(metrics.samples["resource"])
    assert {"cpu", "disk", "network", "memory", "queue"} <= kinds
    speeds = metrics.samples.query("resource == 'network' and metric == 'utilization_pct'")
    assert "eth0" not in set(speeds["item"])  # its speed is unknown


def test_the_grid_of_query_range_is_thinned_to_its_scrapes():
    """One Prometheus at one time, asked in both ways: query_range with a step of 0.25 s shows each scrape of a second
    four times."""
    raw, raw_grid = snapshot(DATA / "query.json.zst", everything)
    grid, is_grid = snapshot(DATA / "query_range.json.zst", everything)
    assert is_grid
    assert raw_grid
    assert len(grid[0].t) > 3.5 * len(raw[0].t)
    start, end = 1_795_451_830, 1_795_451_872
    metrics = read(DATA / "query_range.json.zst", start=start, end=end)
    assert any("interval of 1 s" in text for text in metrics.unknown)
    assert any("5 scrapes of node_exporter missing (16:37:2" in text for text in metrics.notices)
    exact = read(DATA / "query.json.zst", start=start, end=end)
    assert utilization(exact, "web1").isna().sum() == utilization(metrics, "web1").isna().sum() == 1


TEXTS = [
    ('a{b="c"} 1\n', r"d:1: column 9: '1', expected a value and its time; the page of an exporter"),
    ('a{b="c} 1 2\n', r"d:1: column 11: .* is no sample"),
    ('a{b=c} 1 2\n', r"d:1: column 3: .* is no sample"),
    ('a{b="c",b="d"} 1 1790000000\n', r"d:1: column 9: label 'b' is there twice"),
    ("a one 1790000000\n", r"d:1: column 2: 'one 1790000000', expected two numbers"),
    ("a 1 -5\n", r"d:1: column 2: time is '-5'"),
    ("a 1 1790000000\na 2 1790000000\n", r"d: a: two values at 1790000000"),
    ("# EOF\n", r"d: no samples"),
    ("", r"d: empty"),
    ('{"status": "error", "error": "bad query"}', r"d: Prometheus answered bad query"),
    ('{"status": "success", "data": {"resultType": "vector", "result": []}}', r"d: a vector, expected a matrix"),
    ('{"status": "success", "data": {"resultType": "matrix", "result": [{"metric": {}, "values": []}]}}', r"without __name__"),
    ('[{"status": "success"}]', r"d: answer 1: no answer of Prometheus \('data' is missing"),
    ('{"status": "success"}\n{"status":\n', r"d:1: no answer of Prometheus|d:2: not JSON"),
    ('{"a": ', r"d: not JSON"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "message"), TEXTS)
def test_what_prometheus_never_wrote_is_an_error(tmp_path, content, message):
    (tmp_path / "d").write_text(content)
    with pytest.raises(DataError, match=message):
        snapshot(tmp_path / "d", everything)


def test_labels_may_hold_anything(tmp_path):
    (tmp_path / "d").write_text('a{b="x} 1 2\\"\\n\\\\",c=""} 3 1790000000.5\n{__name__="n",b="y"} 4 1790000000500\n')
    series, grid = snapshot(tmp_path / "d", everything)
    assert not grid
    assert [(s.name, s.labels, s.t.tolist(), s.v.tolist()) for s in series] == [
        ("a", {"b": 'x} 1 2"\n\\', "c": ""}, [1_790_000_000.5], [3.0]),
        ("n", {"b": "y"}, [1_790_000_000.5], [4.0]),
    ]


def test_the_truth_of_a_sweep_comes_back(tmp_path):
    path = load_files.openmetrics(tmp_path / "d")
    metrics = read(path, start=1_790_000_000, end=1_790_002_060)
    db = utilization(metrics)
    assert db[(db.index > 1_790_002_001) & (db.index < 1_790_002_060)].mean() > 97
    assert metrics.cores == dict.fromkeys(load_files.NODES, 2.0)
