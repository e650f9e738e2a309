"""The target `openstack`: machines of an OpenStack cloud (docs/targets.md)."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path

from ntier_harness.targets import openstack_account
from ntier_harness.targets.openstack_account import OpenstackAccount
from ntier_harness.targets.rented import Rented


class Openstack(Rented):
    name = "openstack"
    named_by = ("OS_CLOUD", "OS_AUTH_URL", "OS_PROJECT_ID", "OS_PROJECT_NAME", "OS_APPLICATION_CREDENTIAL_ID")
    machine_address = 'openstack_compute_instance_v2.node["{name}"]'
    permanent = re.compile(r"[Qq]uota|got 40[013] instead|Unable to find|[Aa]uthenticat|No more IP addresses")
    no_capacity = re.compile(r"[Nn]o valid host|availability zone is not available")

    @functools.cached_property
    def account(self) -> OpenstackAccount:
        return OpenstackAccount(self.runner.sleep)

    @classmethod
    def missing(cls) -> list[str]:
        return openstack_account.missing()

    def require_privileges(self) -> None:
        super().require_privileges()
        for file, variable in (("clouds.yaml", "OS_CLIENT_CONFIG_FILE"), ("secure.yaml", "OS_CLIENT_SECURE_FILE")):
            if Path(file).is_file():  # in the current folder, which is not Terraform's
                os.environ.setdefault(variable, str(Path(file).resolve()))


TARGET = Openstack
