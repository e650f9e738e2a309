"""P1 on versions: another program in the same place is another experiment; one that could not be asked is not."""

from __future__ import annotations

import shutil

import pytest
from ntier_analysis.contracts import Manifest, Outcome, State, Validity
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity.provenance import same_system
from synthetic import Spec, Truth, write_trial

SPEC = Spec(200, Truth({"web": 0.0002, "app": 0.0005, "middleware": 0.0004, "db": 0.0012}), (20.0, 40.0, 5.0))


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        ({"db.running.mysql": "9.7.4"}, {"db.running.mysql": "9.8.0"}, "db.running.mysql: 9.7.4 then, 9.8.0 now"),
        ({"client.running.jvm": "25.0.1"}, {"client.running.jvm": "unknown"}, None),
        ({"terraform": "1.11.4"}, {"terraform": "1.12.0"}, None),
        ({}, {"mysql.running.mysql": "9.8.0"}, None),
    ],
)
def test_another_version_is_another_experiment(tmp_path, then, now, says):
    second = write_trial(tmp_path, SPEC)
    first = second.with_name("u00100.r01")
    shutil.copytree(second, first)
    for folder, versions in ((first, then), (second, now)):
        manifest = Manifest.read(folder)
        manifest.versions, manifest.state, manifest.validity = versions, State.COLLECTED, Validity(valid=True)
        manifest.write(folder)
    same = same_system(RawTrial(second))
    assert (same.outcome is Outcome.FAIL) == bool(says), same
    assert (says or "") in same.detail
