"""The target `hcloud`: machines of Hetzner Cloud (docs/targets.md)."""

from __future__ import annotations

import re

from ntier_harness.targets.hcloud_account import HcloudAccount
from ntier_harness.targets.rented import Rented


class Hcloud(Rented):
    name = "hcloud"
    secrets = ("HCLOUD_TOKEN",)
    named_by = secrets
    keeps_snapshots = True
    options = ("network", "poll_interval")
    machine_address = 'hcloud_server.node["{name}"]'
    permanent = re.compile(
        r"\((resource_limit_exceeded|forbidden|unauthorized|token_readonly|invalid_input|invalid_server_type)\b"
        r"|not found|entered token is invalid"
    )
    no_capacity = re.compile(r"\((resource_unavailable|placement_error)\b|unsupported location")

    @property
    def account(self) -> HcloudAccount:
        return HcloudAccount(self.runner.sleep)


TARGET = Hcloud
