"""Whether two sweeps were measured under conditions that allow to compare them."""

from __future__ import annotations

import pandas as pd

from ntier_analysis.comparison.values import Side
from ntier_analysis.contracts import Manifest, versions
from ntier_analysis.contracts.implied import USERS
from ntier_analysis.described import factor_of
from ntier_analysis.setting import MUST_EQUAL, differing, think_times_as_one
from ntier_analysis.trial import manifest_beside

REFUSED = ("system", "scale", "data_profile", "mix", "think_time_s")
"""Those of `setting.MUST_EQUAL` that make a ratio meaningless if they differ. The others may be what is compared (a
middleware, a policy, a place to run), so a warning names them."""
ALSO = ("slo_ms", "git_commit")
PHASE_S = 1.0
"""Phases that differ by less are equal: they are planned in whole seconds."""
IDLING = "way of idling"
"""CPUs of a virtual machine that halt cost time at each waking (docs/decisions/awake.md)."""
HOST = ("cores", "memory_bytes", "kernel", "os", "cgroup_version", "cpu_model", IDLING)


def differences(a: Side, b: Side) -> tuple[list[str], list[str]]:
    """(what forbids a comparison, what a reader must know), one sentence each."""
    refused, warned = [], []
    for column, (x, y) in differing(a.trials, b.trials).items():
        if column == "think_time_s" and think_times_as_one(a.trials, b.trials):
            warned.append(f"{column} is {x} and {y}: measured means differ by as much")
        elif column in REFUSED and "unknown" not in (x, y):
            refused.append(f"{column} is {x} and {y}: {MUST_EQUAL[column]}")
        else:
            warned.append(f"{column} is {x} and {y}: {MUST_EQUAL[column]}")
    warned += [f"{column} is {x} and {y}" for column, (x, y) in differing(a.trials, b.trials, ALSO).items()]
    return refused, warned + _factor(a, b) + _phases(a, b) + _from_manifests(a, b)


def _factor(a: Side, b: Side) -> list[str]:
    """Of one factor other than users: equal numbers of different units are no equal loads, and the users are no part of
    the load, so they may differ."""
    (name, x), (other, y) = (factor_of(s.trials) for s in (a, b))
    if name != other or name == USERS:
        return []
    if x != y:
        return [f"{name} is in {x or 'no unit'} and {y or 'no unit'}: no two values are compared"]
    both = set(a.trials["load"]) & set(b.trials["load"])
    common = (s.trials[s.trials["load"].isin(both)] for s in (a, b))
    return [f"users is {x} and {y} at equal {name}" for x, y in differing(*common, ["users"]).values()]


def _phases(a: Side, b: Side) -> list[str]:
    differences = []
    for name, first, last in (("ramp-up", "ramp_up_start_s", "run_start_s"), ("run", "run_start_s", "run_end_s")):
        x, y = ((s.trials[last] - s.trials[first]).median() for s in (a, b))
        if pd.notna(x) and pd.notna(y) and abs(x - y) > PHASE_S:
            differences.append(f"the {name} phase is {x:.0f} s and {y:.0f} s long")
    return differences


def _from_manifests(a: Side, b: Side) -> list[str]:
    """Hosts and versions (DBMS, middleware, ...), where the raw results lie beside the stores."""
    x, y = (manifest_beside(side.store, side.sweep) for side in (a, b))
    if x is None or y is None:
        return []
    hosts = _host(x), _host(y)
    differences = [f"the host's {k} is {hosts[0].get(k)} and {hosts[1].get(k)}" for k in HOST if all(hosts)
             and hosts[0].get(k) != hosts[1].get(k)]  # fmt: skip
    return differences + [
        f"{name} is {a_has} and {b_has}" for name, a_has, b_has in versions.differing(x.versions, y.versions)
    ]


def _host(manifest: Manifest) -> dict:
    host = manifest.host
    if host is None:
        return {}
    idling = "staying awake" if host.facts.get("kept_awake") else "halting"
    return host.model_dump(exclude={"facts"}) | {"cpu_model": host.facts.get("cpu_model"), IDLING: idling}
