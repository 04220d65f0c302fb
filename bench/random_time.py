"""Faults that come and go, and faults that grow; and sound stacks with a harmless job, or a cache that becomes warm."""

from random_stack import Draft, Truth
from random_named import computing
from stacks import ONE_CPU

# `sh -c` of a batch: so many processes compute for so long, and then rest.
BATCH = "while :; do sleep @REST@; for i in $(seq @MANY@); do timeout @LONG@ sh -c 'while :; do :; done' & done; wait; done"
# Rules that no sound stack may get.
OF_TIME = frozenset({"B73", "B74", "B75"})


def batch(draft: Draft, host: str, cpu: int, many: int, rest: float, long: float) -> None:
    script = BATCH.replace("@REST@", str(rest)).replace("@LONG@", str(long)).replace("@MANY@", str(many))
    draft.processes.append({"name": "nightly", "host": host, "argv": ["sh", "-c", script], "cpus": [cpu]})
    draft.notes.append(f"{many} processes for {long} s, then {rest} s of rest")


def batch_edge(draft: Draft) -> None:
    """Every two or three seconds the edge's CPU has many others at work."""
    computing(draft)
    batch(draft, "edge", 0, 10, draft.between(1.4, 2.2), draft.between(0.6, 0.9))
    draft.load, draft.block = ["-R", str(draft.between(60, 80)), "-c", "32"], "12s"
    draft.rules("B73", is_waste=True)


def batch_app(draft: Draft) -> None:
    """The same on the application's CPU."""
    draft.program, draft.servers, draft.is_spread, draft.is_tls = "node", 1, False, False
    draft.flags += ONE_CPU
    draft.stages = [["cpu", draft.between(4, 6)]]
    batch(draft, "origin", 1, 10, draft.between(1.4, 2.2), draft.between(0.6, 0.9))
    draft.load, draft.block = ["-R", str(draft.between(60, 80)), "-c", "32"], "12s"
    draft.rules("B73", is_waste=True)


def runtime_pauses(draft: Draft) -> None:
    """A runtime that stands still for a while, every three seconds."""
    draft.program, draft.servers, draft.is_spread = "node", 1, False
    draft.stages = [["sleep", draft.between(2, 8)], ["pauses", 3000, draft.one(600, 800)]]
    draft.load, draft.block = ["-R", str(draft.between(60, 90)), "-c", "32"], "12s"
    draft.rules("B73", is_waste=True)


def runtime_collects(draft: Draft) -> None:
    """A runtime that computes for itself for a while, every three seconds, as a collection does."""
    draft.program, draft.servers, draft.is_spread = "node", 1, False
    draft.flags += ONE_CPU
    draft.stages = [["sleep", draft.between(2, 8)], ["collects", 3000, draft.one(600, 800)]]
    draft.load, draft.block = ["-R", str(draft.between(60, 90)), "-c", "32"], "12s"
    draft.rules("B73", is_waste=True)


def disk_flush(draft: Draft) -> None:
    """Every two or three seconds many small writes go to the disk, and all requests wait for them."""
    draft.program, draft.servers, draft.is_spread = "node", 1, False
    draft.stages = [["sleep", draft.between(2, 8)], ["flushes", "@DIR@/flushed", draft.one(4000, 6000), draft.one(2000, 3000)]]
    draft.load, draft.block = ["-R", str(draft.between(60, 90)), "-c", "32"], "12s"
    draft.rules("B73", "B44", is_waste=True)


def leak_files(draft: Draft) -> None:
    """Each request opens a file that nobody closes, until the process may open no more."""
    draft.program, draft.servers, draft.is_spread, draft.is_tls, draft.warmup = "python3", 1, False, False, "0"
    rate = draft.one(40, 50, 60)
    draft.processes.append({"name": "origin0", "files": [7 * rate, 7 * rate]})
    draft.stages = [["opens"], ["sleep", draft.between(2, 8)]]
    draft.load, draft.block = ["-R", str(rate), "-c", "16"], "10s"
    draft.rules("B74")


def leak_memory(draft: Draft) -> None:
    """Each request leaves something in memory, until the group has no more."""
    draft.program, draft.servers, draft.is_spread, draft.warmup = "python3", 1, False, "0"
    rate = draft.one(60, 80)
    draft.stages = [["keeps", round(14000 / rate)], ["sleep", draft.between(2, 8)]]
    draft.origin_limit(memory_mb=120)
    draft.load, draft.block = ["-R", str(rate), "-c", "16"], "10s"
    draft.rules("B43", "B74")


def leak_memory_slow(draft: Draft) -> None:
    """The same, and the group would have no more a while after the block."""
    draft.program, draft.servers, draft.is_spread = "python3", 1, False
    rate = draft.one(60, 80)
    draft.stages = [["keeps", round(5000 / rate)], ["sleep", draft.between(2, 8)]]
    draft.origin_limit(memory_mb=200)
    draft.load, draft.block = ["-R", str(rate), "-c", "16"], "10s"
    draft.rules("B75", is_waste=True)


def grows_longer(draft: Draft) -> None:
    """Each request walks through a list, and makes it longer."""
    draft.program, draft.servers, draft.is_spread, draft.is_tls, draft.warmup = "python3", 1, False, False, "0"
    draft.flags += ONE_CPU
    draft.stages = [["walks", draft.between(6, 9)]]
    draft.load, draft.block = ["-R", str(draft.between(40, 55)), "-c", "16"], "10s"
    draft.rules("B75", "B74", is_waste=True)


def healthy_job(draft: Draft) -> None:
    """A job that runs for a moment every two seconds, and harms nobody."""
    batch(draft, "edge", draft.one(0, 1), 1, draft.between(1.5, 2.2), draft.between(0.2, 0.4))
    draft.block = "10s"
    draft.under()
    draft.truth = Truth(is_healthy=True, unsaid=OF_TIME)


def healthy_warming(draft: Draft) -> None:
    """A cache that becomes warm: memory grows, less and less."""
    draft.program, draft.servers, draft.is_spread, draft.warmup = "python3", 1, False, "0"
    draft.stages = [["caches", draft.one(60, 90), 300], ["sleep", draft.between(2, 8)]]
    draft.origin_limit(memory_mb=400)
    draft.load, draft.block = ["-R", str(draft.between(50, 80)), "-c", "16"], "10s"
    draft.truth = Truth(is_healthy=True, unsaid=OF_TIME)
