"""CPU and memory of a process and all its descendants, read from /proc."""

import os
from dataclasses import dataclass

TICK_NS = 1_000_000_000 // os.sysconf("SC_CLK_TCK")


@dataclass
class Cpu:
    """What a process tree has used so far."""

    total_ns: int  # scheduler's own count (schedstat), or ticks where the kernel has none
    user_ns: int   # in ticks of 10 ms
    sys_ns: int    # in ticks of 10 ms

    def since(self, before):
        return Cpu(self.total_ns - before.total_ns, self.user_ns - before.user_ns, self.sys_ns - before.sys_ns)


def tree(root):
    """The process and its living descendants."""
    children = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            fields = _stat(f"/proc/{name}/stat")
            if fields:
                children.setdefault(int(fields[1]), []).append(int(name))
    found, todo = [], [root]
    while todo:
        pid = todo.pop()
        found.append(pid)
        todo.extend(children.get(pid, []))
    return found


def cpu(root):
    """Sums every thread of every process; a process that ended between two readings is lost."""
    total = user = system = 0
    for pid in tree(root):
        fields = _stat(f"/proc/{pid}/stat")
        if not fields:
            continue
        user += int(fields[11]) * TICK_NS
        system += int(fields[12]) * TICK_NS
        exact = sum(_schedstat(f"/proc/{pid}/task/{tid}/schedstat") for tid in _list(f"/proc/{pid}/task"))
        total += exact or (int(fields[11]) + int(fields[12])) * TICK_NS
    return Cpu(total, user, system)


def rss_kib(root):
    """VmRSS of the tree; kernel memory (socket buffers, fds) is not in it."""
    total = 0
    for pid in tree(root):
        for line in _read(f"/proc/{pid}/status").splitlines():
            if line.startswith("VmRSS:"):
                total += int(line.split()[1])
    return total


def core_busy_ns(core):
    """Busy time of a core, whoever used it, in ticks of 10 ms; stolen time counts as busy."""
    for line in _read("/proc/stat").splitlines():
        if line.startswith(f"cpu{core} "):
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, line.split()[1:9])
            return (user + nice + system + irq + softirq + steal) * TICK_NS
    return 0


def stolen_ns(cores):
    """The time that the host of a virtual machine has kept these cores from running."""
    names = {f"cpu{core}" for core in cores}
    lines = (line.split() for line in _read("/proc/stat").splitlines())
    return sum(int(fields[8]) for fields in lines if fields[0] in names) * TICK_NS


def _stat(path):
    """The fields after the command name, so [1] is the parent and [11], [12] are utime, stime."""
    text = _read(path)
    return text[text.rindex(")") + 2 :].split() if ")" in text else None


def _schedstat(path):
    text = _read(path)
    return int(text.split()[0]) if text else 0


def _read(path):
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _list(path):
    try:
        return os.listdir(path)
    except OSError:
        return []
