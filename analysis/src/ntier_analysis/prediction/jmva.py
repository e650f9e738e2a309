"""The closed network as a file for JMVA (Java Modelling Tools), for what the exact single class cannot tell: several
classes, other algorithms. Element names as in JMT's JMTmodel.xsd."""

from __future__ import annotations

import math
from collections.abc import Sequence
from xml.etree import ElementTree as Xml

from ntier_analysis.statistics.mva import Station

USERS = "users"


def jmva(stations: Sequence[Station], think_s: float, users: int) -> str:
    """XML text. Separate queues become stations of their own; several servers become a load-dependent station, whose
    service times are written for 1 .. `users` requests."""
    queues = [(f"{s.name}{i + 1}" if s.queues > 1 else s.name, s) for s in stations for i in range(s.queues)]
    model = Xml.Element("model", {"xmlns:xsi": "http://www.w3.org/2001/XMLSchema-instance",
                                  "xsi:noNamespaceSchemaLocation": "JMTmodel.xsd"})  # fmt: skip
    parameters = Xml.SubElement(model, "parameters")
    classes = Xml.SubElement(parameters, "classes", number="1")
    Xml.SubElement(classes, "closedclass", name=USERS, population=str(users), priority="0")
    listed = Xml.SubElement(parameters, "stations", number=str(len(queues) + 1))
    _station(listed, "delaystation", "think", [think_s])
    for name, station in queues:
        if station.servers == 1:
            _station(listed, "listation", name, [station.per_queue_s])
        else:
            times = [station.per_queue_s / min(j, station.servers) for j in range(1, users + 1)]
            _station(listed, "ldstation", name, times)
    reference = Xml.SubElement(parameters, "ReferenceStation", number="1")
    Xml.SubElement(reference, "Class", name=USERS, refStation="think")
    Xml.SubElement(Xml.SubElement(model, "algParams"), "algType", name="MVA", tolerance="1.0E-7")
    Xml.indent(model)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Xml.tostring(model, encoding="unicode") + "\n"


def _station(parent: Xml.Element, kind: str, name: str, times: list[float]) -> None:
    """kind: delaystation, listation (one server) or ldstation (load-dependent)."""
    if not all(math.isfinite(t) and t >= 0 for t in times):
        raise ValueError(f"station {name}: service times must be numbers >= 0")
    attributes = {"name": name} if kind == "delaystation" else {"name": name, "servers": "1"}
    station = Xml.SubElement(parent, kind, attributes)
    service = Xml.SubElement(station, "servicetimes")
    element = "servicetimes" if kind == "ldstation" else "servicetime"
    Xml.SubElement(service, element, customerclass=USERS).text = ";".join(f"{t:.9g}" for t in times)
    Xml.SubElement(Xml.SubElement(station, "visits"), "visit", customerclass=USERS).text = "1"
