"""The maximum at the mean speed of the machine: what it takes out, and when it is refused."""

import numpy as np
import pytest
from mean_speed import AtSpeed, at_mean_speed
from ntier_analysis.verdict.data import TrialData
from ntier_analysis.verdict.load import Load

SLOW = np.array([1.0, 1.1, 0.9, 1.05])
"""What an interaction costs in each trial, beside its mean."""
STEADY = np.ones(4)


def trials(db: np.ndarray, web: np.ndarray, app: np.ndarray, use: float = 0.3) -> list[TrialData]:
    """Trials that the database's CPU limits: 100/s if nothing is slow. Web and app then use `use` and half a core."""
    found = []
    for i, (d, w, a) in enumerate(zip(db, web, app, strict=True)):
        rate = 100 / d
        load = Load(f"u{i}", i, 1000, rate, 2.0, 7.0, 0.0, 40.0, True, rates=rate * np.tile([0.99, 1.01], 5))
        used = {"db1": 1.0, "web1": use * w / d, "app1": 0.5 * a / d}
        tiers = {"db1": "db", "web1": "web", "app1": "app", "client1": "client"}
        found.append(TrialData(load, [], tiers, used, dict.fromkeys(used, 1.0)))
    return found


def test_a_speed_that_all_tiers_share_is_taken_out():
    found = at_mean_speed(trials(SLOW, SLOW, SLOW), {"db"})
    assert isinstance(found, AtSpeed)
    assert found.tiers == ("web", "app")
    rates = 100 / SLOW
    assert found.maximum.value == pytest.approx(rates.mean()), "at the mean speed it is the mean"
    assert found.cost_s == pytest.approx(0.8 / rates.mean()), "both use 0.8 cores whatever the speed"
    assert found.differ == pytest.approx(0, abs=1e-9)
    assert found.differed == pytest.approx(np.std(np.log(rates), ddof=1))
    assert found.maximum.half_width > 0, "a run knows its own throughput to its batches only"


@pytest.mark.parametrize(
    ("web", "app", "why"),
    [
        (STEADY, STEADY, "no two tiers with room for which the cost of an interaction varies alike"),
        (SLOW, 2 - SLOW, "no two tiers with room"),
        (SLOW**3, SLOW**3, "it is not the machine's speed that differs"),
    ],
)
def test_it_is_refused_if_the_tiers_with_room_do_not_show_what_slowed_the_trials(web, app, why):
    found = at_mean_speed(trials(SLOW, web, app), {"db"})
    assert isinstance(found, str)
    assert why in found


def test_it_takes_three_trials_that_differ_and_two_tiers_with_room():
    assert "3 are needed" in at_mean_speed(trials(SLOW, SLOW, SLOW)[:2], {"db"})
    assert "no tier" in at_mean_speed(trials(SLOW, SLOW, SLOW), {"db", "web", "app"})
    assert "no two tiers with room" in at_mean_speed(trials(SLOW, SLOW, SLOW, use=0.95), {"db"}), "web has no room"
    little = SLOW**0.3
    assert at_mean_speed(trials(little, little, little), {"db"}) == "between trials throughput differs by 2.6 % only"


def test_a_tier_that_varies_like_no_other_does_not_count():
    """As Tomcat's, whose JVM still compiled in one of the trials."""
    found = at_mean_speed([with_middleware(t, s) for t, s in zip(trials(SLOW, SLOW, 2 - SLOW), SLOW, strict=True)],
                          {"db"})  # fmt: skip
    assert isinstance(found, AtSpeed)
    assert found.tiers == ("web", "middleware")


def with_middleware(t: TrialData, slow: float) -> TrialData:
    """With a middleware that is slow like the machine."""
    used = t.used_cores | {"middleware1": 0.4 * slow * t.load.throughput_per_s / 100}
    return TrialData(t.load, [], t.nodes | {"middleware1": "middleware"}, used, dict.fromkeys(used, 1.0))
