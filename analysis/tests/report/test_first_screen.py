"""What the report says first: what the verdict means, what to do next, and how to repeat the sweep."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pandas as pd
import pytest
from ntier_analysis.described import LoadAxis
from ntier_analysis.figures.load_axis import in_its_words, listed, over
from ntier_analysis.report import words
from ntier_analysis.report.meaning import meaning
from ntier_analysis.report.repeat import GOALS, repeating

ROOT = Path(__file__).parents[3]
TRIALS = pd.DataFrame(
    {
        "users": [1000, 2000, 3000, 4000],
        "valid": [True, True, True, False],
        "response_time_mean_ms": [9.654, None, 15_282.0, 99_000.0],
    }
)
CPU = {"tier": "db", "resource": "cpu", "nodes": ["db1"]}
POOL = {"tier": "app", "resource": "pool", "nodes": ["app1"]}
FOUND = {
    "knee_users": 4046.0,
    "max_throughput_per_s": 80.0,
    "max_throughput_at_least": False,
    "bottlenecks": [],
    "kind": "",
}


@pytest.mark.parametrize(
    ("found", "said"),
    [
        ({"verdict": "single", "bottlenecks": [CPU]}, "add db CPU or let each interaction use less of it."),
        ({"verdict": "single", "bottlenecks": [POOL]}, "enlarge the app pool or hold its places"),
        ({"verdict": "multi", "kind": "alternating", "bottlenecks": [CPU, POOL]}, "saturated in turns: relieving one"),
        ({"verdict": "none", "knee_users": None}, "The system had room at every load of this sweep."),
        ({"verdict": "hidden"}, "nothing that was measured is saturated"),
        ({"verdict": "unknown", "knee_users": None}, "neither name a bottleneck nor rule one out"),
        ({"verdict": "single", "bottlenecks": [CPU], "max_throughput_at_least": True}, "so it is a lower bound."),
        (
            {"verdict": "hidden", "knee_users": None, "max_throughput_at_least": True},
            "The loads do not reach far enough",
        ),
    ],
)
def test_each_verdict_has_its_meaning_in_whole_sentences(found, said):
    told = meaning(FOUND | found, TRIALS, 0.2)
    assert said in " ".join(told)
    assert all(re.fullmatch(r"[A-Z].*[.]", line) for line in told)
    # the invalid load says nothing of response times
    assert "On average an interaction takes 9.65 ms at 1,000 users, and 15.3 s at 3,000 users." in told
    assert told[-1].startswith("The nodes had 0.2 of their nominal capacity")
    assert meaning(FOUND | found, TRIALS.iloc[:1], 1.0) == told[:-2]


def test_a_factor_that_is_no_amount_of_load_has_no_maximum_and_its_values_have_their_name():
    found = {"verdict": "single", "bottlenecks": [CPU], "max_throughput_per_s": None, "max_throughput_at_least": True}
    trials = TRIALS.assign(users=[0.1, 0.5, 1.0, 2.0])
    with over(LoadAxis("sleep_s", "s")):
        told = meaning(FOUND | found | {"knee_users": None}, trials, 1.0)
    assert told == [
        "To raise the maximum, add db CPU or let each interaction use less of it. As long as it limits, "
        "more of anything else does not help.",
        "On average an interaction takes 9.65 ms at sleep_s 0.1 s, and 15.3 s at sleep_s 1 s.",
    ]


def test_loads_of_another_factor_are_told_in_its_words():
    text = f"at {listed([0.0, 1.0, 20.0])} users of 1,000 real users, at 0.5 users"
    assert in_its_words(text) == text == "at 0, 1 and 20 users of 1,000 real users, at 0.5 users"
    with over(LoadAxis("delay_ms", "ms")):
        assert in_its_words(text) == "at delay_ms 0, 1 and 20 ms of 1,000 real users, at delay_ms 0.5 ms"
    assert listed([13_000]) == "13,000"


def test_workers_are_not_called_users():
    found = FOUND | {"verdict": "hidden", "load_model": "work"}
    with over(LoadAxis(who=words.who(found))):
        told = " ".join(meaning(found, TRIALS, 1.0))
    assert "Up to about 4,000 workers throughput grows with the workers. With more workers, all wait longer" in told
    assert "Workers wait, but nothing" in told
    assert "at 3,000 workers." in told
    assert "users" not in told.lower()


def test_a_line_becomes_a_sentence_and_names_keep_their_letters():
    lines = ["repeat u01.r01: invalid", "db1 is slow.", "db cpu (db1): full", "sleep_s 1 s: none"]
    assert [words.sentence(line) for line in lines] == [
        "Repeat u01.r01: invalid.",
        "db1 is slow.",
        "db cpu (db1): full.",
        "sleep_s 1 s: none.",
    ]


@pytest.mark.whole
def test_meaning_advice_warnings_and_evidence_come_in_this_order_and_the_evidence_is_folded(report):
    html = report.html
    marks = ["<h1>", ">What it means<", ">What to do next<", ">Before you use a number<", '<details id="evidence">']
    places = [html.index(mark) for mark in marks]
    assert places == sorted(places)
    verdict, _, rest = html.partition("<h1>")[2].partition('<details id="evidence">')
    assert "trials beyond the knee agree" not in verdict
    assert "trials beyond the knee agree" in rest.partition("</details>")[0]


@pytest.mark.parametrize(
    ("recorded", "command"),
    [
        ("ntier sweep --topo 1/1/1/1M", "make sweep TOPO=1/1/1/1M"),
        (
            "ntier sweep --topo=1/2/1/2M --set web_max_workers=60 --results 'my results' --set app_pool_size=4 --json",
            "make sweep TOPO=1/2/1/2M SET='web_max_workers=60 app_pool_size=4'",
        ),
        ("ntier campaign --spec 'my campaign.yaml'", "make campaign SPEC='my campaign.yaml'"),
        ("ntier sweep --topo 1/1/1/1M --set 'a=b c'", ".venv/bin/ntier sweep --topo 1/1/1/1M --set 'a=b c'"),
        ("ntier sweep --needs", ".venv/bin/ntier sweep --needs"),
        ("make sweep TOPO=1/1/1/1M", "make sweep TOPO=1/1/1/1M"),
        ("an open 'quote", "an open 'quote"),
        ("", ""),
    ],
)
def test_the_command_is_one_for_a_checkout(recorded, command):
    assert repeating(recorded) == command


@pytest.mark.skipif(shutil.which("make") is None, reason="no make on this machine")
def test_make_takes_the_command_and_gives_back_the_recorded_one():
    recorded = "ntier sweep --topo 1/1/1/1M --users 1000,2000 --set web_max_workers=60 --set app_pool_size=4"
    # what would be run, without running it
    arguments = repeating(recorded).replace("make ", "make --dry-run ", 1)
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("MAKE", "MFLAGS"))}  # of a make above this test
    done = subprocess.run(["bash", "-c", arguments], cwd=ROOT, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    said = done.stdout.replace("'", "")
    for option in ("--topo 1/1/1/1M", "--users 1000,2000", "--set web_max_workers=60", "--set app_pool_size=4"):
        assert f" {option} " in said


def test_the_variables_are_those_of_the_makefile():
    makefile = (ROOT / "Makefile").read_text()
    lists = dict(re.findall(r"^(EXPERIMENT|takes_sweep|takes_campaign) *:= *(.*)$", makefile, re.M))
    for goal, names in GOALS.items():
        listed = (
            lists[f"takes_{goal}"]
            .replace("$(EXPERIMENT)", lists["EXPERIMENT"])
            .replace("$(PLACE)", "")
            .replace("METRICS", "")
        )
        assert set(names) == set(listed.split())
