"""R1 to R3: rows that were written, replicas that agree, and data nodes that are there, on trials whose files say
otherwise one at a time."""

import json

import pytest
from checked import Checks
from ntier_analysis.contracts import Manifest, Outcome, implied
from ntier_analysis.contracts.system import Interaction
from synthetic import JTL, Spec, Truth, _csv, write_trial

TABLES = ("comments", "old_comments", "moderator_log", "users")


def state(rows, digest="7"):
    return {name: {"rows": n, "digest": digest} for name, n in zip(TABLES, rows, strict=True)}


def trial(tmp_path, after, writes=True, stored=5, moderated=2, failed=0, retries=0, after_2=None, tier="db"):
    """`stored` comments and `moderated` ratings were confirmed, `failed` comments were not; `after`: rows per table on
    the first database (node of `tier`), 10 each before."""
    folder = write_trial(
        tmp_path / "raw", Spec(600, Truth({"db": 0.001}), phases=(2, 10, 2), mix="read_write", seal=False)
    )
    if writes:
        table = "from,to,probability\nPostComment,StoreComment,1\nStoreComment,PostComment,1\n"
        (folder / "config/read_write.csv").write_text(table)
    manifest = Manifest.read(folder)
    first = next(n for n in manifest.nodes if n.tier == tier)
    if after_2:
        manifest.nodes.append(first.model_copy(update={"name": f"{tier}2", "index": 2}))
        manifest.write(folder)
    for name, rows in ((f"{tier}1", after), (f"{tier}2", after_2)):
        if rows:
            (folder / "nodes" / name).mkdir(exist_ok=True)
            (folder / "nodes" / name / "data_before.json").write_text(json.dumps(state([10] * 4)))
            (folder / "nodes" / name / "data_after.json").write_text(json.dumps(state(rows)))
    kinds = [("StoreComment", "true")] * stored + [("StoreModerateLog", "true")] * moderated
    kinds += [("StoreComment", "false")] * failed
    at = 1000 * (Spec(1, Truth({})).start_s + 3)
    client = folder / "clients" / "client1"
    rows = [
        (round(at + i), 20, label, 200, "OK", "Users 1-1", ok, "", 9, 9, 1, 1, "u", 9, 0, 0)
        for i, (label, ok) in enumerate(kinds)
    ]
    _csv(client / "interactions.jtl.csv.zst", JTL, rows)
    _csv(client / "users.csv", "user,t_start_ms,t_end_ms,pending_ms,pending_state,author", [(0, at, at + 9, "", "", 0)])
    beat = (f"{at / 1000:.3f}", 1, len(rows), failed, "nan", 0, 0, retries)
    columns = "t_s,users,completed,errors,response_time_mean_ms,content_checked,content_wrong,retries"
    _csv(client / "progress.csv", columns, [beat])
    return Checks(folder)


def test_every_confirmed_write_left_its_row(tmp_path):
    by_id = trial(tmp_path, (12, 13, 12, 11))
    assert (by_id["R1"].outcome, by_id["R2"].outcome) == (Outcome.PASS, Outcome.PASS), by_id["R1"]
    assert by_id["R1"].n == 7


@pytest.mark.parametrize(
    ("after", "options", "value"),
    [
        ((12, 12, 12, 11), {}, 1),  # a comment was confirmed, and is nowhere
        ((12, 13, 11, 11), {}, 1),
        ((12, 14, 12, 11), {}, 1),  # one more than was asked for
        ((12, 14, 12, 11), {"failed": 1}, 0),  # it may have been stored before its reply was lost
        ((12, 14, 12, 11), {"retries": 1}, 0),  # or twice
        ((12, 15, 12, 11), {"failed": 1}, 1),
    ],
)
def test_rows_are_counted_exactly_but_for_what_nobody_can_know(tmp_path, after, options, value):
    check = trial(tmp_path, after, **options)["R1"]
    assert check.value == value
    assert check.outcome is (Outcome.FAIL if value else Outcome.PASS)
    assert check.required


def test_replicas_that_differ_are_named(tmp_path):
    check = trial(tmp_path, (12, 13, 12, 11), after_2=(12, 13, 12, 10))["R2"]
    assert (check.outcome, check.value, check.reason) == (Outcome.FAIL, 1, "replicas_differ")
    assert "users" in check.detail
    assert trial(tmp_path / "same", (12, 13, 12, 11), after_2=(12, 13, 12, 11))["R2"].outcome is Outcome.PASS


def test_a_mix_that_does_not_write_has_nothing_to_lose(tmp_path):
    by_id = trial(tmp_path, None, writes=False)
    assert {by_id[i].outcome for i in ("R1", "R2")} == {Outcome.PASS}
    assert "does not write" in by_id["R1"].detail


def test_rows_that_were_not_counted_do_not_pass(tmp_path):
    by_id = trial(tmp_path, None)
    assert {by_id[i].outcome for i in ("R1", "R2")} == {Outcome.UNDECIDABLE}
    assert all(by_id[i].required for i in ("R1", "R2"))


@pytest.mark.parametrize("restores", [None, False, True])
def test_replicas_are_compared_unless_the_system_said_that_they_tell_nothing(tmp_path, restores):
    """Two nodes of a system that promises no rows, and no file of what they hold."""
    folder = write_trial(
        tmp_path / "raw", Spec(600, Truth({"db": 0.001}), phases=(2, 10, 2), mix="read_write", seal=False)
    )
    (folder / "config/read_write.csv").write_text("from,to,probability\nBuy,Buy,1\n")
    manifest = Manifest.read(folder)
    first = next(n for n in manifest.nodes if n.tier == "db")
    manifest.nodes.append(first.model_copy(update={"name": "db2", "index": 2}))
    told = {"interactions": [Interaction(name="Buy", writes=True)], "restores": restores}
    manifest.model_copy(update={"system": implied.system(600).model_copy(update=told)}).write(folder)
    check = Checks(folder)["R2"]
    if restores is False:
        assert check.outcome is Outcome.PASS
        assert "do not tell what they hold" in check.detail
    else:
        assert (check.outcome, check.required) == (Outcome.UNDECIDABLE, True)


def test_nodes_before_the_data_may_be_those_that_show_them(tmp_path):
    """Of a cluster: rows are counted, and compared, where they were asked."""
    same = trial(tmp_path / "same", after=[15, 10, 12, 10], after_2=[15, 10, 12, 10], tier="middleware")
    assert (same["R1"].outcome, same["R2"].outcome) == (Outcome.PASS, Outcome.PASS)
    assert same["R2"].n == 2
    other = trial(tmp_path / "other", after=[15, 10, 12, 10], after_2=[15, 10, 11, 10], tier="middleware")
    assert other["R2"].outcome is Outcome.FAIL


def cluster(tmp_path, readings, begin_s=0.0):
    """A trial beside which a management node was asked once a second from `begin_s` of the trial on; `readings`:
    (started, all). Run phase: seconds 2 to 12. None: nobody was asked."""
    spec = Spec(600, Truth({"db": 0.001}), phases=(2, 10, 2), seal=False)
    folder = write_trial(tmp_path / "raw", spec)
    manifest = Manifest.read(folder)
    manifest.system = manifest.described  # a system that is named may have collectors of its own
    first = manifest.nodes[0]
    manifest.nodes.append(first.model_copy(update={"name": "management1", "tier": "management", "index": 1}))
    if readings is not None:
        manifest.collectors["management1"] = ["cluster_status"]
        (folder / "nodes/management1").mkdir()
        rows = [(f"{spec.start_s + begin_s + i:.3f}", *pair) for i, pair in enumerate(readings)]
        _csv(folder / "nodes/management1/cluster_status.csv", "t_s,data_nodes_started,data_nodes", rows)
    manifest.write(folder)
    return Checks(folder)["R3"]


def test_data_nodes_that_are_started_throughout_are_as_asked(tmp_path):
    check = cluster(tmp_path, [(2, 2)] * 14)
    assert (check.outcome, check.value, check.n) == (Outcome.PASS, 0, 10), check
    assert check.required


@pytest.mark.parametrize(
    ("started", "lost", "detail"),
    [
        ([2] * 6 + [1] * 8, 6, "management1: 1 of 2 data nodes were started, first seen 4 s after the run began"),
        ([2] * 6 + [1] + [0] * 7, 6, "management1: 0 of 2 data nodes were started, first seen 4 s after the run began"),
        ([2] * 6 + [1] + [2] * 7, 1, "management1: 1 of 2 data nodes were started, first seen 4 s after the run began"),
    ],
    ids=["one killed", "both killed", "back after a second"],
)
def test_a_data_node_that_is_lost_makes_the_trial_invalid(tmp_path, started, lost, detail):
    check = cluster(tmp_path, [(n, 2) for n in started])
    assert (check.outcome, check.value, check.reason) == (Outcome.FAIL, lost, "data_nodes_lost")
    assert check.detail == detail
    assert check.required


def test_a_data_node_that_is_lost_beside_the_run_is_of_no_account(tmp_path):
    assert cluster(tmp_path, [(1, 2)] + [(2, 2)] * 11 + [(1, 2)] * 2).outcome is Outcome.PASS


def test_a_cluster_that_was_not_asked_in_the_run_does_not_pass(tmp_path):
    late = cluster(tmp_path / "late", [(2, 2)] * 2, begin_s=12.0)
    none = cluster(tmp_path / "none", [(0, 0)] * 14)
    assert {c.outcome for c in (late, none)} == {Outcome.UNDECIDABLE}
    assert all(c.required for c in (late, none))
    assert "named no data node" in none.detail


def test_a_system_without_a_management_node_has_no_data_nodes_to_lose(tmp_path):
    check = cluster(tmp_path, None)
    assert (check.outcome, check.n) == (Outcome.PASS, 0)
    assert "not applicable" in check.detail
