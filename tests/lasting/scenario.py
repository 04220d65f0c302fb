"""The parts of a scenario, and the course of one with one edge."""

import asyncio
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import processes
from edge import Edge, Setting
from load import PATIENCE, Load


# The places of the origin's ports, in the order in which it takes and prints them.
ORIGIN_PORTS = ("origin", "origin_tcp", "origin_grpc")


@dataclass
class Scenario:
    """Something that happens under load.

    `act` makes it happen, `times` times; `ci_times` is the number in `--ci`, 0 if the scenario is not in that choice. `ends` has the
    things that weir may end each time: "exchanges" those under way, "sessions" WebSockets, calls of gRPC and sessions of TCP; all else is a loss.
    `prepare` starts peers before the edge. `needs` says why the scenario cannot run here. `only_weir` says why nginx has no part in it.
    """
    name: str
    says: str
    act: Callable
    times: int = 1
    ci_times: int = 1
    ends: tuple = ()
    setting: Setting = field(default_factory=Setting)
    clients: dict | None = None
    patience: int = PATIENCE
    allows: tuple = ()
    prepare: Callable | None = None
    needs: Callable = lambda: None
    only_weir: str = ""
    only_nginx: str = ""
    is_slow: bool = False


class Stage:
    """A scenario while it runs with one edge."""

    def __init__(self, scenario, edge, seconds, times):
        self.scenario, self.edge, self.seconds, self.times = scenario, edge, seconds, times
        self.load, self.notes, self.peers, self.servers = None, [], {}, []

    async def start(self, name, *words, prints=False):
        """Starts a peer; the words that it prints first, if it prints some."""
        out = asyncio.subprocess.PIPE if prints else asyncio.subprocess.DEVNULL
        # The packages of the test are the peer's, too.
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        peer = await asyncio.create_subprocess_exec(*map(str, words), stdin=asyncio.subprocess.PIPE, stdout=out, cwd=self.edge.room, env=paths)
        self.peers[name] = peer
        return (await asyncio.wait_for(peer.stdout.readline(), 10)).decode().split() if prints else []

    async def start_origin(self):
        """Starts the origin; again at the same ports, if there was one."""
        places = self.edge.places
        again = [places[name] for name in ORIGIN_PORTS if name in places]
        ports = await self.start("origin", sys.executable, Path(__file__).parent / "origin.py", *again, prints=True)
        places.update(zip(ORIGIN_PORTS, ports, strict=True))

    def signal(self, name, signal):
        processes.send(self.peers[name].pid, signal)

    async def end_peers(self):
        for peer in self.peers.values():
            processes.send(peer.pid, "KILL")
            await peer.wait()
        for server in self.servers:
            server.close()


class Result:
    """What came of a scenario with one edge."""

    def __init__(self, scenario, edge_name):
        self.scenario, self.edge_name, self.faults, self.notes = scenario, edge_name, [], []
        self.skipped, self.tally, self.seconds = None, None, 0.0
        self.allowed, self.errors = (0, 0, 0, 0), []

    @property
    def losses(self):
        return (self.tally.lost, self.tally.sockets, self.tally.calls, self.tally.sessions) if self.tally else ((), (), (), ())

    @property
    def fails(self):
        return bool(self.faults) or any(len(lost) > most for lost, most in zip(self.losses, self.allowed))


async def run(scenario, name, binary, seconds, times):
    """Plays a scenario with one edge."""
    result, begun = Result(scenario, name), time.monotonic()
    result.skipped = scenario.needs() or (scenario.only_weir if name != "weir" else scenario.only_nginx)
    if result.skipped:
        return result
    places = {}
    edge = Edge(name, binary, scenario.setting, places)
    stage = Stage(scenario, edge, seconds, times)
    try:
        await stage.start_origin()
        if scenario.prepare:
            await scenario.prepare(stage)
        await edge.start()
        stage.load = load = Load(edge, int(places["origin"]), scenario.clients, scenario.patience, scenario.allows)
        result.tally = load.tally
        load.begin()
        await play(stage, result)
        result.allowed = allowed(scenario, load, times)
        result.faults += await edge.stop()
        result.errors = edge.errors()
    finally:
        await stage.end_peers()
        processes.end_all()
        edge.remove()
    result.notes, result.seconds = stage.notes, time.monotonic() - begun
    return result


async def play(stage, result):
    """The load, and the event in its middle."""
    load = stage.load
    try:
        await load.run_for(stage.seconds)
        await stage.scenario.act(stage)
        await load.run_for(stage.seconds)
    except (processes.Late, TimeoutError, AssertionError) as error:
        result.faults.append(f"{type(error).__name__}: {error}")
    finally:
        await load.end()


def allowed(scenario, load, times):
    """The losses that weir may have: requests, WebSockets, calls of gRPC, sessions of TCP."""
    ends = scenario.ends
    exchanges = load.exchanges * times if "exchanges" in ends else 0
    sessions = times if "sessions" in ends else 0
    return exchanges, *(sessions * load.count(kind) for kind in ("socket", "call", "session"))


def needs_root():
    return None if os.geteuid() == 0 else "needs root"
