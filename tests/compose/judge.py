"""Compares what both sides say of a case, and sorts the differences into classes."""
import dataclasses
import re

import compare
import rules
from ask import Ask
from compare import Difference

# A value of the log that is the body's length or the message's.
EMPTY = (None, "", "-", "[]")


@dataclasses.dataclass(frozen=True)
class Found:
    """A difference, the number of its request (None: of the whole case), and the rule that explains it."""
    number: int | None
    difference: Difference
    rule: str | None

    @property
    def kind(self):
        return kind(self.difference)


def records(said, number, text, asks=()):
    """One side's record of one request; with the requests of the case."""
    # By the line first: the same request to another origin is one difference. The line without its method, which a cache
    # changes, and without bytes of another request before it.
    seen = sorted(said["seen"].get(str(number), []), key=lambda one: (one["line"].partition(" ")[2], one["at"], one["body"], [value for name, value in one["headers"] if name == "Host"]))
    # The place of an origin stands before its line, so that another peer is a difference.
    seen = [{**one, "line": f"{one['at']}: {one['line']}"} for one in seen]
    return {"answer": said["answers"][number], "seen": seen, "log": said["log"].get(str(number), []), "conf": text, "earlier": asks[:number], "asks": asks, "told": said["errors"].get("told", ())}


def all_of(said):
    """What a rule may ask about a whole case."""
    return {"told": said["errors"].get("told", ()), "statuses": [one["status"] for one in said["answers"]]}


def compared(text, asks, nginx, weir):
    """All differences of a case."""
    found, are_other_files = [], False
    # In which ways the two edges may have another state since an earlier request.
    state = dict.fromkeys(("diverged", "is_other_state", "is_other_connection", "is_other_limit"), False)
    for number, ask in enumerate(asks):
        # The other configuration takes the servers of a group in a turn of its own, as after a reload.
        state["diverged"] |= weir["answers"][number].get("is_after_canary", False)
        left, right = ({**records(said, number, text, asks), **state} for said in (nginx, weir))
        differences = [*compare.differences(left, right), *ends(left, right), *logs(left, right)]
        ruled = [(one, rules.rule(ask, one, left, right)) for one in differences]
        why = {one.where: rule for one, rule in ruled}
        ruled = [(one, rule or next(filter(None, (why.get(where) for where in told(one, right))), None)) for one, rule in ruled]
        # From here on, groups of servers and caches may have other states.
        state["is_other_state"] |= any(rule in rules.STATEFUL for _, rule in ruled)
        # Answers of caches in other states are other answers to keep.
        are_other_files |= any(rule in (*rules.STATEFUL, "other state") and (one.where == "log: upstream_cache_status" or one.where.startswith("number of requests") or one.where == "status" and kind(one).endswith(("412", "416"))) for one, rule in ruled)
        state["is_other_connection"] = bool({"end", "status"} & why.keys())
        # A request with another status may not have come to its limits.
        state["is_other_limit"] |= why.get("status") is not None
        state["diverged"] |= any(rule and (one.where.startswith("number of requests") or is_elsewhere(one) or rule in rules.TURNING) for one, rule in ruled)
        found += [Found(number, one, rule) for one, rule in ruled]
    whole = {"conf": text, "asks": asks, "earlier": asks, "seen": [], "log": [], "answer": {"status": "", "headers": [], "body": b"", "end": "", "trailers": ""}}
    for difference in case(nginx, weir):
        found.append(Found(None, difference, rules.rule(Ask(), difference, *({**whole, **all_of(said), "is_other_state": are_other_files} for said in (nginx, weir)))))
    return found


def is_elsewhere(difference):
    """Whether the same request went to another origin."""
    return difference.where == "origin: request line" and difference.nginx.partition(": ")[0] != difference.weir.partition(": ")[0]


def told(difference, weir):
    """The differences that this one can follow from: their reason is the reason here. A value of the log repeats a part of the answer, the length of
    another body is another one, and after another number of requests their pairs are not the same requests."""
    where = difference.where
    if where.startswith("origin: "):
        # Another line is another request, if it is the only one.
        lines = ["origin: request line"] if len(weir["seen"]) == 1 and where != "origin: request line" else []
        # Where the caches differ, other requests remain.
        return ["number of requests at origins", "status", *lines, "log: upstream_cache_status"]
    if where in ("log: status", "log: request_completion", "log: number of lines", "number of requests at origins"):
        return ["status"]
    field = where if where.startswith("field ") else "field " + where.removeprefix("log: sent_http_").replace("_", "-")
    places = ["log: upstream_addr", "log: upstream_status"] if where == "log: upstream_response_length" else []
    is_length = where in ("log: body_bytes_sent", "log: upstream_response_length") or field == "field content-length"
    # The count of a body in chunks has their sizes.
    is_chunked = where == "log: body_bytes_sent" and ("Transfer-Encoding", "chunked") in weir["answer"]["headers"]
    is_own = is_chunked or re.findall(r"\d+", difference.weir) in ([str(len(weir["answer"]["body"]))], [])
    return [field, *places, *(["body"] if is_length and is_own else [])]


def ends(nginx, weir):
    """Trailers, the end of the answer, and whether the client got a body piece by piece as the origin sent it."""
    left, right = nginx["answer"], weir["answer"]
    if left["status"] == right["status"]:
        for name in ("trailers", "end", "pieces", "reused"):
            # An answer in pieces may also be that of a copy, which no client gets.
            if left.get(name, "") != right.get(name, "") and (name != "pieces" or is_of_pieces(left) and is_of_pieces(right)):
                yield Difference(name, left.get(name, ""), right.get(name, ""))


def is_of_pieces(answer):
    """Whether the client's body is the one that comes piece by piece; filters may change letters of it."""
    return b"piece o" in answer["body"]


def logs(nginx, weir):
    """The lines of the access log."""
    left, right = nginx["log"], weir["log"]
    if len(left) != len(right):
        yield Difference("log: number of lines", str([one.get("uri") for one in left]), str([one.get("uri") for one in right]))
        return
    for ours, theirs in zip(sorted(right, key=order), sorted(left, key=order)):
        if theirs["status"] != ours["status"]:
            yield Difference("log: status", theirs["status"], ours["status"])
            continue
        for name in theirs:
            values = [compare.BOUNDARY.sub("NUMBER", str(one.get(name))) for one in (theirs, ours)]
            if values[0] != values[1]:
                yield Difference(f"log: {name}", *values)


def order(line):
    return [line.get(name, "") for name in ("uri", "status", "upstream_addr", "request_length", "body_bytes_sent")]


def case(nginx, weir):
    """What belongs to no single request."""
    for name in ("died", "streams"):
        if nginx[name] != weir[name]:
            yield Difference(name, str(nginx[name]), str(weir[name]))
    if weir["errors"]["broken"] and not nginx["errors"]["broken"]:
        yield Difference("error log: broken", "", str(weir["errors"]["broken"]))
    for level in ("emerg", "alert", "crit"):
        left, right = (one["errors"]["levels"].get(level, 0) for one in (nginx, weir))
        if right and not left:
            yield Difference(f"error log: {level}", "", str(weir["errors"]["lines"]))
    for name in ("kept", "cached", "sessions"):
        left, right = nginx["files"][name], weir["files"][name]
        # Variants of one key have other names with weir.
        if len(left) != len(right) if name == "cached" else left != right:
            # A file of nginx says its key.
            keys = nginx["files"].get("keys", {}) if name == "cached" else {}
            yield Difference(f"files: {name}", str([keys.get(one, one) for one in left if one not in right]), str([one for one in right if one not in left]))


def verdict(nginx, weir):
    """The difference between two verdicts on a file; `None` is a file that is taken."""
    def said(text):
        if text is None:
            return "taken"
        line = next((line for line in text.split("\n") if "[emerg]" in line), text[:200])
        return re.sub(r".*\[emerg\]\s*(\d+#\d+: )?", "", re.sub(r" in /\S+:\d+", "", line)).strip()[:200]
    return Difference("verdict", said(nginx), said(weir))


def kind(difference):
    """The class of a difference: where it is, and both values without what differs from case to case."""
    where, left, right = difference.where, difference.nginx, difference.weir
    if where in ("status", "interim answers"):
        return f"{where}: {code(left)} -> {code(right)}"
    if where in ("log: status", "end", "pieces", "died", "reused"):
        return f"{where}: {left} -> {right}"
    if where == "verdict":
        return f"verdict: {generic(left)} -> {generic(right)}"
    if where.startswith(("field", "origin: field", "log:", "trailers", "error log")):
        return f"{where.lower()}: {'-' if left in EMPTY else 'x'} -> {'-' if right in EMPTY else 'x'}"
    if where == "number of requests at origins":
        counts = [len(re.findall(r"'\w+: ", one)) for one in (left, right)]
        return f"{where}: {'more' if counts[0] < counts[1] else 'fewer'} from weir"
    return where


def code(status):
    found = re.search(r"HTTP/\S+ (\d+)", status)
    return found[1] if found else status[:30]


def generic(text):
    return re.sub(r'"[^"]*"', '"…"', text) if text.startswith(('"', "unknown", "invalid")) is False else re.sub(r"\d+", "N", text)


def unexplained(found):
    """The differences of the first requests that differ without a rule: later ones may follow from these."""
    open_ones = [one for one in found if one.rule is None]
    numbers = [number for number in dict.fromkeys(one.number for one in open_ones) if number is not None][:3]
    return [one for one in open_ones if one.number is None or one.number in numbers]


# The kinds by what they tell of the others: a wrong status explains the fields, the log line and the body of its request.
WEIGHTS = ("died", "error log: broken", "verdict", "status", "number of requests", "origin: request line", "origin: body", "body", "interim", "end", "pieces", "reused", "trailers", "files", "origin: field", "field", "error log", "log")


def weight(kind):
    """The place of a kind in that order."""
    return next((place for place, name in enumerate(WEIGHTS) if kind.startswith(name)), len(WEIGHTS))


def leading(found):
    """The kinds of which each is the first of its request."""
    first = {}
    for one in sorted(found, key=lambda one: weight(one.kind)):
        first.setdefault(one.number, one.kind)
    return set(first.values())
