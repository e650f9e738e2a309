"""Each study's page is what its data make; its claims can be read, and are of sweeps that its campaigns measure."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path

import pytest
from ntier_analysis.demo import SWEEP
from ntier_analysis.expectation import claims
from ntier_analysis.expectation.expressions import Others, evaluate
from ntier_analysis.expectation.loads import NotMeasured
from ntier_harness import campaign_spec, request, systems

ROOT = Path(__file__).resolve().parents[2]
STUDIES = sorted(file.parent for file in ROOT.glob("studies/*/claims.yaml"))
CLAIMS = [(study, claim) for study in STUDIES for claim in claims.read(study / "claims.yaml")]
each_study = pytest.mark.parametrize("study", STUDIES, ids=lambda study: study.name)


@cache
def campaigns(study: Path) -> list[campaign_spec.Campaign]:
    files = [*study.glob("campaign.yaml"), *sorted(study.glob("campaigns/*.yaml"))]
    return [campaign_spec.parse(file.read_text(), str(file), ROOT, 2) for file in files]


def is_anchor(sweep: str) -> bool:
    return ".anchor-" in sweep


@each_study
def test_the_page_is_that_of_the_data(study, monkeypatch):
    monkeypatch.syspath_prepend(study)
    found = importlib.util.spec_from_file_location(f"page_of_{study.name.replace('-', '_')}", study / "page.py")
    page = importlib.util.module_from_spec(found)
    found.loader.exec_module(page)
    assert page.page() == (study / "README.md").read_text()


@each_study
def test_the_page_has_every_claim(study):
    rows = (study / "claims.md").read_text().splitlines()[2:]
    for claim, row in zip(claims.read(study / "claims.yaml"), rows, strict=True):
        assert row.startswith(f"| {claim.says} | {claim.place} | {claim.paper} | ")


@each_study
def test_throughputs_of_different_scales_are_compared_in_anchors_only(study):
    scales = {s.sweep: s.scale for campaign in campaigns(study) for s in campaign.sweeps}
    for claim in claims.read(study / "claims.yaml"):
        for sweep, text in claim.parts:
            of = {scales[name] for name in claim.needed(sweep, text) if name in scales}
            told = "in anchors" in text or text.startswith("verdict ")  # what limits is the same at any scale
            assert len(of) <= 1 or told, f"{claim.name}: {text}, of scales {of}"


@each_study
def test_a_block_has_one_scale_and_a_study_measures_nothing_twice(study):
    for campaign in campaigns(study):
        assert len({s.scale for s in campaign.sweeps}) == 1, f"{campaign.name}: its anchor would be of another scale"
    specs = [s for campaign in campaigns(study) for s in campaign.sweeps]
    assert len({s.sweep for s in specs}) == len(specs)
    names = [campaign.name for campaign in campaigns(study)]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize(("study", "claim"), CLAIMS, ids=lambda v: getattr(v, "name", v))
def test_a_claim_is_of_sweeps_that_are_measured(study, claim):
    """By one of the study's campaigns; or nobody has run such a topology yet."""
    measured = {s.sweep for campaign in campaigns(study) for s in campaign.sweeps}
    for sweep in set(claim.sweeps) - measured:
        system = systems.find(ROOT, systems.default(ROOT))
        letters = request.parse_topology(sweep.partition(".")[0], system).letters
        assert any(system.definition.variants[v].choices[c].untried for v, c in letters.items()), sweep


@each_study
def test_each_sweep_has_the_anchor_of_its_block(study):
    expected = {}
    for campaign in campaigns(study):
        anchor = next((s.sweep for s in campaign.sweeps if is_anchor(s.sweep)), None)
        expected |= {s.sweep: anchor for s in campaign.sweeps if anchor and s.sweep != anchor}
    assert claims.anchors(study / "claims.yaml") == expected


@each_study
def test_a_block_begins_and_ends_with_its_anchor(study):
    """Near enough: nothing but another variant of the same topology may come before or after it."""
    for campaign in campaigns(study):
        first, second, *_ = [*campaign_spec.blocks(campaign), [], []]
        if not any(is_anchor(s.sweep) for s in first):
            continue
        anchor = next(s for s in first if is_anchor(s.sweep))
        before = first[: first.index(anchor)]
        after = second[[s.sweep for s in second].index(anchor.sweep) + 1 :]
        assert {s.topology for s in [*before, *after]} <= {anchor.topology}, campaign.name


@pytest.mark.parametrize(("study", "claim"), CLAIMS, ids=lambda v: getattr(v, "name", v))
def test_the_expectations_of_a_claim_can_be_read(study, claim, demo, facts):
    """Of a measured sweep in the place of all others: some of their loads are not its own, but nothing else may be
    wrong."""

    def seen(text: str) -> str:
        try:
            return evaluate(text, facts, demo, Others({SWEEP: facts}, {SWEEP: SWEEP})).seen
        except NotMeasured as error:
            return str(error)

    for sweep, text in claim.parts:
        for name in sorted(claim.needed(sweep, text), key=len, reverse=True):
            text = text.replace(name, SWEEP)
        said = seen(text)
        assert said
        assert "interaction '" not in said, "the board has no such interaction"
    assert claim.parts or claim.unjudged
