"""Scenarios in which the edge lacks room: descriptors, or space on a disk."""

import asyncio
import contextlib
import errno

from edge import Setting
from processes import within
from scenario import Scenario, needs_root

# Clients that come on top of those that fit into 64 descriptors.
MORE = {"kept": 100, "fresh": 30}
FEW = {"kept": 4, "fresh": 2, "cached": 1, "http2": 1, "socket": 2, "session": 1}
# Directives with which a large answer and an upload need a file.
SMALL_BUFFERS = """client_body_buffer_size 8k; proxy_buffer_size 8k; proxy_buffers 4 8k; proxy_busy_buffers_size 16k;
    proxy_max_temp_file_size 256k; proxy_temp_file_write_size 16k;"""


async def files(stage):
    """More clients than descriptors, and then few again."""
    load = stage.load
    extra = [client for kind, count in MORE.items() for client in load.add(kind, count)]
    await asyncio.sleep(3 + stage.seconds)
    served = sum(client.turns > 0 for client in extra)
    for client in extra:
        client.is_over = True
    await within("the other clients end", 60, lambda: all(client.has_ended for client in extra))
    refused = load.tally.refused.total()
    stage.notes.append(f"{served} of {len(extra)} clients more were served")
    await load.run_for(stage.seconds)
    assert load.tally.refused.total() == refused, "with few clients, requests are refused"


def full(check, seconds=2, waits=()):
    """Fills the small disk, and makes room again; then `check` says whether the edge uses it. Clients of the kinds `waits` may be refused
    meanwhile; all others are served."""
    async def act(stage):
        await stage.load.run_for(stage.seconds)
        file = stage.edge.inside(stage.edge.small / "fill")
        fill(file)
        for _ in range(int(seconds * 10)):
            await asyncio.sleep(0.1)
            # What the edge gives back is filled too.
            fill(file)
        await stage.load.all_served(but=waits)
        file.unlink()
        await check(stage)
    return act


def fill(file):
    """Appends until the disk is full."""
    with file.open("ab", buffering=0) as out, contextlib.suppress(OSError):
        for size in (65536, 4096):
            while True:
                try:
                    out.write(bytes(size))
                except OSError as error:
                    if error.errno != errno.ENOSPC:
                        raise
                    break


async def log_goes_on(stage):
    log = stage.edge.inside(stage.edge.small / "access.log")
    size = log.stat().st_size
    await within("the log gets lines again", 10, lambda: log.stat().st_size > size)


async def cache_stores(stage):
    """An answer that is asked for twice comes from the cache, and has a file."""
    for number in range(100):
        path = f"/cached/room-{number}"
        await stage.edge.ask(path)
        await asyncio.sleep(0.05)
        status, fields, _ = await stage.edge.ask(path)
        assert status == 200, f"status {status}"
        folder = stage.edge.inside(stage.edge.small / "cache")
        if fields.get("X-Cache") == "HIT" and any(f"/cached/room-{number}".encode() in file.read_bytes() for file in files_of(folder)):
            return
        await asyncio.sleep(0.1)
    raise AssertionError("the cache stores nothing although there is room")


def files_of(folder):
    """The files below a folder, but for those that go meanwhile."""
    for file in folder.rglob("*"):
        with contextlib.suppress(FileNotFoundError):
            if file.is_file():
                file.read_bytes()
                yield file


async def bodies_are_taken(stage):
    """Nothing is refused once there is room."""
    load = stage.load
    await load.all_served()
    refused = load.tally.refused.total()
    stage.notes.append(f"{refused} refused while the disk was full" if refused else "")
    await load.run_for(2)
    assert load.tally.refused.total() == refused, f"refused although there is room: {load.tally.refused}"


SCENARIOS = [
    Scenario("files", "64 descriptors (`worker_rlimit_nofile`), and 130 clients more for some seconds", files, setting=Setting(main="worker_rlimit_nofile 64;", workers=1),
             clients=FEW, patience=60, allows=("closed",)),
    Scenario("disk-log", "the disk of the access log is full", full(log_goes_on), setting=Setting(log="SMALL/access.log"), needs=needs_root),
    Scenario("disk-cache", "the disk of the cache is full", full(cache_stores), setting=Setting(cache="SMALL/cache"), needs=needs_root),
    Scenario("disk-temp", "the disk of the temporary files is full, and bodies need files", full(bodies_are_taken, waits=("upload",)),
             setting=Setting(temp="SMALL", http=SMALL_BUFFERS), clients={"kept": 4, "fresh": 2, "upload": 2, "large": 2, "http2": 1, "socket": 2, "session": 1},
             allows=("status",), needs=needs_root),
]
