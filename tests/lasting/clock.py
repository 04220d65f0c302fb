"""The wall clock jumps, for the edge alone: a library stands before libc's clock (`clock.c`), and the machine's own clock stays."""

import asyncio
import email.utils
import shutil
import struct
import time
from pathlib import Path

from scenario import Scenario

HOUR = 3600
SOURCE = Path(__file__).parent / "clock.c"


async def prepare(stage):
    room = stage.edge.room
    compiler = await asyncio.create_subprocess_exec("cc", "-O1", "-shared", "-fPIC", "-o", room / "clock.so", SOURCE)
    assert await compiler.wait() == 0, "clock.c is not compiled"
    set_clock(stage, 0)
    stage.edge.environment |= {"LD_PRELOAD": str(room / "clock.so"), "LASTING_CLOCK": str(room / "clock")}


def set_clock(stage, seconds):
    file = stage.edge.room / "clock"
    # The edge has mapped the file: it stays the same file.
    with file.open("r+b" if file.exists() else "wb") as out:
        out.write(struct.pack("q", seconds))


async def jumps(stage):
    """An hour forward, an hour back, and another hour back. The field `Date` proves that the edge has seen each."""
    for seconds in (HOUR, 0, -HOUR, 0):
        set_clock(stage, seconds)
        async with asyncio.timeout(10):
            while abs(await ahead(stage.edge) - seconds) > 5:
                await asyncio.sleep(0.05)
        await stage.load.run_for(max(1, stage.seconds))


async def ahead(edge):
    """The seconds by which the edge's wall clock is ahead of the machine's."""
    _, fields, _ = await edge.ask("/work/clock")
    return email.utils.parsedate_to_datetime(fields["Date"]).timestamp() - time.time() if "Date" in fields else float("inf")


def needs_compiler():
    return None if shutil.which("cc") else "needs a C compiler"


SCENARIOS = [
    Scenario("clock-jump", "the edge's wall clock jumps an hour forward, back, an hour back and forward", jumps, ci_times=0, prepare=prepare, needs=needs_compiler),
]
