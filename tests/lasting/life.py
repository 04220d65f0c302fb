"""Scenarios of the edge's own life: it is reloaded, replaced, killed, stopped."""

import asyncio
import os
import time
from pathlib import Path

import processes
from edge import Setting
from processes import within
from scenario import Scenario, needs_root

MEMORY = Path("/sys/fs/cgroup/memory")
# weir replaces a server that has not answered for 30 s, and gives it 10 s more for its exchanges.
HANG_SECONDS = 60


def reloads(change=None):
    """Each configuration is in force before the next one comes; `change` makes a further difference."""
    async def act(stage):
        before, begun = stage.edge.serving(), time.monotonic()
        for number in range(stage.times):
            if change:
                change(stage.edge, number)
            await stage.edge.reload()
            await asyncio.sleep(0.05)
        stays = "the same process serves" if stage.edge.serving() == before else "other processes serve"
        stage.notes.append(f"{stage.times} reloads in {time.monotonic() - begun:.1f} s; {stays}")
    return act


def another_user(edge, number):
    edge.user = f"user {('daemon', 'nobody nogroup')[number % 2]};"


def another_folder(edge, number):
    folder = edge.room / f"store-{number}"
    folder.mkdir()
    folder.chmod(0o777)
    edge.setting.server = f"location /put-{number}/ {{ root {folder}; dav_methods PUT; }}"


async def upgrade(stage):
    edge, begun = stage.edge, time.monotonic()
    for _ in range(stage.times):
        old = edge.master
        processes.send(old, "USR2")
        new = await within("the new process writes its pid", 20, lambda: (pid := edge.pid()) != old and pid)
        await within("the new process serves", 20, lambda: edge.serving(new))
        processes.send(old, "QUIT")
        await within("the old process ends", 20, lambda: not processes.is_there(old))
        edge.master = new
        await stage.load.all_served()
    stage.notes.append(f"{stage.times} upgrades in {time.monotonic() - begun:.1f} s; WebSockets and sessions end after worker_shutdown_timeout")


def killed(name, only_one=False):
    """Kills all serving processes, or one, with this signal."""
    async def act(stage):
        longest = 0
        for _ in range(stage.times):
            before = stage.edge.serving()
            victims, begun = before[:1] if only_one else before, time.monotonic()
            await die(victims, lambda pid: processes.send(pid, name))
            await replaced(stage, before, victims)
            longest = max(longest, time.monotonic() - begun)
        stage.notes.append(f"{stage.times} times; all clients are served again after {longest:.2f} s at most")
    return act


async def die(pids, strike):
    """Strikes until the processes have ended: Rust's own handler of SIGSEGV lets the first one pass."""
    def is_over():
        left = [pid for pid in pids if processes.is_there(pid)]
        for pid in left:
            strike(pid)
        return not left
    await within("the processes end", 20, is_over)


async def replaced(stage, before, victims):
    edge = stage.edge
    await within("others take their place", 20, lambda: len(edge.serving()) == len(before) and not set(edge.serving()) & set(victims))
    await stage.load.all_served()


async def out_of_memory(stage):
    """A control group without memory kills the processes in it at their next page."""
    group, longest = MEMORY / f"weir-lasting-{os.getpid()}", 0
    group.mkdir()
    try:
        (group / "memory.limit_in_bytes").write_text("0")
        for _ in range(stage.times):
            victims, begun = stage.edge.serving(), time.monotonic()
            for pid in victims:
                (group / "cgroup.procs").write_text(str(pid))
            await within("the kernel kills the processes", 20, lambda: not any(map(processes.is_there, victims)))
            await replaced(stage, victims, victims)
            longest = max(longest, time.monotonic() - begun)
        kills = next(line.split()[1] for line in (group / "memory.oom_control").read_text().splitlines() if line.startswith("oom_kill "))
        assert int(kills) >= stage.times, f"the kernel has killed {kills} processes"
        stage.notes.append(f"the kernel has killed {kills} processes; all clients are served again after {longest:.2f} s at most")
    finally:
        # A dead process leaves its group a moment after its end.
        await within("the control group is empty", 10, lambda: not (group / "cgroup.procs").read_text())
        group.rmdir()


def needs_memory_group():
    if needs_root():
        return needs_root()
    return None if os.access(MEMORY / "memory.limit_in_bytes", os.W_OK) or (MEMORY / "memory.stat").exists() else "needs control groups (v1) for memory"


async def stop(stage):
    """Two seconds in which nothing serves."""
    victims = stage.edge.serving()
    for pid in victims:
        processes.send(pid, "STOP")
    try:
        await asyncio.sleep(2)
    finally:
        for pid in victims:
            processes.send(pid, "CONT")
    assert stage.edge.serving() == victims, "the processes were replaced"
    await stage.load.all_served()


async def hang(stage):
    """One serving process is stopped, and nobody continues it."""
    victim, begun = stage.edge.serving()[0], time.monotonic()
    processes.send(victim, "STOP")
    try:
        await within("the process is replaced", HANG_SECONDS, lambda: not processes.is_there(victim))
        stage.notes.append(f"the process is gone after {time.monotonic() - begun:.0f} s")
    except processes.Late:
        stage.notes.append(f"the process is still there after {HANG_SECONDS} s")
        assert not stage.edge.is_weir, "the process is still there"
        processes.send(victim, "CONT")
    await stage.load.all_served()


UNDER_WAY = ("exchanges", "sessions")
ONE_PROCESS = "one process has all workers"

SCENARIOS = [
    Scenario("reload", "SIGHUP with another configuration, as soon as the one before is in force", reloads(), 100, 20),
    Scenario("reload-user", "SIGHUP with another `user`: other processes take over. Uploads need no file, because the directory of these files changes its owner",
             reloads(another_user), 10, 2, setting=Setting(http="client_body_buffer_size 128k;"), needs=needs_root),
    Scenario("reload-folder", "SIGHUP with another folder that requests may write to: another process of weir takes over", reloads(another_folder), 10, 2),
    Scenario("upgrade", "SIGUSR2, then SIGQUIT to the old process, with `worker_shutdown_timeout 1s`", upgrade, 10, 2, ("sessions",),
             Setting(main="worker_shutdown_timeout 1s;")),
    Scenario("kill", "SIGKILL of all serving processes: weir's server, nginx's workers", killed("KILL"), 10, 3, UNDER_WAY),
    Scenario("kill-one", "SIGKILL of one of two workers", killed("KILL", only_one=True), 10, 0, UNDER_WAY, only_nginx=ONE_PROCESS),
    Scenario("kill-abrt", "SIGABRT of all serving processes", killed("ABRT"), 3, 0, UNDER_WAY),
    Scenario("kill-segv", "SIGSEGV of all serving processes", killed("SEGV"), 3, 0, UNDER_WAY),
    Scenario("kill-memory", "the kernel kills all serving processes, because their control group has no memory", out_of_memory, 3, 0, UNDER_WAY,
             needs=needs_memory_group),
    Scenario("stop", "SIGSTOP of all serving processes, SIGCONT after two seconds", stop),
    Scenario("hang", "SIGSTOP of one serving process, and no SIGCONT", hang, 1, 0, UNDER_WAY, patience=HANG_SECONDS + 20, is_slow=True),
]
