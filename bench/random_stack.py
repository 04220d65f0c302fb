"""From a seed to a stack, its load, one fault or none, and the truth about it: the generator of `random_faults.py`.

A stack depends on its seed, the kind of its fault and its edge alone. The capacity follows from what was drawn: a load beyond it asks
for half as much again, one below it for three to five tenths.
"""

import json
import random
import shlex
from dataclasses import dataclass, field, replace
from typing import Any, Callable

import random_apps
from stacks import KEEP, conf

# The word for a limit that the edge's own configuration sets on purpose.
POLICY = "POLICY"
# What is said of a stack that is at no end.
HEALTHY = "NOT SATURATED"
# What is honest where no rule fits.
UNATTRIBUTED = "UNATTRIBUTED"
# Answers a second of a stack that is at its end, least and most: two CPUs are enough for the rest of it.
CAPACITY = (50, 220)
# Requests a second that no part of a stack has trouble with.
EASY = (30, 90)


@dataclass(frozen=True)
class Truth:
    """What may be said. `rules` are right of a fault that a rule was written for; of one without (`has_rule` is false) they are the
    right place, and may be suspected but not proved."""

    has_rule: bool = True
    rules: frozenset[str] = frozenset()
    is_healthy: bool = False
    # Costs something, and limits nothing: to be noticed beside "not saturated".
    is_waste: bool = False
    is_policy: bool = False
    # Rules that may not be said of a sound stack, not even beside "not saturated".
    unsaid: frozenset[str] = frozenset()


@dataclass
class Draft:
    """A stack as it is put together."""

    rng: random.Random
    edge: str
    program: str = "node"
    servers: int = 1
    # The servers are processes of their own; else one process listens on all ports.
    is_spread: bool = False
    stages: list[list[Any]] = field(default_factory=list)
    # Instead of an application of stages: program, source, words.
    origin: tuple[str, str, str] | None = None
    app: dict[str, Any] = field(default_factory=dict)
    size: int = 1024
    is_tls: bool = False
    certificate: str = "ec"
    main: str = ""
    events: str = "worker_connections 1024;"
    http: str = ""
    upstream: str = ""
    server: str = ""
    backlog: str = ""
    location: str = ""
    keep: str = KEEP
    keepalive: int = 64
    proxy: str = "http://app"
    # Instead of `proxy_pass`: the statements that ask the application.
    passing: str = ""
    extra_locations: str = ""
    next_to: str = ""
    path: str = "/"
    hosts: dict[str, dict[str, Any]] = field(default_factory=dict)
    processes: list[dict[str, Any]] = field(default_factory=list)
    actions: list[dict[str, Any]] = field(default_factory=list)
    names: list[list[str]] = field(default_factory=list)
    flags: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    warmup: str = "500ms"
    # How long a block measures at least: what comes every few seconds has to come three times.
    block: str = ""
    # Answers a second; none where it depends on the machine, and only a closed loop is sure to reach it.
    capacity: float | None = None
    # Requests inside at that.
    inside: float = 1.0
    load: list[str] = field(default_factory=list)
    script: str = ""
    truth: Truth = Truth()
    notes: list[str] = field(default_factory=list)

    def one(self, *choices: Any) -> Any:
        return self.rng.choice(choices)

    def between(self, low: float, high: float) -> float:
        return round(self.rng.uniform(low, high), 1)

    def draw_capacity(self) -> float:
        """A capacity between the ends, as often of one size as of another."""
        low, high = CAPACITY
        return low * (high / low) ** self.rng.random()

    def local(self) -> int:
        """How many processes have a pool, a lock or a CPU of their own."""
        return self.servers if self.is_spread else 1

    def rules(self, *rules: str, **more: bool) -> None:
        self.truth = Truth(rules=frozenset(rules), **more)

    def unnamed(self, *place: str) -> None:
        """No rule was written for it. Of several servers that share what limits them, that they share it is true."""
        shared = ("B26",) if self.servers > 1 and self.local() == 1 else ()
        self.truth = Truth(has_rule=False, rules=frozenset(place + shared))

    def host(self, name: str, **members: Any) -> None:
        self.hosts.setdefault(name, {}).update(members)

    def origin_limit(self, **members: Any) -> None:
        """The application's host has limits, and the application is under them."""
        self.host("origin", **members)
        self.processes.append({"name": "origin0", "is_unlimited": False})

    def over(self, forms: str = "closed rate script") -> None:
        """A load that is more than the capacity."""
        allowed = forms.split()
        if self.capacity is None or self.capacity > 120:
            allowed = [form for form in allowed if form != "script"]
        if self.capacity is None:
            allowed = ["closed"]
        form = self.one(*allowed)
        asked = round((self.capacity or 0) * self.between(1.5, 1.9), 1)
        if form == "closed":
            self.load = ["-c", str(max(8, round(4 * self.inside)))]
        elif form == "rate":
            self.load = ["-R", str(asked), "-c", str(max(16, round(4 * self.inside)))]
        else:
            self.scripted(asked)
        self.notes.append(f"load {form}")

    def under(self) -> None:
        """A load that is less than anything can be short of."""
        asked = self.between(*EASY) if self.capacity is None else round(self.capacity * self.between(0.3, 0.5), 1)
        form = self.one("rate", "rate", "script") if asked < 80 else "rate"
        if form == "rate":
            self.load = ["-R", str(asked), "-c", str(self.one(16, 32))]
        else:
            self.scripted(asked)
        self.notes.append(f"load {form}")

    def scripted(self, rate: float, request: str = "get: {url: @PATH@}") -> None:
        self.script = (f"config:\n  target: http://127.0.0.1:1\n  phases: [{{duration: @SECONDS@, arrivalRate: {max(1, round(rate))}}}]\n"
                       f"scenarios:\n  - flow: [{{{request.replace('@PATH@', self.path)}}}]\n")
        self.load = ["--load", "@SCRIPT@"]


@dataclass(frozen=True)
class Stack:
    """A stack as it is run."""

    seed: int
    kind: str
    edge: str
    text: str
    load: list[str]
    extra: dict[str, Any]
    truth: Truth
    capacity: float | None
    notes: str


@dataclass(frozen=True)
class Kind:
    """A kind of fault: its name, which edges can have it (n, w), and how a draft gets it."""

    name: str
    edges: str
    make: Callable[[Draft], None]
    # How often it comes beside the others.
    weight: int = 1
    # A program that has to be installed.
    needs: str = ""


def base(rng: random.Random, edge: str) -> Draft:
    """What a stack is before it has a fault."""
    draft = Draft(rng, edge)
    draft.program = draft.one("node", "python3")
    draft.servers = draft.one(1, 1, 2, 3)
    draft.is_spread = draft.servers > 1 and draft.one(True, False)
    draft.main = f"worker_processes {draft.one(1, 1, 2)};"
    draft.events = f"worker_connections {draft.one(1024, 2048)};"
    draft.is_tls = rng.random() < 0.25
    draft.size = draft.one(200, 1024, 4096)
    draft.stages = [["sleep", draft.between(1, 12)]] if draft.one(True, True, False) else []
    if edge == "nginx" and rng.random() < 0.15:
        draft.keepalive = 0
        draft.notes.append("no pool")
    loose(draft)
    return draft


def loose(draft: Draft) -> None:
    """Limits with room enough, and directives that do nothing here: nobody may say that it is them."""
    for name, put in LOOSE.items():
        if draft.rng.random() < 0.15:
            put(draft)
            draft.notes.append(f"loose {name}")


def _loose_req(draft: Draft) -> None:
    draft.http += " limit_req_zone $binary_remote_addr zone=loose:1m rate=900000r/s;"
    draft.server += " limit_req zone=loose burst=20000 nodelay;"


def _loose_conn(draft: Draft) -> None:
    draft.http += " limit_conn_zone $binary_remote_addr zone=loose_conn:1m;"
    draft.server += " limit_conn loose_conn 2000;"


def _elsewhere(draft: Draft) -> None:
    draft.http += " limit_req_zone $binary_remote_addr zone=admin:1m rate=1r/s;"
    draft.extra_locations += " location /admin { limit_req zone=admin; proxy_pass http://app; }"


def _cache_elsewhere(draft: Draft) -> None:
    draft.http += " proxy_cache_path /tmp/weir-faults-other keys_zone=other:1m;"
    draft.extra_locations += " location /static { proxy_cache other; proxy_cache_valid 200 1m; proxy_pass http://app; }"


LOOSE: dict[str, Callable[[Draft], None]] = {
    "limit_req": _loose_req,
    "limit_conn": _loose_conn,
    "limit elsewhere": _elsewhere,
    "cache elsewhere": _cache_elsewhere,
    "timeouts": lambda draft: setattr(draft, "server", draft.server + " proxy_read_timeout 30s; proxy_connect_timeout 5s;"),
    "link": lambda draft: draft.host("client", rate_kbit=400_000),
    "files": lambda draft: setattr(draft, "main", draft.main + " worker_rlimit_nofile 8192;"),
    "batch": lambda draft: draft.processes.append({"name": "batch", "host": "edge", "argv": ["sh", "-c", "while :; do sleep 0.05; done"]}),
}


def compose(seed: int, kind: Kind, edge: str) -> Stack:
    """The stack of a seed."""
    draft = base(random.Random(f"{seed} {kind.name} {edge}"), edge)
    kind.make(draft)
    if draft.truth.is_waste and "no pool" in draft.notes:
        # It was drawn beside the other, and is as true.
        draft.truth = replace(draft.truth, rules=draft.truth.rules | {"B03"})
    ports = [3000 + number for number in range(draft.servers)]
    keepalive = f" keepalive {draft.keepalive};" if draft.keepalive else ""
    upstream = draft.upstream or "".join(f" server app:{port}{draft.next_to};" for port in ports) + keepalive
    tls = " ssl_certificate @DIR@/cert.pem; ssl_certificate_key @DIR@/key.pem;" if draft.is_tls else ""
    location = f"{draft.location} {draft.passing or f'proxy_pass {draft.proxy}; {draft.keep}'}"
    text = conf(location, upstream.strip(), draft.main, draft.events, draft.http, f"{'8443 ssl' if draft.is_tls else '8080'}{draft.backlog}")
    text = text.replace("location / {", f"{draft.server}{tls}{draft.extra_locations}\n    location / {{", 1)
    extra: dict[str, Any] = {"flags": [*draft.flags, "--warmup", draft.warmup], "files": draft.files}
    if draft.is_tls or draft.app.get("tls"):
        extra["certificate"] = draft.certificate
    if draft.block:
        extra["block"] = draft.block
    if draft.script:
        extra["script"] = draft.script
    inject = {"hosts": [{"name": name, **members} for name, members in draft.hosts.items()], "processes": draft.processes,
              "actions": draft.actions, "names": draft.names}
    extra["inject"] = {name: members for name, members in inject.items() if members}
    if draft.origin:
        extra["origin"] = draft.origin
    elif draft.program != "weir":
        groups = [[port] for port in ports] if draft.is_spread else [ports]
        it = {"ports": groups, "size": draft.size, "stages": draft.stages, **draft.app}
        source = random_apps.PYTHON if draft.program.startswith("python") else random_apps.NODE
        extra["origin"] = (draft.program, source, shlex.quote(json.dumps(it)))
    program = draft.origin[0] if draft.origin else draft.program.split()[0]
    shape = f"{program}, {draft.servers} server{'s' * (draft.servers > 1)}{' apart' * draft.is_spread}{', tls' * draft.is_tls}"
    load = [*draft.load, *([] if draft.script else [draft.path])]
    notes = ", ".join([shape, *draft.notes])
    return Stack(seed, kind.name, edge, text, load, extra, draft.truth, draft.capacity, notes)


