"""The part of a target that rents machines which is about money: prices, what was spent, and the budget."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from ntier_analysis.wording import counted

from ntier_harness import plan
from ntier_harness.errors import BudgetReached, RequestError, WorkError
from ntier_harness.paths import Paths
from ntier_harness.plan import INSTALL_S
from ntier_harness.runner import Runner
from ntier_harness.spec import Spec
from ntier_harness.targets.inventory import wanted_nodes
from ntier_harness.targets.rental import HOUR_S, Ledger, Offer, hours, money, parse_budget, priced, read_offer

LOOK_S = 60.0
"""A timer stands still while this machine sleeps, and paid hours do not: the clock is looked at this often."""
DOWN_S = 300.0
"""Kept free at the end of a budget, for giving back: fourteen machines take some 10 s where the API answers at once."""


class Paying:
    """`file`: another offer than the target's own `machines.json`; `budget`: as typed."""

    rents = True
    name: str
    root: Path
    runner: Runner
    paths: Paths

    def set_terms(self, file: Path | None, budget: str | None) -> None:
        """Raises RequestError for an offer or a budget that cannot be read."""
        self.offer_file = file or self.root / "machines.json"
        self.offer: Offer = read_offer(self.offer_file)
        self.budget = parse_budget(budget, self.offer.currency) if budget else None
        if budget and not any(t.price_per_hour for t in self.offer.node_types.values()):
            raise RequestError(
                f"budget: {self.offer_file} has no prices, so a budget would never be reached; give a file that has "
                "them as --machines, or no budget"
            )
        self.work: str = ""
        self.work_s: float | None = None
        """The least of it that is of use; None: a trial."""
        self._timer: threading.Timer | None = None
        self._over = False

    @property
    def ledger(self) -> Ledger:
        return Ledger(self.paths.place / "rented.json", self.offer.currency)

    def node_types(self, spec: Spec) -> dict[str, str]:
        """Node -> node type. Raises RequestError for a type that is not offered."""
        node_types = {name: node_type for name, _, node_type in wanted_nodes(spec)}
        for node_type in node_types.values():
            self.offer.of(node_type)
        return node_types

    def made_anew(self, _spec: Spec) -> set[str]:
        """Nodes that are up and get another machine."""
        return set()

    # ---- before

    def price(self, spec: Spec, seconds: float) -> dict[str, Any] | None:
        """`seconds`: of the sweep itself, on machines that are up. {currency, per_hour, machines, hours, expected,
        budget, spent, date, ...}"""
        prices = priced(self.offer, self.node_types(spec))
        paid = hours(seconds + INSTALL_S + DOWN_S)
        spent = self.ledger.spent(self.runner.now(), self.work or spec.sweep)
        return prices | {
            "hours": paid,
            "expected": round(paid * prices["per_hour"], 2),
            "budget": self.budget,
            "spent": round(spent, 4),
        }

    def price_of_all(self, legs: list[tuple[Spec, float]], work: str) -> dict[str, Any] | None:
        """Of a campaign's sweeps, one after the other, each with its seconds on machines that are up: a machine is paid
        for, by started hours, from when a topology needs it until one does not. None: nothing is left."""
        now, cost, most, since = 0.0, 0.0, 0.0, {}
        for spec, seconds in legs:
            wanted = {(name, type_, spec.topology.kinds.get(tier)) for name, tier, type_ in wanted_nodes(spec)}
            cost += self._cost({m: since.pop(m) for m in since.keys() - wanted}, now + DOWN_S)
            new = wanted - since.keys()
            since |= dict.fromkeys(new, now)
            now += seconds + (INSTALL_S if new else 0.0)
            most = max(most, sum(self.offer.of(node_type).price_per_hour for _, node_type, _ in wanted))
        if not legs:
            return None
        return {
            "currency": self.offer.currency,
            "per_hour": round(most, 4),
            "expected": round(cost + self._cost(since, now + DOWN_S), 2),
            "budget": self.budget,
            "spent": round(self.ledger.spent(self.runner.now(), work), 4),
            "date": self.offer.date,
            "source": self.offer.source,
            "note": self.offer.note,
        }

    def _cost(self, since: dict[tuple[str, str, str | None], float], until: float) -> float:
        """Of machines (node, node type, kind) that came at these times, s."""
        return sum(self.offer.of(node_type).price_per_hour * hours(until - t) for (_, node_type, _), t in since.items())

    def check_budget(self, spec: Spec) -> None:
        """Raises RequestError unless the budget lasts for one trial, with the machines that lack for it: else money
        would be spent for nothing; and where what was spent is in another currency."""
        if self.budget is None:
            return
        there = {m.node for m in self.ledger.open()} - self.made_anew(spec)
        lacking = [t for name, t in self.node_types(spec).items() if name not in there]
        work_s = plan.trial_duration_s(spec) if self.work_s is None else self.work_s
        least = (INSTALL_S if lacking else 0.0) + work_s + DOWN_S
        now, work = self.runner.now(), self.work or spec.sweep
        self.ledger.check_currency(work)
        needed = self.ledger.spent(now + least, work)
        needed += sum(self.offer.of(t).price_per_hour for t in lacking) * hours(least)
        if needed > self.budget:
            currency = self.offer.currency
            spent = self.ledger.spent(now, work)
            before = f" ({money(spent, currency)} of it are spent already)" if spent else ""
            what = f"one trial of {spec.sweep}, which needs"
            what = what if self.work_s is None else f"the images of {spec.topology}, which need"
            raise RequestError(
                f"budget: {money(self.budget, currency)} do not cover {what} "
                f"{money(needed, currency)}{before}; {self.still_rented() or 'nothing was rented'}"
            )

    def check_new(self, spec: Spec) -> None:
        """The same before machines are rented beside others of this work, which then go: a budget that ends it."""
        try:
            self.check_budget(spec)
        except RequestError as error:
            if not (self.work and self.ledger.open()):
                raise
            self._over = True
            raise BudgetReached(str(error)) from None

    # ---- meanwhile

    def begin(self, work: str) -> None:
        """With a budget, the run is asked to stop at the last moment, whatever it is doing then."""
        self.work = work
        self._over = False
        self.ledger.find(work)
        self.watch_budget()

    def watch_budget(self) -> None:
        """Sets the moment anew; machines may have come or gone."""
        if self._timer:
            self._timer.cancel()
        self._timer = None
        if self.budget is None or not self.work or not self.ledger.open():
            return
        left = last_moment(self.ledger, self.budget, self.work, self.runner.now()) - DOWN_S - self.runner.now()
        if left <= 0:
            self._end()
        else:
            self._look_in(min(left, LOOK_S))

    def _look_in(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._look)
        self._timer.daemon = True
        self._timer.start()

    def _look(self) -> None:
        """In the timer's thread, where an error would end the watch without a word."""
        if self._timer is not threading.current_thread():  # ended meanwhile
            return
        try:
            self.watch_budget()
        except (OSError, WorkError, RequestError):
            self._look_in(LOOK_S)

    def _end(self) -> None:
        self._over = True
        self.runner.stop.request()

    def over(self) -> bool:
        return self._over

    def afford(self, seconds: float) -> None:
        if self.budget is None:
            return
        now, currency = self.runner.now(), self.offer.currency
        then = self.ledger.spent(now + seconds + DOWN_S, self.work)
        if then > self.budget:
            self._over = True
            spent = money(self.ledger.spent(now, self.work), currency)
            raise BudgetReached(
                f"budget: the next trial would bring the cost to {money(then, currency)}, allowed are "
                f"{money(self.budget, currency)} ({spent} so far); the sweep ends here"
            )

    def rent(self) -> dict[str, Any] | None:
        """As the contract `Rent` says it."""
        there = self.ledger.open()
        if not there:
            return None
        return {
            "currency": self.ledger.counted_in,
            "price_per_hour": {m.node: m.price_per_hour for m in there},
            "types": {m.node: m.type for m in there},
            "since_s": {m.node: m.from_s for m in there},
            "location": self.location() or "",
            "source": f"{self.offer.source} ({self.offer.date})",
            "calibration": self.calibration(),
        }

    def location(self) -> str | None:
        """Where the machines are; None: there are none."""
        try:
            return json.loads((self.paths.place / "location.json").read_text())
        except (OSError, ValueError):
            return None

    def calibration(self) -> dict[str, Any]:
        try:
            return json.loads((self.paths.place / "calibration.json").read_text())
        except (OSError, ValueError):
            return {}

    # ---- after

    def still_rented(self) -> str:
        there = self.ledger.open()
        if not there:
            return ""
        per_hour, s = sum(m.price_per_hour for m in there), "s" * (len(there) == 1)
        go_on = f"cost{s} {money(per_hour, self.ledger.counted_in)} per hour" if per_hour else f"stay{s}"
        unkept = f", also beyond the budget of {money(self.budget, self.offer.currency)}" if self.budget else ""
        return f"{counted(len(there), 'rented machine')} {go_on}{unkept} until: ntier down --target {self.name}"

    def give_back(self) -> bool:
        """They go with the work that they were rented for; those of `ntier up` stay until `ntier down`."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        there = self.ledger.open()
        return bool(there) and (self._over or any(m.work for m in there))


def last_moment(ledger: Ledger, budget: float, work: str, now_s: float) -> float:
    """The last time (epoch, s) at which all may still be there within the budget: the end of an hour of one of the
    machines. `now_s` if it is exceeded already."""
    starts = [m.from_s for m in ledger.open()]
    if ledger.spent(now_s, work) > budget:
        return now_s
    last = now_s
    while last - now_s < 30 * 24 * HOUR_S:  # nobody rents for longer
        after = last + 1e-3
        following = min(s + HOUR_S * hours(after - s) for s in starts)
        if ledger.spent(following, work) > budget:
            break
        last = following
    return last
