"""Machines that are rented are not forgotten where the credentials are those of another account."""

from __future__ import annotations

import os

import pytest
from ntier_harness.errors import RequestError
from ntier_harness.paths import Paths
from ntier_harness.targets.account import Thing
from ntier_harness.targets.clearing import Clearing
from ntier_harness.targets.rental import Ledger, MachineType

MACHINE = MachineType(type="small", cores=1, memory_bytes=2**30, price_per_hour=0.1)


class Provider(Clearing):
    """Two accounts: each token is let into one of them."""

    name, owner, named_by = "provider", "us-1234", ("PROVIDER_TOKEN",)

    def __init__(self, paths, accounts):
        self.paths, self.accounts = paths, accounts
        self.ledger = Ledger(paths.place / "rented.json", "EUR")

    @property
    def account(self):
        return self

    def find(self, _owner=None):
        return self.accounts[os.environ["PROVIDER_TOKEN"]]


@pytest.fixture
def provider(tmp_path, monkeypatch):
    paths = Paths(tmp_path, tmp_path / "state", tmp_path / "results", "hcloud")
    paths.place.mkdir(parents=True)
    there = [Thing("machine", "1", "web1")]
    monkeypatch.setenv("PROVIDER_TOKEN", "first")
    made = Provider(paths, {"first": there, "second of the same account": there, "of another account": []})
    made.note_account()
    made.ledger.rent({"web1": MACHINE}, "a sweep", 1.0)
    return made


def test_the_account_that_rented_may_give_back(provider):
    provider.check_account()
    provider.accounts["first"] = []  # removed by hand
    provider.check_account()


def test_another_account_may_not(provider, monkeypatch):
    monkeypatch.setenv("PROVIDER_TOKEN", "of another account")
    with pytest.raises(RequestError, match=r"web1 are rented by other credentials \(PROVIDER_TOKEN\)"):
        provider.check_account()
    assert "first" not in provider._account_file.read_text()
    provider._account_file.unlink()
    provider.check_account()


def test_another_token_of_the_same_account_may(provider, monkeypatch):
    monkeypatch.setenv("PROVIDER_TOKEN", "second of the same account")
    provider.check_account()
    provider.accounts["second of the same account"] = []
    provider.check_account()


def test_where_nothing_is_rented_any_account_may(provider, monkeypatch):
    provider.ledger.give_back(2.0)
    monkeypatch.setenv("PROVIDER_TOKEN", "of another account")
    provider.check_account()
