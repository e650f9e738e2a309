"""M1 and M3 on users that walk the real table: honest ones pass, another table or a cold start does not."""

import csv
from pathlib import Path

import numpy as np
import pytest
from ntier_analysis.contracts import Outcome
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.mix import turned_away
from ntier_analysis.validity.registry import validate
from synthetic import JTL, Spec, Truth, _csv, write_trial

MIXES = Path(__file__).parents[3] / "workloads" / "mixes"
LEAF = 0.4
"""Share of the comment pages that offer no comment."""
GAP_S = 0.25


def table(mix):
    rows = {}
    with (MIXES / f"{mix}.csv").open() as file:
        for row in csv.DictReader(line for line in file if not line.startswith("#")):
            rows.setdefault(row["from"], []).append((row["to"], float(row["probability"])))
    return rows


class User:
    """Walks as workloads/README.md says; comment pages turn `ViewComment` away with probability LEAF."""

    def __init__(self, rows, rng, settled):
        self.rows, self.rng = rows, rng
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
        leaf = self.state == "ViewComment" and self.rng.random() < LEAF
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


def trial(tmp_path, walked="browse_only", settled=True, steps=160, users=60):
    """`steps` interactions of each of `users` within the run; the trial's table is browse_only whatever was walked."""
    spec = Spec(600, Truth({"db": 0.001}), phases=(20.0, 40.0, 5.0), seal=False)
    folder = write_trial(tmp_path / "raw", spec)
    (folder / "config" / "browse_only.csv").write_bytes((MIXES / "browse_only.csv").read_bytes())
    rng, jtl, thinks = np.random.default_rng(5), [], []
    run_at = spec.start_s + spec.phases[0]
    for number in range(users):
        user = User(table(walked), rng, settled)
        for k in range(steps):
            at = 1000 * (run_at + (k + number / users) * GAP_S)
            jtl.append(
                (round(at), 20, user.state, 200, "OK", f"Users 1-{number + 1}", "true", "", 9, 9, 1, 1, "u", 9, 0, 0)
            )
            thinks.append((f"{at + 21:.3f}", number, user.step(), 200, "200.000"))
    client = folder / "clients" / "client1"
    _csv(client / "interactions.jtl.csv.zst", JTL, jtl)
    _csv(client / "thinks.csv.zst", "t_start_ms,user,state,drawn_ms,actual_ms", thinks)
    return RawTrial(folder)


def outcomes(raw):
    return {c.id: c for c in validate(raw).checks}


def test_an_honest_walk_passes_though_pages_turn_choices_away(tmp_path):
    raw = trial(tmp_path)
    found = outcomes(raw)
    assert (found["M1"].outcome, found["M3"].outcome) == (Outcome.PASS, Outcome.PASS), (found["M1"], found["M3"])
    away = turned_away(raw)
    assert away["ViewComment", "ViewComment"] == pytest.approx(LEAF, abs=0.05)
    assert set(away) == {("ViewComment", "ViewComment")}


def test_users_of_another_table_are_found_out(tmp_path):
    found = outcomes(trial(tmp_path, walked="browse_only_no_search"))
    assert (found["M3"].outcome, found["M3"].reason) == (Outcome.FAIL, "mix")


def test_users_that_all_come_from_home_have_another_mix_though_each_draws_right(tmp_path):
    """What a short ramp-up does once replies take seconds: four pages per user are not the long-run mix."""
    found = outcomes(trial(tmp_path, settled=False, steps=4, users=300))
    assert found["M3"].outcome is not Outcome.FAIL, found["M3"]
    assert found["M1"].value > 5, found["M1"]
    assert "StoriesOfTheDay" in found["M1"].detail


def test_a_few_choices_decide_nothing_and_invalidate_nothing(tmp_path):
    found = outcomes(trial(tmp_path, steps=5))
    assert {found[i].outcome for i in ("M1", "M3")} == {Outcome.UNDECIDABLE}
    assert not any(found[i].required for i in ("M1", "M3"))
