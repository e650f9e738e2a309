"""A project of an OpenStack cloud, by the HTTP APIs of its services. openstacksdk reads who we are from the environment
or clouds.yaml, and gets the token.

Labels are the metadata of machines and disks, and words in the description of what belongs to networks: unlike tags, a
description is given in the request that makes a thing. Key pairs and server groups have neither: they are known by
their names, `ntier-OWNER`."""

from __future__ import annotations

import os
import urllib.parse
from collections.abc import Callable
from typing import Any

from ntier_harness.errors import WorkError
from ntier_harness.targets.account import NODE, OWNER, Thing
from ntier_harness.targets.asking import Answer, HttpAccount
from ntier_harness.targets.rental import Offer

PREFIX = "ntier-"
SOMEWHERE = "any"
"""Location of an offer that leaves it to the cloud."""
PLACES = {
    "machine": "compute/servers",
    "address": "network/v2.0/floatingips",
    "disk": "block-storage/volumes",
    "link": "network/v2.0/routers",
    "router": "network/v2.0/routers",
    "port": "network/v2.0/ports",
    "network": "network/v2.0/networks",
    "filter": "network/v2.0/security-groups",
    "group": "compute/os-server-groups",
    "key": "compute/os-keypairs",
}
"""Kind -> service and path, in the order in which they can be deleted. A subnet goes with its network, a rule with its
filter. A link is the port by which a router is in a network: the cloud makes it, without a description."""
LINKS = (
    "network:router_interface",
    "network:router_interface_distributed",
    "network:ha_router_replicated_interface",
)
"""What owns them; the last two in clouds whose routers are spread or doubled."""
STATUS = {"ACTIVE": "running", "SHUTOFF": "off", "BUILD": "starting", "DELETED": "deleting", "SOFT_DELETED": "deleting"}
WHO = ("OS_APPLICATION_CREDENTIAL_ID", "OS_APPLICATION_CREDENTIAL_NAME", "OS_USERNAME", "OS_USER_ID", "OS_TOKEN")

NO_FILE = (
    "OS_CLOUD={} names a cloud of a clouds.yaml, and no clouds.yaml was found, or none that is YAML; it may be here, "
    "in ~/.config/openstack (of the user that runs ntier), in /etc/openstack, or where OS_CLIENT_CONFIG_FILE says"
)


def missing() -> list[str]:
    """What the environment lacks to name a cloud and a person in it."""
    if os.environ.get("OS_CLOUD"):
        return []
    if not os.environ.get("OS_AUTH_URL"):
        return ["OS_CLOUD"]
    return [] if any(os.environ.get(name) for name in WHO) else ["OS_APPLICATION_CREDENTIAL_ID"]


class OpenstackAccount(HttpAccount):
    name = "openstack"
    hint = "are the credentials (OS_CLOUD or OS_...) right, and may they write?"
    kinds = tuple(PLACES)

    def __init__(self, sleep: Callable[[float], None]) -> None:
        super().__init__(sleep)
        self._cloud: Any = None

    # ---- what there is

    def find(self, owner: str | None = None) -> list[Thing]:
        rows = {kind: self._list(kind) for kind in PLACES if kind != "link"}
        things = [_thing(kind, r) for kind, found in rows.items() for r in found]
        routers = {t.id: t for t in things if t.kind == "router" and t.owner}
        things += [
            Thing(
                "link",
                port["id"],
                f"of {routers[port['device_id']]}",
                routers[port["device_id"]].labels,
                port["device_id"],
            )
            for port in rows["port"]
            if port.get("device_owner") in LINKS and port["device_id"] in routers
        ]
        labels = {t.owner: t.labels for t in reversed(things) if OWNER in t.labels and t.kind not in ("group", "key")}
        for i, thing in enumerate(things):
            if thing.kind in ("group", "key") and thing.name.startswith(PREFIX):
                whose = thing.name.removeprefix(PREFIX)  # they expire with the rest of what this owner has
                common = {k: v for k, v in labels.get(whose, {}).items() if k != NODE}
                things[i] = Thing(thing.kind, thing.id, thing.name, common | {OWNER: whose})
        return [t for t in things if (t.owner == owner if owner else t.owner)]

    def delete(self, thing: Thing) -> None:
        if thing.kind == "link":
            path = f"{PLACES['link']}/{thing.detail}/remove_router_interface"
            self.ask("PUT", path, {"port_id": thing.id}, gone_is_fine=True)
            return
        self.ask("DELETE", f"{PLACES[thing.kind]}/{urllib.parse.quote(thing.id)}", gone_is_fine=True)

    def lacks(self, offer: Offer) -> list[str]:
        flavors = {f["name"] for f in self._pages("compute/flavors/detail", "flavors")}
        query = urllib.parse.urlencode({"router:external": "true"})
        outside = {n["name"] for n in self._pages(f"network/v2.0/networks?{query}", "networks")}
        zones = {z["zoneName"] for z in self.ask("GET", "compute/os-availability-zone")["availabilityZoneInfo"]}
        images = self.ask("GET", f"image/v2/images?{urllib.parse.urlencode({'name': offer.image})}")["images"]
        wanted = [
            ("flavor", [t.type for t in offer.node_types.values()], flavors),
            ("availability zone", [z for z in offer.locations if z != SOMEWHERE], zones),
            ("outside network", list(offer.locations.values()), outside),
        ]
        lacking = [
            f"no {what} {name}; there are: {', '.join(sorted(there)) or 'none'}"
            for what, names, there in wanted
            for name in dict.fromkeys(names)
            if name not in there
        ]
        if len(images) != 1:
            known = sorted({i["name"] or i["id"] for i in self._pages("image/v2/images?status=active", "images")})
            several = f"{len(images)} images" if images else "no image"
            lacking.append(f"{several} of the name {offer.image}; there are: {', '.join(known[:20]) or 'none'}")
        return lacking

    def _list(self, kind: str) -> list[dict[str, Any]]:
        service, _, path = PLACES[kind].partition("/")
        if kind == "disk" and not self._has(service):
            return []  # a cloud need not have disks of their own
        collection = path.rpartition("/")[2].removeprefix("os-").replace("-", "_")
        detail = "/detail" if kind in ("machine", "disk") else ""
        return self._pages(PLACES[kind] + detail, collection)

    def _pages(self, path: str, collection: str) -> list[dict[str, Any]]:
        """The whole list. The next page is asked for where the first one was: its address as the cloud gives it may be
        one that only the cloud itself reaches."""
        things: list[dict[str, Any]] = []
        ask = path
        while True:
            answer = self.ask("GET", ask)
            page = [r.get("keypair", r) for r in answer[collection]]
            things += page
            links = answer.get(f"{collection}_links") or []
            if not page or not any(link.get("rel") == "next" for link in links):
                return things
            marker = urllib.parse.urlencode({"limit": len(page), "marker": page[-1]["id"]})
            ask = f"{path}{'&' if '?' in path else '?'}{marker}"

    # ---- how it is asked

    def once(self, method: str, path: str, body: dict[str, Any] | None) -> Answer:
        from keystoneauth1.exceptions import ClientException, Unauthorized

        service, _, rest = path.partition("/")
        try:
            base = self._endpoint(service)
            if base is None:
                return Answer(404, said=f"the cloud's catalogue has no service {service}")
            version, _, after = rest.partition("/")  # some catalogues have it in the address already
            url = f"{base}/{after if base.endswith(f'/{version}') else rest}"
            answer = self._region.get_session().request(url, method, json=body, raise_exc=False, timeout=30)
            if answer.status_code >= 300:
                return Answer(answer.status_code, said=f"{answer.status_code} {_message(answer)}")
            return Answer(answer.status_code, answer.json() if answer.content else {})
        except Unauthorized as error:
            return Answer(401, said=f"401 {error.message}")
        except (ClientException, ValueError) as error:
            return Answer(0, said=str(error) or type(error).__name__)

    def _has(self, service: str) -> bool:
        from keystoneauth1.exceptions import ClientException

        try:
            return self._endpoint(service) is not None
        except ClientException as error:
            raise WorkError(f"{self.name}: {error}") from None

    def _endpoint(self, service: str) -> str | None:
        """Address of a service without a / at its end; None: the cloud does not have it."""
        region = self._region
        given = region.get_endpoint(service) or region.get_session().get_endpoint(
            service_type=region.get_service_type(service),
            interface=region.get_interface(service),
            region_name=region.get_region_name(service),
        )
        return given and given.rstrip("/")

    @property
    def _region(self) -> Any:
        """Raises WorkError if no cloud is named, or one that no clouds.yaml has, or if that is not its form."""
        if self._cloud is None:
            from keystoneauth1.exceptions import ClientException
            from openstack.config import OpenStackConfig
            from openstack.exceptions import ConfigException

            read = None
            try:
                config = OpenStackConfig()
                read = config.config_filename
                self._cloud = config.get_one()
            except (ClientException, ConfigException) as error:
                if (cloud := os.environ.get("OS_CLOUD")) and not read:
                    raise WorkError(f"{self.name}: {NO_FILE.format(cloud)}") from None
                raise WorkError(f"{self.name}: {error}") from None
            except (AttributeError, KeyError, TypeError, ValueError) as error:  # it takes any YAML for its own
                raise WorkError(
                    f"{self.name}: {read or 'clouds.yaml'} has not the form of a clouds.yaml ({error})"
                ) from None
        return self._cloud


def _message(answer: Any) -> str:
    """What a service says; each has its own word around it."""
    try:
        said = next(iter(answer.json().values()))
        kind = f" ({said['type']})" if said.get("type") else ""
        return f"{said['message']}{kind}"
    except (ValueError, KeyError, TypeError, AttributeError, StopIteration):
        return str(answer.reason)


def _labels(r: dict[str, Any]) -> dict[str, str]:
    if r.get("metadata"):
        return {k: v for k, v in r["metadata"].items() if k.startswith(PREFIX)}
    words = (word.partition("=") for word in (r.get("description") or "").split())
    return {key: value for key, equals, value in words if equals and key.startswith(PREFIX)}


def _thing(kind: str, r: dict[str, Any]) -> Thing:
    labels = _labels(r)
    address = r.get("floating_ip_address", "")
    status = r.get("status", "") if kind == "machine" else ""
    leaving = r.get("OS-EXT-STS:task_state") == "deleting"
    return Thing(
        kind,
        str(r["id"] if "id" in r else r["name"]),
        r.get("name") or (f"{PREFIX}{labels.get(OWNER, '')}-{labels[NODE]}" if NODE in labels else address),
        labels,
        address or r.get("OS-EXT-AZ:availability_zone", ""),
        "deleting" if leaving else STATUS.get(status, status.lower()),
        (r.get("fault") or {}).get("message", ""),
    )
