"""P1: a sweep changes its factor, and nothing else."""

from ntier_analysis.contracts import implied
from ntier_analysis.contracts.manifest import Manifest
from ntier_analysis.contracts.system import Factor, LoadModel
from ntier_analysis.trial import RawTrial
from ntier_analysis.validity import provenance


class Trial:
    """What the check looks at of a trial."""

    folder = None

    def __init__(self, manifest: Manifest) -> None:
        self.manifest = manifest


def manifest(**given) -> Manifest:
    system = implied.system(8).model_copy(
        update={"factor": Factor(name="sleep_s", title="sleep", value=given["sleep_s"])}
    )
    return Manifest(
        ntier_version="0", sweep="s", trial="t", topology="1/1/1/1M", mix="m", middleware="none", data_profile="d",
        users=8, users_real=8, scale=1.0, rep=1, seed=1, phases=[], git_clean=True, system=given.get("system", system),
        soft_resources={"sleep_s": given["sleep_s"], "workers": given.get("workers", 4)},
    )  # fmt: skip


def different(monkeypatch, now: Manifest, then: Manifest) -> float:
    monkeypatch.setattr(provenance, "_first", lambda _: (None, then))
    monkeypatch.setattr(provenance, "RawTrial", lambda _: None)
    monkeypatch.setattr(provenance, "_started_since", lambda *_: [])
    trial: RawTrial = Trial(now)
    return provenance.same_system(trial).value


def test_only_the_factor_may_differ(monkeypatch):
    first = manifest(sleep_s=1.0)
    assert different(monkeypatch, manifest(sleep_s=2.0), first) == 0
    assert different(monkeypatch, manifest(sleep_s=2.0, workers=5), first) == 1
    other = first.system.model_copy(update={"load_model": LoadModel.WORK})
    assert different(monkeypatch, manifest(sleep_s=2.0, system=other), first) == 1
