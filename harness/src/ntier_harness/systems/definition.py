"""`systems/<name>/system.yaml` as values: all that the harness knows of a system under test.

Each field's docstring is its description in the published schema (`systems/system.schema.json`). Paths are relative to
the folder of the system."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ntier_analysis.contracts.system import LoadModel, Replicas
from pydantic import BaseModel, ConfigDict, Field, model_validator

Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""A name in requests, Ansible's variables and paths: small letters, digits and _."""
Label = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
"""A system's name: small letters, digits and -."""
WorkloadName = Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,39}$")]
Text = Annotated[str, Field(min_length=1, max_length=400)]
Positive = Annotated[float, Field(gt=0)]
Port = Annotated[int, Field(ge=1, le=65535)]
Number = int | float
MAX_PHASE_S = 86_400
WARM_UP_S = 30.0
MIN_RUN_S = 5.0  # below this no check of the run phase can be decided


class Part(BaseModel):
    """No key but those that are named here, and numbers are finite."""

    model_config = ConfigDict(
        extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True, coerce_numbers_to_str=False
    )


# ---- tiers and what is chosen of them --------------------------------------------------------------------------------


class Tier(Part):
    """Nodes that do the same."""

    name: Word
    """Names its nodes (`app1`, `app2`), its Ansible group and Terraform's nodes; `client` is taken."""
    title: Text
    counts: tuple[Annotated[int, Field(ge=1, le=99)], Annotated[int, Field(ge=1, le=99)]] = (1, 99)
    """Fewest and most nodes."""
    node_type: Word = "normal"
    """Of terraform/modules/topology/node_types.json."""
    roles: list[Word] = Field(default_factory=list)
    """Ansible roles, in order, of `roles/` beside this file or of `ansible/roles`. The last one names the node's part.
    Empty: a variant of this tier says."""
    ports: list[Port] = Field(default_factory=list)
    """Ports that its services listen on; a machine where somebody else does is refused (with deploy: none: where nobody
    does). The tiers that ask it reach
    them, unless a choice of a variant says fewer. Clients reach the entry of the load and what `verify` requests."""
    services: list[Text] = Field(default_factory=list)
    """Names of its server processes; a machine where they run already is refused. With deploy: none they must run."""
    units: list[Text] = Field(default_factory=list)
    """deploy: none: systemd units of its services. They must be active before each trial, and a trial in which one is
    restarted does not count."""
    holds: list[Text] = Field(default_factory=list)
    """Files that show that a machine holds data of this tier already, which are somebody else's."""
    talks_to: list[Word] = Field(default_factory=list)
    """Tiers that it asks: further inwards. They are started before it."""
    replicas: Replicas = Replicas.BALANCED
    jvm: bool = False
    """Whether its servers may be Java virtual machines: the warm-up waits until their compilers are idle."""
    memory_floor_bytes: Annotated[int, Field(ge=0)] = 0
    """Least memory of a node at any scale."""
    resident_bytes: Annotated[int, Field(ge=0)] = 0
    """Memory that a node takes of the machine that carries it, about."""
    image: Text | None = None
    """Image of its nodes on target local. Default: the image of set-up with the role's name, else a bare one."""


class Program(Part):
    """A program that no package source of the nodes has."""

    environment: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    """Variable of the environment that names its file."""
    get: Text
    """Where it is to be had, and what to do with it."""


class Choice(Part):
    """One of the things that a variant may be."""

    title: Text | None = None
    letter: Annotated[str, Field(pattern=r"^[A-Z]$")] | None = None
    """Chooses it in TOPO: 1/2/1M."""
    roles: list[Word] = Field(default_factory=list)
    """Ansible roles of the variant's tier."""
    ports: dict[Word, list[Port]] = Field(default_factory=dict)
    """Tier -> those of its ports that the tiers which ask it reach with this choice; all of a tier not named here."""
    available: bool = True
    """Whether it can be deployed yet; else the notation knows it and a request for it is refused."""
    program: Program | None = None
    """What `ntier doctor` says of a program that must be brought."""
    with_: dict[Word, list[Word]] = Field(default_factory=dict, alias="with")
    """Other variant -> its choices that this one works with; those of variants that are not named all do."""
    settings: dict[Word, list[str]] = Field(default_factory=dict)
    """Setting -> the values that are allowed with this choice, the default first."""
    hints: dict[Word, dict[str, Text]] = Field(default_factory=dict)
    """Setting -> value that is not allowed -> what to take instead."""
    variables: dict[Word, str | int | float | bool] = Field(default_factory=dict)
    """What follows from the choice: given to the roles and recorded with each trial; nobody can set it."""
    traits: dict[Word, str | int | float | bool] = Field(default_factory=dict)
    """What the system's own rules (`rules.py`) need to know of it."""


class Variant(Part):
    """One part of the system that can be one of several programs."""

    title: Text
    tier: Word
    """Whose roles it decides."""
    default: Word | None = None
    """None: the letter in TOPO is required."""
    keyed: bool = False
    """Whether the choice is a part of each sweep's key."""
    choices: dict[Word, Choice]


class Letter(Part):
    """A last letter of TOPO that changes the node type of one tier."""

    tier: Word
    node_type: Word


class Notation(Part):
    """How TOPO maps to tiers and variants: numbers with slashes, then letters."""

    forms: list[list[Word]]
    """The tiers that the numbers count, one list for each number of numbers: [[web, db], [web, cache, db]]."""
    node_types: dict[Annotated[str, Field(pattern=r"^[A-Z]$")], Letter] = Field(default_factory=dict)
    """Optional letters after those of the variants."""
    example: Text


# ---- settings --------------------------------------------------------------------------------------------------------


class By(Part):
    """A default that depends on a variant, or on the node type of the setting's tier."""

    by: Word
    """A variant, or `node_type`."""
    values: dict[Word, str | int | float]


class Setting(Part):
    """A soft resource: threads, connections, a policy. Roles get it as a variable of its name, and have no default of
    their own."""

    title: Text
    tier: Word
    """Who owns it."""
    range: tuple[Number, Number] | None = None
    """Smallest and largest value; whole numbers unless one of them has a decimal point."""
    choices: list[str] | None = None
    """Texts that are allowed; those of the chosen variants may be fewer."""
    default: str | int | float | By | None = None
    """None: the first that the chosen variant allows. Numbers: at scale 1."""
    unit: str = ""
    scales: Literal["no", "node", "tier"] = "no"
    """`node`: the default is that of one node and is multiplied by the scale. `tier`: it is that of all nodes of the
    tier together, which share it. Rounded up."""
    least: int = 1
    """Smallest value that scaling may give."""
    only: dict[Word, list[Word]] = Field(default_factory=dict)
    """Variant -> choices with which the setting exists."""
    source: str = ""
    """Where the default comes from."""

    @model_validator(mode="after")
    def _kind(self) -> Setting:
        if (self.range is None) == (self.choices is None):
            raise ValueError("give either range: [smallest, largest] or choices: [...]")
        if self.range is not None and self.range[0] > self.range[1]:
            raise ValueError(f"range: {list(self.range)}: the first number is the smallest")
        return self

    @property
    def whole(self) -> bool:
        return self.range is not None and all(isinstance(n, int) for n in self.range)


# ---- data ------------------------------------------------------------------------------------------------------------


class Data(Part):
    """What the tiers hold before a trial."""

    tier: Word
    """Whose nodes hold it."""
    profiles: dict[Word, Text]
    """Name -> what is in it."""
    default: Word
    seed: int = 1
    in_image: bool = False
    """Whether set-up makes an image of the tier's nodes for each profile: ROLE-PROFILE."""
    restores: bool = False
    """Whether nodes can keep and restore their data (`ntier-restore`), which workloads that write need."""
    generate: list[Text] = Field(default_factory=list)
    """Command, run in the project's folder, that makes the tables in the folder {out}; it may use {profile}, {seed} and
    {now_s}. Empty: roles make them. It writes what it made to data.json there: one object of names and values."""
    told: dict[str, Text] = Field(default_factory=dict)
    """Properties of users who walk a mix that follow from the data: name -> text, with names of data.json in braces and
    {reference_date}, the day of its `reference_time_s` (s since 1970, UTC)."""


# ---- load ------------------------------------------------------------------------------------------------------------


class Driver(Part):
    """The program that makes the load, on the client nodes."""

    kind: Literal["jmeter", "command"]
    plan: Text | None = None
    """jmeter: the plan (.jmx)."""
    own_thread_group: bool = False
    """jmeter: the plan starts and ends its threads itself; else Ntier's users run it."""
    command: list[Text] = Field(default_factory=list)
    """command: program and arguments; it is given the folder with `driver.json` as last argument."""
    files: list[Text] = Field(default_factory=list)
    """Files and folders that are copied to each client beside the program."""
    packages: list[Text] = Field(default_factory=list)
    """Debian packages that it needs on a client. With deploy: none they must be there."""
    properties: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Fixed values that it is given."""

    @model_validator(mode="after")
    def _complete(self) -> Driver:
        if self.kind == "jmeter" and not self.plan:
            raise ValueError("a jmeter driver needs plan: FILE.jmx")
        if self.kind == "command" and not self.command:
            raise ValueError("a command driver needs command: [program, ...]")
        return self


class Entry(Part):
    """Where the load goes."""

    tier: Word
    port: Port
    path: str = ""
    """First part of each path."""


class Factor(Part):
    """The variable that a sweep changes from trial to trial."""

    name: Word
    title: Text
    unit: str = ""
    default: Text
    """Values of a sweep that names none: first:last:step, or a list with commas."""
    range: tuple[Number, Number] = (1, 100_000)
    """Smallest and largest value."""
    scales: bool = False
    """Whether the scale of the model multiplies it."""


class Parameter(Part):
    """A variable that the driver is told, which `--set` gives; a sweep may have it as its factor if it is a number."""

    title: Text
    unit: str = ""
    range: tuple[Number, Number] | None = None
    choices: list[str] | None = None
    default: str | int | float

    @property
    def whole(self) -> bool:
        return self.range is not None and all(isinstance(n, int) for n in self.range)

    @model_validator(mode="after")
    def _kind(self) -> Parameter:
        if (self.range is None) == (self.choices is None):
            raise ValueError("give either range: [smallest, largest] or choices: [...]")
        return self


class Workload(Part):
    """What the users do; for RUBBoS: a mix."""

    title: Text
    think_time_s: Positive | None = None
    slo_ms: Positive | None = None
    """Response-time objective, ms."""
    writes: bool = True
    """Whether it may change the data."""
    properties: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """What the driver is given for this workload."""


class PhaseSeconds(Part):
    ramp_up_s: Annotated[float, Field(ge=0, le=MAX_PHASE_S)]
    run_s: Annotated[float, Field(ge=MIN_RUN_S, le=MAX_PHASE_S)]
    ramp_down_s: Annotated[float, Field(ge=0, le=MAX_PHASE_S)]


class Load(Part):
    """Who drives the system, and how work arrives."""

    driver: Driver
    model: LoadModel
    entry: Entry
    think_time_s: Positive = 7.0
    """Mean of closed users, s, where a workload says nothing else."""
    slo_ms: Positive | None = None
    """Response-time objective, ms, where a workload says nothing else."""
    factor: Factor
    """That of a sweep which names none: `users`, or one of the parameters."""
    workers: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Users, or workers of the driver, where another variable is the factor and the request does not say."""
    parameters: dict[Word, Parameter] = Field(default_factory=dict)
    workloads: dict[WorkloadName, Workload] = Field(default_factory=dict)
    mixes: Text | None = None
    """Folder with a transition table (NAME.csv) and its description (NAME.yaml) for each workload, instead of
    `workloads`."""
    default_workload: WorkloadName
    phases: dict[Word, PhaseSeconds] = Field(default_factory=dict)
    phases_file: Text | None = None
    """YAML file with `phases` and `default_phases`, instead of both."""
    default_phases: Word | None = None
    warm_up_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    """Seconds of a round of load, as much as the nodes can take, before the first trial; 0: none. Default: 30, with
    deploy: none 0."""


# ---- everything ------------------------------------------------------------------------------------------------------


class Interaction(Part):
    writes: bool = False
    slo_ms: Positive | None = None
    """Response-time objective, ms; default: that of the load."""


class Resource(Part):
    """What is measured besides CPU, disk, network and memory."""

    tier: Word
    utilization: Text
    """One sentence: what its utilization of 100 % means."""


class Checks(Part):
    @model_validator(mode="before")
    @classmethod
    def _off(cls, given: Any) -> Any:
        """YAML 1.1 takes the key `off` without quotes for false."""
        return {"off" if key is False else key: value for key, value in given.items()} if type(given) is dict else given

    off: dict[Annotated[str, Field(pattern=r"^[A-Z]\d{1,2}(\.[a-z0-9]{1,20})?$")], Text] = Field(default_factory=dict)
    """Validity check (`E2`, `G3.gc`) that does not apply -> why; every report shows both."""


class Request(Part):
    """One request of a client to each node of a tier, and its answer."""

    name: Text
    tier: Word
    port: Port
    path: Annotated[str, Field(pattern=r"^/")]
    status: Annotated[int, Field(ge=100, le=599)] = 200
    contains: str = ""
    """Regular expression that the answer holds."""


class Verify(Part):
    requests: list[Request] = Field(default_factory=list)
    playbook: Text | None = None
    """Ansible playbook for what requests cannot say."""


class Reset(Part):
    """Brings the nodes of a tier into their stated condition before each trial, beside what its roles installed."""

    tier: Word
    command: Text


class Definition(Part):
    """One system under test."""

    name: Label
    """That of its folder."""
    title: Text
    source: Text
    """Paper or URL."""
    license: Text
    """Licence of what it deploys."""
    deploy: Literal["roles", "none"] = "roles"
    """`none`: machines and services exist (target hosts); Ntier drives and measures them, and installs nothing but what
    measures, which it removes again."""
    tiers: Annotated[list[Tier], Field(min_length=1)]
    """In order from the users inwards: a bottleneck is attributed to the deepest tier that has it."""
    variants: dict[Word, Variant] = Field(default_factory=dict)
    notation: Notation
    settings: dict[Word, Setting] = Field(default_factory=dict)
    data: Data | None = None
    load: Load
    interactions: dict[Text, Interaction] = Field(default_factory=dict)
    """Empty: those that the driver reports are taken as they come."""
    resources: dict[Word, Resource] = Field(default_factory=dict)
    checks: Checks = Checks()
    verify: Verify = Verify()
    reset: list[Reset] = Field(default_factory=list)
    rules: Text | None = None
    """Python file with what data cannot say: settings that follow from others, requests that cannot work
    (`ntier_harness.systems.rules`)."""

    def tier(self, name: str) -> Tier:
        return next(t for t in self.tiers if t.name == name)

    @property
    def deploys(self) -> bool:
        return self.deploy == "roles"

    @property
    def warm_up_s(self) -> float:
        if self.load.warm_up_s is None:
            return WARM_UP_S if self.deploys else 0.0
        return self.load.warm_up_s

    @property
    def tier_names(self) -> tuple[str, ...]:
        return tuple(t.name for t in self.tiers)


def schema() -> dict[str, Any]:
    """The JSON Schema of `system.yaml`, for editors."""
    found = Definition.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **found, "title": "A system under test"}
