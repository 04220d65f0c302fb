"""Faults that no rule was written for: right is to say that nothing can be named, or to suspect the right place."""

import random_apps
from random_named import backend, pool
from random_stack import Draft, Truth
from stacks import ONE_CPU


def pool_untold(draft: Draft) -> None:
    few, held = pool(draft)
    draft.stages.append(["places", few, held])
    draft.over()
    draft.unnamed()


def lock_sleep(draft: Draft) -> None:
    draft.capacity = draft.draw_capacity()
    draft.stages.append(["places", 1, round(1000 / draft.capacity, 1)])
    draft.capacity *= draft.local()
    draft.inside = draft.local()
    draft.over()
    draft.unnamed()


def bucket_waits(draft: Draft) -> None:
    draft.capacity = draft.draw_capacity()
    draft.stages.append(["bucket", round(draft.capacity, 1), "wait"])
    draft.capacity *= draft.local()
    draft.over()
    draft.unnamed()


def bucket_refuses(draft: Draft) -> None:
    """The application's own limit, which answers 429: the edge has none."""
    draft.capacity = draft.draw_capacity()
    draft.stages.append(["bucket", round(draft.capacity, 1), "refuse"])
    draft.capacity *= draft.local()
    draft.over("rate")
    # P08: the application itself says 429.
    draft.unnamed("P08")


def app_errors(draft: Draft) -> None:
    """An application that fails for some, and nobody tries again."""
    draft.stages.append(["errors", draft.one(0.1, 0.3)])
    draft.load = ["-R", str(draft.between(60, 100)), "-c", "16"]
    # That the application itself says 503 is all that is to be seen, and P08 says so.
    draft.truth = Truth(has_rule=False, rules=frozenset({"P08"}))


def slow_backend(draft: Draft) -> None:
    draft.servers, draft.is_spread = 1, False
    backend(draft)
    draft.over()
    draft.unnamed()


def nagle(draft: Draft) -> None:
    """Two small writes over a few connections: each exchange waits for an acknowledgement that is delayed by 40 ms."""
    draft.servers, draft.is_spread = 1, False
    few = draft.rng.randint(3, 8)
    draft.files["backend.py"] = random_apps.BACKEND
    draft.host("db")
    draft.processes.append({"name": "db", "host": "db", "argv": ["python3", "@DIR@/backend.py", "7000", "64", "1"], "ready": {"Prints": "ready"}})
    draft.stages = [["ask", "db", 7000, few, "split"]]
    draft.capacity, draft.inside = few / 0.042, few
    draft.over("closed rate")
    draft.unnamed()


def slow_names(draft: Draft) -> None:
    draft.files["names.py"] = random_apps.NAMES
    draft.capacity = draft.draw_capacity()
    draft.processes.append({"name": "names", "host": "origin", "argv": ["python3", "@DIR@/names.py", "5353", f"{1000 / draft.capacity:.1f}"],
                            "ready": {"Prints": "ready"}})
    draft.stages.append(["names", 5353])
    draft.inside = 1
    draft.over()
    draft.unnamed()
    # The server of names is shared even by processes apart.
    draft.truth = Truth(has_rule=False, rules=frozenset({"B26"} if draft.servers > 1 else ()))


def file_lock(draft: Draft) -> None:
    draft.program = "python3"
    draft.capacity = draft.draw_capacity() * 0.8
    draft.stages.append(["file", "@DIR@/lock", round(1000 / draft.capacity, 1)])
    draft.over()
    draft.truth = Truth(has_rule=False, rules=frozenset({"B26"} if draft.servers > 1 else ()))


def full_disk(draft: Draft) -> None:
    """The application cannot write its log, and tries again with everybody behind it."""
    held = draft.between(8, 20)
    draft.stages.append(["full", held])
    draft.capacity, draft.inside = draft.local() * 1000 / held, draft.local()
    draft.over()
    draft.unnamed()


def between(draft: Draft) -> None:
    """A proxy between the edge and the application that lets so many through at once."""
    draft.servers, draft.is_spread = 1, False
    few, held = draft.rng.randint(2, 6), draft.between(20, 60)
    draft.stages = [["sleep", held]]
    draft.app["ports"] = [[3100]]
    draft.files["haproxy.cfg"] = random_apps.HAPROXY.replace("@PLACES@", str(few))
    draft.processes += [{"name": "between", "host": "origin", "argv": ["haproxy", "-f", "@DIR@/haproxy.cfg"]},
                        {"name": "origin0", "ready": "Started"}]
    draft.capacity, draft.inside = few / held * 1000, few
    draft.over()
    draft.unnamed("B22")


def backend_tls(draft: Draft) -> None:
    """A handshake to the application for each request: its CPU is what is full, and why is nowhere said."""
    draft.program, draft.is_spread, draft.flags = "node", False, [*draft.flags, *ONE_CPU]
    draft.app["tls"], draft.certificate, draft.is_tls = "@DIR@", "rsa", False
    draft.proxy, draft.keepalive = "https://app", 0
    draft.location += "proxy_ssl_session_reuse off; "
    draft.keep = 'proxy_http_version 1.1; proxy_set_header Connection "close";'
    draft.inside = 4
    draft.over("closed")
    draft.unnamed("B20", "B21", "B03")


def app_files(draft: Draft) -> None:
    """The application's own descriptors are at their end."""
    draft.program, draft.servers, draft.is_spread, draft.is_tls = "python3", 1, False, False
    few = draft.one(24, 32)
    draft.processes.append({"name": "origin0", "files": [few, few]})
    draft.stages = [["sleep", 200]]
    draft.load = ["-c", str(3 * few)]
    draft.unnamed("B22", "B63")


def app_pauses(draft: Draft) -> None:
    """A runtime that stops everything for half of the time, and computes nothing meanwhile."""
    draft.program, draft.is_spread = "node", False
    held = draft.between(2, 6)
    draft.stages = [["places", 1, held], ["pauses", 300, 150]]
    # A timer that is due within a pause is late by its rest.
    draft.capacity = 0.5 * 1000 / held
    draft.over("closed rate")
    draft.unnamed("B21")
