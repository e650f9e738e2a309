"""`systems/<name>/system.yaml` as values: all that the harness knows of a system under test.

Each field's docstring is its description in the published schema (`systems/system.schema.json`). Paths are relative to
the folder of the system."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from ntier_analysis.contracts.system import NOT_TIERS, LoadModel, OwnCheck, Replicas
from pydantic import BaseModel, ConfigDict, Field, model_validator

Word = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
"""A name in requests, Ansible's variables and paths: small letters, digits and _."""
Label = Annotated[str, Field(pattern=r"^[a-z][a-z0-9-]{0,39}$")]
"""A system's name: small letters, digits and -."""
WORKLOAD_NAME = r"^[a-z0-9][a-z0-9_-]{0,39}$"
WorkloadName = Annotated[str, Field(pattern=WORKLOAD_NAME)]
Text = Annotated[str, Field(min_length=1, max_length=400)]
Positive = Annotated[float, Field(gt=0)]
Port = Annotated[int, Field(ge=1, le=65535)]
URL_PATH = r"/[A-Za-z0-9._~:/?@!$&'()*+,;=%\[\]-]*"
"""What a request line takes as it is (RFC 3986): no blank, no other letter, no part after #."""
Number = int | float
GENERATE_NAMES = ("profile", "seed", "now_s", "out")
"""What the command that makes the data may use, in braces."""
MAX_PHASE_S = 86_400
WARM_UP_S = 30.0
UNCOUNTED = tuple(name for name in NOT_TIERS if name not in ("client", "host"))
"""Names of tiers that TOPO does not count."""
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
    """Names its nodes (`app1`, `app2`), its Ansible group and Terraform's nodes; `client` is taken. Without _, unless
    with deploy: none, since machines are made by this name."""
    title: Text
    counts: tuple[Annotated[int, Field(ge=1, le=99)], Annotated[int, Field(ge=1, le=99)]] = (1, 99)
    """Fewest and most nodes."""
    node_type: Word = "normal"
    """One of terraform/modules/topology/node_types.json."""
    roles: list[Word] = Field(default_factory=list)
    """Ansible roles in their order. Each is in `roles/` beside this file or in `ansible/roles`. The last one names what
    the node does. Empty: a variant of this tier names the roles."""
    ports: list[Port] = Field(default_factory=list)
    """Ports that its services listen on. A machine on which another program listens there is refused; with deploy:
    none, a machine on which no program listens there. Tiers that talk to this one reach all of these ports, unless the
    choice of a variant names fewer. Clients reach the entry of the load and the ports that `verify` requests."""
    services: list[Text] = Field(default_factory=list)
    """Names of its server processes; a machine where they run already is refused. With deploy: none they must run."""
    units: list[Text] = Field(default_factory=list)
    """With deploy: none, systemd units of its services. They must be active before each trial. A trial in which one is
    restarted does not count."""
    holds: list[Text] = Field(default_factory=list)
    """Files which show that a machine already holds somebody else's data of this kind."""
    talks_to: list[Word] = Field(default_factory=list)
    """Tiers further inwards that it sends requests to. They are started before it. Its own name: its nodes talk to each
    other."""
    replicas: Replicas = Replicas.BALANCED
    jvm: bool = False
    """Whether its servers may be Java virtual machines: the warm-up waits until their compilers are idle."""
    memory_floor_bytes: Annotated[int, Field(ge=0)] = 0
    """Least memory of a node at any scale."""
    resident_bytes: Annotated[int, Field(ge=0)] = 0
    """Memory that a node takes, about, of the machine that carries it."""
    image: Text | None = None
    """Image of its nodes on target local: one that set-up makes (setup/images). Default: that with the role's name, or
    a bare one if there is none."""
    only: dict[Word, list[Word]] = Field(default_factory=dict)
    """Variant with letters -> its choices with which the tier exists. TOPO does not count such a tier: it has as many
    nodes as `counts` says at least. It serves no requests, so verdicts leave it out; its name is controller, monitor or
    management. It may be asked by any tier (`tiers` of the choice)."""


class TierChange(Part):
    """What is different of a tier with one choice of a variant; what is not named here stays."""

    title: Text | None = None
    ports: list[Port] | None = None
    services: list[Text] | None = None
    holds: list[Text] | None = None
    talks_to: list[Word] | None = None
    """Here in any order: nodes of a cluster ask each other."""
    replicas: Replicas | None = None
    jvm: bool | None = None
    memory_floor_bytes: Annotated[int, Field(ge=0)] | None = None
    resident_bytes: Annotated[int, Field(ge=0)] | None = None


class DataChange(Part):
    """What is different of the data with one choice of a variant."""

    in_image: bool = True
    """If false, no image holds the data, although `data: in_image` says so: the roles load them at deployment
    (`data: generate`)."""
    shown_by: Word | None = None
    """Tier whose nodes show what the data are (`ntier-data`), if those that hold them cannot. When data are kept or put
    back, its nodes take part: they are stopped first (`ntier-restore`) and started last (`ntier-restore resume`)."""


class Program(Part):
    """A program that no package source of the nodes has."""

    environment: Annotated[str, Field(pattern=r"^[A-Z][A-Z0-9_]*$")]
    """Environment variable that holds the path of its file."""
    get: Text
    """Where to get it, and what to do with it."""
    made: Text | None = None
    """File in the machine-wide state that is there once set-up has made the program. Without it requests are
    refused."""


class Choice(Part):
    """One of the things that a variant may be."""

    title: Text | None = None
    letter: Annotated[str, Field(pattern=r"^[A-Z]$")] | None = None
    """The letter in TOPO that selects it: 1/2/1M."""
    roles: list[Word] = Field(default_factory=list)
    """Ansible roles of the variant's tier."""
    ports: dict[Word, list[Port]] = Field(default_factory=dict)
    """Tier -> its ports that other tiers reach with this choice. Of a tier that is not named here they reach all."""
    available: bool = True
    """Whether it can be deployed yet. If not, the notation knows it, and requests for it are refused."""
    untried: Text | None = None
    """Why its results are not to be relied on yet; every plan and sweep says so."""
    tiers: dict[Word, TierChange] = Field(default_factory=dict)
    """Tier -> what is different of it with this choice."""
    data: DataChange | None = None
    """What is different of the data with this choice."""
    program: Program | None = None
    """A program that the user must provide; `ntier doctor` says so."""
    with_: dict[Word, list[Word]] = Field(default_factory=dict, alias="with")
    """Other variant -> its choices that this one works with. It works with all choices of a variant that is not
    named."""
    settings: dict[Word, list[str]] = Field(default_factory=dict)
    """Setting -> the values that are allowed with this choice, the default first."""
    hints: dict[Word, dict[str, Text]] = Field(default_factory=dict)
    """Setting -> value that is not allowed -> advice what to use instead."""
    variables: dict[Word, str | int | float | bool] = Field(default_factory=dict)
    """Values that follow from the choice. Roles get them, and each trial records them; nobody can set them."""
    traits: dict[Word, str | int | float | bool] = Field(default_factory=dict)
    """What the system's own rules (`rules.py`) need to know of it."""


class Variant(Part):
    """One part of the system that can be one of several programs."""

    title: Text
    tier: Word
    """The tier whose roles it decides."""
    default: Word | None = None
    """Without a default, TOPO must have the letter. A default that does not work with the letters of TOPO gives way to
    the first choice that does."""
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
    """The tier that it belongs to."""
    range: tuple[Number, Number] | None = None
    """Smallest and largest value; whole numbers unless one of them has a decimal point."""
    choices: list[str] | None = None
    """Texts that are allowed. A variant's choice may allow fewer."""
    default: str | int | float | By | None = None
    """A number is meant for scale 1. Without a default, the first value that the chosen variant allows is used."""
    unit: str = ""
    scales: Literal["no", "node", "tier"] = "no"
    """`node`: the default is for one node and is multiplied by the scale. `tier`: the default is a total that all nodes
    of the tier share; it is multiplied by the scale and divided among them. Both are rounded up."""
    least: int = 1
    """Smallest value that scaling may give."""
    only: dict[Word, list[Word]] = Field(default_factory=dict)
    """Variant -> its choices with which the setting exists."""
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
    """The tier whose nodes hold it."""
    profiles: dict[Word, Text]
    """Name -> what is in it."""
    default: Word
    seed: int = 1
    in_image: bool = False
    """Whether set-up makes an image of the tier's nodes for each profile: ROLE-PROFILE. It does so for the system that
    setup/images/images.yml names (`data_system`); for others this is refused."""
    restores: bool = False
    """Whether nodes can keep and restore their data (`ntier-restore`), which workloads that write need."""
    generate: list[Text] = Field(default_factory=list)
    """Command that makes the tables in the folder {out}. It is run in the project's folder and may use {profile},
    {seed} and {now_s}; other braces are doubled. It describes what it made in {out}/data.json: one object of names and
    values. Roles load it at deployment, unless an image has it: they find the folder in ntier_data_source, and in
    ntier_data_digest a digest of data.json and of the files that made it. Empty: roles make the data."""
    told: dict[str, Text] = Field(default_factory=dict)
    """Properties that users of a mix get because of the data: name -> text. A text may hold names of data.json in
    braces, and {reference_date}: the day of its `reference_time_s` (s since 1970, UTC)."""


# ---- load ------------------------------------------------------------------------------------------------------------


class Driver(Part):
    """The program that makes the load, on the client nodes."""

    kind: Literal["jmeter", "command"]
    plan: Text | None = None
    """jmeter: the plan (.jmx)."""
    own_thread_group: bool = False
    """jmeter: the plan starts and ends its threads itself. If false, Ntier's users run it."""
    command: list[Text] = Field(default_factory=list)
    """command: program and arguments. The folder with `driver.json` is added as the last argument."""
    files: list[Text] = Field(default_factory=list)
    """Files and folders that are copied to each client beside the program."""
    packages: list[Text] = Field(default_factory=list)
    """Debian packages that it needs on a client. With deploy: none they must be installed already."""
    properties: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Fixed values that it gets."""
    cores: Annotated[float, Field(ge=0, le=1000)] = 1.0
    """CPU cores that all clients together use at scale 1, for the scale `auto`. JMeter: one for 13,000 users."""
    cores_per_node: Annotated[float, Field(ge=0, le=1000)] = 0.0
    """The same for each node of the system, in addition."""
    traces: bool = False
    """Whether interactions can be followed through all tiers (option --trace): the driver sends a W3C trace context,
    and the roles heed `ntier_trace_every`."""
    users_leave: bool = False
    """command: whether the program lets users leave during the ramp-up (`leaving` in driver.json, docs/drivers.md),
    which trials from above need. JMeter always does, unless the plan has its own thread groups."""

    @property
    def lets_users_leave(self) -> bool:
        return self.users_leave if self.kind == "command" else not self.own_thread_group

    @model_validator(mode="after")
    def _complete(self) -> Driver:
        if self.kind == "jmeter" and not self.plan:
            raise ValueError("a jmeter driver needs plan: FILE.jmx")
        if self.kind == "command" and not self.command:
            raise ValueError("a command driver needs command: [program, ...]")
        if self.kind == "jmeter" and self.users_leave:
            raise ValueError("users_leave is for a command; JMeter's users leave unless own_thread_group is true")
        return self


class Entry(Part):
    """Where the load goes."""

    tier: Word
    port: Port
    path: Annotated[str, Field(pattern=f"^({URL_PATH})?$")] = ""
    """First part of each path; it begins with /."""


class Factor(Part):
    """The variable that a sweep changes from trial to trial."""

    name: Word
    title: Text
    unit: str = ""
    default: Text
    """Values if the request names none: first:last:step, or a list with commas."""
    range: tuple[Number, Number] = (1, 100_000)
    """Smallest and largest value."""
    scales: bool = False
    """Whether the users are multiplied by the scale of the model. Only for the factor `users`: a driver gets the values
    of another one as they are."""


class Parameter(Part):
    """A variable of the driver. `--set` gives its value. If it is a number, it can be the factor of a sweep."""

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
    """What the users do."""

    title: Text
    think_time_s: Positive | None = None
    slo_ms: Positive | None = None
    """Response-time objective, ms."""
    writes: bool = True
    """Whether it may change the data."""
    properties: dict[str, str | int | float | bool] = Field(default_factory=dict)
    """Values that the driver gets for this workload."""


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
    """Mean think time of closed users, s; other loads have none. A workload may name another."""
    slo_ms: Positive | None = None
    """Response-time objective, ms. A workload may name another."""
    factor: Factor
    """What a sweep changes from trial to trial if the request names no factor: `users`, or one of the parameters."""
    workers: Annotated[int, Field(ge=1, le=100_000)] = 1
    """Number of users, or workers of the driver, if another variable is the factor and the request names no number."""
    parameters: dict[Word, Parameter] = Field(default_factory=dict)
    workloads: dict[WorkloadName, Workload] = Field(default_factory=dict)
    mixes: Text | None = None
    """Folder with a transition table (NAME.csv) and its description (NAME.yaml) for each workload, instead of
    `workloads`."""
    default_workload: WorkloadName
    phases: dict[Word, PhaseSeconds] = Field(default_factory=dict)
    phases_file: Text | None = None
    """YAML file with `phases` and `default_phases`; then both are left out here."""
    default_phases: Word | None = None
    warm_up_s: Annotated[float, Field(ge=0, le=3600)] | None = None
    """Seconds of one round of warm-up before the first trial, with as much load as the nodes can take. 0: no warm-up.
    Default: 30; with deploy: none 0."""


# ---- everything ------------------------------------------------------------------------------------------------------


class Interaction(Part):
    writes: bool = False
    slo_ms: Positive | None = None
    """Response-time objective, ms. Default: the load's."""


class Checks(Part):
    @model_validator(mode="before")
    @classmethod
    def _off(cls, given: Any) -> Any:
        """YAML 1.1 takes the key `off` without quotes for false."""
        return {"off" if key is False else key: value for key, value in given.items()} if type(given) is dict else given

    off: dict[Annotated[str, Field(pattern=r"^[A-Z]\d{1,2}(\.[a-z0-9]{1,20})?$")], Text] = Field(default_factory=dict)
    """Validity check (`E2`, `G3.gc`) that does not apply -> the reason. Every report shows both."""
    own: dict[Word, OwnCheck] = Field(default_factory=dict)
    """Validity checks of the system's own, by their names: what the counters of its tiers must say in each trial."""


class Request(Part):
    """One request of a client to each node of a tier, and its answer."""

    name: Text
    tier: Word
    port: Port
    path: Annotated[str, Field(pattern=f"^{URL_PATH}$")]
    """Begins with /; blanks and letters other than a-z and A-Z are written as %20 and the like."""
    status: Annotated[int, Field(ge=100, le=599)] = 200
    contains: str = ""
    """Regular expression that must match a part of the answer."""


class Verify(Part):
    requests: list[Request] = Field(default_factory=list)
    playbook: Text | None = None
    """Ansible playbook that checks what requests cannot."""
    writes: bool = False
    """Whether the playbook changes the data. If the system restores them, they are put back afterwards."""


class Reset(Part):
    """Brings the nodes of a tier into their stated condition before each trial, beside what its roles installed.
    Several of one tier are run in their order, until one fails."""

    tier: Word
    command: Text


class Definition(Part):
    """One system under test."""

    name: Label
    """The name of its folder."""
    title: Text
    source: Text
    """Paper or URL."""
    license: Text
    """Licence of what it deploys."""
    deploy: Literal["roles", "none"] = "roles"
    """`none`: machines and services exist already (target hosts). Ntier sends them load and measures them. It installs
    only the programs that measure, and removes them again."""
    tiers: Annotated[list[Tier], Field(min_length=1)]
    """In order from the users inwards: a bottleneck is attributed to the deepest tier that has it."""
    variants: dict[Word, Variant] = Field(default_factory=dict)
    notation: Notation
    settings: dict[Word, Setting] = Field(default_factory=dict)
    data: Data | None = None
    load: Load
    interactions: dict[Text, Interaction] = Field(default_factory=dict)
    """Empty: Ntier takes the names that the driver reports."""
    checks: Checks = Checks()
    verify: Verify = Verify()
    reset: list[Reset] = Field(default_factory=list)
    rules: Text | None = None
    """Python file with rules that data cannot express: settings that follow from others, requests that cannot work
    (`ntier_harness.systems.rules`)."""

    def tier(self, name: str) -> Tier:
        return next(t for t in self.tiers if t.name == name)

    def reset_of(self, tier: str) -> str:
        """Shell script of a tier's `reset`; empty if it has none. Each command is in a shell of its own, so that the
        first one that fails ends the script, whatever it is made of."""
        commands = [f"(\n{r.command}\n)\n" for r in self.reset if r.tier == tier]
        return "".join(["#!/bin/sh\nset -eu\n", *commands]) if commands else ""

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
    document = Definition.model_json_schema(by_alias=True)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **document, "title": "A system under test"}
