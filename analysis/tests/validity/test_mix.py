"""M1 to M3 on users that walk the real tables: honest ones pass, another table or a cold start does not."""

import csv
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from checked import Checks
from ntier_analysis.contracts import Outcome
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.mix import (
    AUTHORS,
    FALSE_ALARM,
    POINTS,
    STEPS,
    USERS,
    Table,
    _table,
    expected_error,
    expected_shares,
    turned_away,
    walk,
)
from scipy import stats
from synthetic import JTL, Spec, Truth, _csv, write_trial

MIXES = Path(__file__).parents[3] / "workloads" / "mixes"
LEAF = 0.4
"""Share of the comment pages that offer no comment."""
GAP_S = 0.25
READ_WRITE, BY_AUTHORS = MIXES / "read_write.csv", MIXES / "authors" / "read_write.csv"


def table(path):
    rows = {}
    with path.open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            rows.setdefault(row["from"], []).append((row["to"], float(row["probability"])))
    return rows


class User:
    """Walks as workloads/README.md says; comment pages turn `ViewComment` away with probability `leaf`."""

    def __init__(self, rows, rng, settled, leaf=LEAF):
        self.rows, self.rng, self.leaf = rows, rng, leaf
        self.home = next(iter(rows))
        self.has_back = {s for s, row in rows.items() if any(t == "Back" for t, _ in row)}
        self.state, self.history = self.home, []
        for _ in range(200 if settled else 0):
            self.step()

    def step(self):
        """Returns what was drawn."""
        draw, chosen = self.rng.random(), self.state
        for target, probability in self.rows[self.state]:
            draw -= probability
            if draw < 0:
                chosen = target
                break
        leaf = self.state == "ViewComment" and self.rng.random() < self.leaf
        if chosen == "EndOfSession":
            self.state = self.home
            return chosen
        if chosen == "Back":
            following = self.history.pop() if self.history else self.home
        else:
            self.history = [*self.history, self.state] if chosen in self.has_back else []
            following = chosen
        while leaf and following == "ViewComment":
            following = self.history.pop() if self.history else self.home
        self.state = following
        return chosen


def trial(tmp_path, walked="browse_only", settled=True, steps=160, users=60, slow=()):
    """`steps` interactions of each of `users` within the run; the trial's table is browse_only whatever was walked. A
    user's last request has no answer if it is one of `slow`."""
    spec = Spec(600, Truth({"db": 0.001}), phases=(20.0, 40.0, 5.0), seal=False)
    folder = write_trial(tmp_path / "raw", spec)
    (folder / "config" / "browse_only.csv").write_bytes((MIXES / "browse_only.csv").read_bytes())
    rng, jtl, thinks = np.random.default_rng(5), [], []
    run_at = spec.start_s + spec.phases[0]
    for number in range(users):
        user = User(table(MIXES / f"{walked}.csv"), rng, settled)
        if slow:  # this user begins with a think, within the run
            thinks.append((f"{1000 * (run_at + number / users * GAP_S):.3f}", number, user.state, 200, "200.000"))
        for k in range(steps):
            at = 1000 * (run_at + (k + bool(slow) + number / users) * GAP_S)
            if k == steps - 1 and user.state in slow:
                break
            thread = f"Users 1-{number + 1}"
            jtl.append((round(at), 20, user.state, 200, "OK", thread, "true", "", 9, 9, 1, 1, "u", 9, 0, 0))
            thinks.append((f"{at + 21:.3f}", number, user.step(), 200, "200.000"))
    client = folder / "clients" / "client1"
    _csv(client / "interactions.jtl.csv.zst", JTL, jtl)
    _csv(client / "thinks.csv.zst", "t_start_ms,user,state,drawn_ms,actual_ms", thinks)
    return RawTrial(folder)


def trial_with_authors(tmp_path, tables, walked=None, steps=(160, 160), leaf=(LEAF, LEAF), every=10, users=60):
    """`tables`: files of the users and of the authors; `walked`: what they walk in fact. One in `every` users
    is an author; two clients share them, 35 and the rest. `steps`, `leaf`: of a user and of an author."""
    spec = Spec(600, Truth({"db": 0.001}), phases=(20.0, 40.0, 5.0), mix="read_write", seal=False)
    folder = write_trial(tmp_path / "raw", spec)
    for path, name in zip(tables, ("read_write", "read_write.authors"), strict=True):
        (folder / "config" / f"{name}.csv").write_bytes(path.read_bytes())
    rows, rng = [table(path) for path in walked or tables], np.random.default_rng(5)
    run_at = spec.start_s + spec.phases[0]
    for client, numbers in (("client1", range(35)), ("client2", range(35, users))):
        jtl, thinks, lives = [], [], []
        for number in numbers:
            author = number % every == every - 1
            user = User(rows[author], rng, settled=True, leaf=leaf[author])
            thread = f"Users 1-{number - numbers[0] + 1}"
            for k in range(steps[author]):
                at = 1000 * (run_at + (k + number / users) * GAP_S)
                jtl.append((round(at), 20, user.state, 200, "OK", thread, "true", "", 9, 9, 1, 1, "u", 9, 0, 0))
                thinks.append((f"{at + 21:.3f}", number, user.step(), 200, "200.000"))
            lives.append((number, 1000 * spec.start_s, 1000 * (spec.start_s + 65), "", "", int(author)))
        to = folder / "clients" / client
        _csv(to / "interactions.jtl.csv.zst", JTL, jtl)
        _csv(to / "thinks.csv.zst", "t_start_ms,user,state,drawn_ms,actual_ms", thinks)
        _csv(to / "users.csv", "user,t_start_ms,t_end_ms,pending_ms,pending_state,author", lives)
        (to / "ntier.properties").write_text(f"ntier.users={len(numbers)}\nntier.first_user={numbers[0]}\n")
    return RawTrial(folder)


def small(path, *rows):
    path.write_text("\n".join(["from,to,probability", *rows]) + "\n")
    return path


def outcomes(raw):
    return Checks(raw)


def test_an_honest_walk_passes_though_pages_turn_choices_away(tmp_path):
    raw = trial(tmp_path)
    by_id = outcomes(raw)
    assert (by_id["M1"].outcome, by_id["M3"].outcome) == (Outcome.PASS, Outcome.PASS), (by_id["M1"], by_id["M3"])
    away = turned_away(raw)[USERS]
    assert away["ViewComment", "ViewComment"] == pytest.approx(LEAF, abs=0.05)
    assert set(away) == {("ViewComment", "ViewComment")}


def test_short_trials_of_honest_users_are_not_refused_by_chance():
    """In four requests a state in which users stay is seldom reached by chance; the error of what was seen refused 3 of
    100 such trials."""
    rows, rng = table(MIXES / "browse_only.csv"), np.random.default_rng(7)
    users, names = [User(rows, rng, settled=True, leaf=0) for _ in range(200)], list(rows)
    counts = np.zeros((300, len(users), len(names)))
    for trial_counts in counts:
        for of_user, user in zip(trial_counts, users, strict=True):
            for _ in range(4):
                of_user[names.index(user.state)] += 1
                user.step()
    wanted = counts.sum(axis=(0, 1)) / counts.sum()
    common = wanted >= 0.01
    critical = stats.t.isf(FALSE_ALARM / 2 / common.sum(), len(users) - 1)
    refused = 0
    for of_users in counts[:, :, common]:
        off = 100 * np.abs(of_users.sum(axis=0) / (4 * len(users)) - wanted[common])
        errors = 100 * expected_error(of_users, np.full(len(users), 4), wanted[common])
        refused += ((off > POINTS) & (off > critical * errors)).any()
    assert refused <= 1


def test_users_of_another_table_are_found_out(tmp_path):
    by_id = outcomes(trial(tmp_path, walked="browse_only_no_search"))
    assert (by_id["M3"].outcome, by_id["M3"].reason) == (Outcome.FAIL, "mix")


def test_users_that_all_come_from_home_have_another_mix_though_each_draws_right(tmp_path):
    """What a short ramp-up does once replies take seconds: four pages per user are not the long-run mix."""
    by_id = outcomes(trial(tmp_path, settled=False, steps=4, users=300))
    assert by_id["M3"].outcome is not Outcome.FAIL, by_id["M3"]
    assert by_id["M1"].value > 5, by_id["M1"]
    assert "StoriesOfTheDay" in by_id["M1"].detail


def test_slow_interactions_that_wait_for_their_answer_are_no_fault_of_the_users(tmp_path):
    """Beyond the knee a backlog grows, and what is answered is another mix than what is asked."""
    by_id = outcomes(raw := trial(tmp_path, steps=6, users=1200, slow=("ViewStory",)))
    assert (by_id["M1"].outcome, by_id["M3"].outcome) == (Outcome.PASS, Outcome.PASS), (by_id["M1"], by_id["M3"])
    assert "more requests had no answer before the end" in by_id["M1"].detail
    share = raw.run_interactions["interaction"].eq("ViewStory").mean()
    assert share < expected_shares(raw)["ViewStory"] - 0.03, "of what was answered, as M1 would see it without them"


def test_requests_without_an_answer_excuse_no_other_table(tmp_path):
    by_id = outcomes(trial(tmp_path, walked="browse_only_no_search", steps=6, users=1200, slow=("ViewStory",)))
    assert (by_id["M1"].outcome, by_id["M3"].outcome) == (Outcome.FAIL, Outcome.FAIL), (by_id["M1"], by_id["M3"])


def test_a_few_choices_decide_nothing_and_invalidate_nothing(tmp_path):
    by_id = outcomes(trial(tmp_path, steps=5))
    assert {by_id[i].outcome for i in ("M1", "M3")} == {Outcome.UNDECIDABLE}
    assert not any(by_id[i].required for i in ("M1", "M3"))


# ---- authors -------------------------------------------------------------------------------------------------------


def test_users_and_authors_who_walk_their_own_tables_pass(tmp_path):
    raw = trial_with_authors(tmp_path, (READ_WRITE, BY_AUTHORS), leaf=(LEAF, 0.8), every=4, users=120)
    by_id = outcomes(raw)
    assert {by_id[i].outcome for i in ("M1", "M2", "M3")} == {Outcome.PASS}, [by_id[i] for i in ("M1", "M2", "M3")]
    assert {"ModerateComment", "RegisterUser"} <= set(expected_shares(raw))
    away = turned_away(raw)
    assert away[USERS]["ViewComment", "ViewComment"] == pytest.approx(LEAF, abs=0.1)
    assert away[AUTHORS]["ViewComment", "ViewComment"] == pytest.approx(0.8, abs=0.1)


@pytest.mark.parametrize(
    ("walked", "kind"),
    [((READ_WRITE, READ_WRITE), "authors"), ((BY_AUTHORS, BY_AUTHORS), "users"), ((BY_AUTHORS, READ_WRITE), "")],
)
def test_who_walks_the_table_of_the_others_is_found_out(tmp_path, walked, kind):
    m3 = outcomes(trial_with_authors(tmp_path, (READ_WRITE, BY_AUTHORS), walked=walked))["M3"]
    assert (m3.outcome, m3.reason) == (Outcome.FAIL, "mix"), m3
    assert m3.detail.startswith(f"not in the table: {kind}"), m3


def test_a_table_of_authors_that_nobody_was_told_of_is_found_out(tmp_path):
    """Without `config/<mix>.authors.csv` all users have one table, whatever users.csv says of them."""
    raw = trial_with_authors(tmp_path, (READ_WRITE, BY_AUTHORS))
    (raw.folder / "config" / "read_write.authors.csv").unlink()
    by_id = outcomes(raw)
    assert by_id["M3"].outcome is Outcome.FAIL
    assert ":" not in by_id["M3"].detail.removeprefix("not in the table: ")
    assert "not in the mix: " in by_id["M2"].detail


def test_deviations_of_users_and_of_authors_do_not_cancel(tmp_path):
    """Half of the users are authors and each half walks the other's table: all together choose as they should."""
    often = small(tmp_path / "often.csv", "Home,Home,0.2", "Home,View,0.8", "View,Home,1")
    seldom = small(tmp_path / "seldom.csv", "Home,Home,0.8", "Home,View,0.2", "View,Home,1")
    m3 = outcomes(trial_with_authors(tmp_path, (often, seldom), walked=(seldom, often), every=2))["M3"]
    assert m3.outcome is Outcome.FAIL
    # users walk `seldom`, so that 0.83 of their choices, half of all, are made at home: 0.6 of these are wrong
    assert abs(m3.value) == pytest.approx(100 * 0.5 * 0.83 * 0.6, abs=2)
    assert m3.detail.startswith("users: Home -> "), m3


def test_expected_shares_weigh_the_kinds_by_their_interactions(tmp_path):
    """20 of 60 users are authors, with a quarter of the others' interactions each: a ninth of all."""
    at_home = small(tmp_path / "users.csv", "Home,Home,1")
    at_desk = small(tmp_path / "authors.csv", "Home,Desk,1", "Desk,Home,1")
    raw = trial_with_authors(tmp_path, (at_home, at_desk), steps=(160, 40), every=3)
    assert expected_shares(raw) == pytest.approx({"Home": 17 / 18, "Desk": 1 / 18}, abs=1e-3)
    assert outcomes(raw)["M1"].outcome is Outcome.PASS


def test_pages_that_turn_authors_away_turn_no_user_away(tmp_path):
    """Half are authors, whose comments have no answers; the others always find one."""
    view = small(tmp_path / "view.csv", "Home,ViewComment,1", "ViewComment,ViewComment,1")
    raw = trial_with_authors(tmp_path, (view, view), leaf=(0.0, 1.0), every=2)
    assert expected_shares(raw)["Home"] == pytest.approx(0.5 / 2, abs=1e-3)


def test_failures_of_authors_send_no_user_home(tmp_path):
    """A quarter are authors, whose views all fail; the others would never leave the view."""
    view = small(tmp_path / "view.csv", "Home,View,1", "View,View,1")
    raw = trial_with_authors(tmp_path, (view, view), every=4)
    authors = (raw.interactions["user"] + 35 * (raw.interactions["client"] == "client2")) % 4 == 3
    raw.interactions["ok"] = ~(authors & (raw.interactions["interaction"] == "View"))
    assert expected_shares(raw)["Home"] == pytest.approx(0.25 / 2, abs=1e-3)


def test_a_mix_with_authors_of_which_none_was_drawn(tmp_path):
    """Chance in a small trial: nothing of their table is expected then."""
    raw = trial_with_authors(tmp_path, (READ_WRITE, BY_AUTHORS), every=1000)
    by_id = outcomes(raw)
    assert {by_id[i].outcome for i in ("M1", "M2", "M3")} == {Outcome.PASS}, [by_id[i] for i in ("M1", "M2", "M3")]
    assert "AuthorLogin" not in expected_shares(raw)


@pytest.mark.parametrize("change", [lambda lives: lives.drop(columns="author"), lambda lives: lives.iloc[1:]])
def test_users_of_unknown_kind_decide_nothing(tmp_path, change):
    raw = trial_with_authors(tmp_path, (READ_WRITE, BY_AUTHORS), steps=(20, 20))
    path = raw.folder / "clients" / "client2" / "users.csv"
    change(pd.read_csv(path)).to_csv(path, index=False)
    by_id = outcomes(raw)
    assert {by_id[i].outcome for i in ("M1", "M2", "M3")} == {Outcome.UNDECIDABLE}
    assert by_id["M3"].required
    assert by_id["M3"].detail == "clients/client2/users.csv: does not say whether user 35 is an author"


def test_a_line_of_back_with_probability_0_is_no_way_back():
    """As the client reads a full table: a state without a way back empties the history."""
    table_ = Table("a", {"a": (["Back", "b"], [0.0, 1.0]), "b": (["Back", "a"], [0.2, 1.0])})
    assert [table_.has_back(s) for s in "ab"] == [False, True]


AWAY = {("ViewComment", "ViewComment"): 0.4, ("ViewComment", "ViewStory"): 0.2, ("ViewStory", "StoriesOfTheDay"): 0.1}


@pytest.mark.parametrize(
    ("away", "failed", "visits"),
    [({}, {}, (34514, 35286, 27255, 15640)), (AWAY, {"Search": 0.5}, (39407, 39062, 21520, 15165))],
)
def test_a_walk_takes_the_same_way_each_time(away, failed, visits):
    """What a trial is compared with is the same on each machine and in each version of the program."""
    counts = walk(_table(READ_WRITE), away, failed)
    assert tuple(counts[s] for s in ("StoriesOfTheDay", "ViewStory", "ViewComment", "PostComment")) == visits
    assert counts.total() == STEPS
    counts.clear()
    again = walk(_table(READ_WRITE), away | {("ViewStory", "Search"): 0.0}, failed | {"ViewStory": 0.0})
    assert again["ViewStory"] == visits[1], "who changes the answer changes nobody else's, and 0 is as good as nothing"
