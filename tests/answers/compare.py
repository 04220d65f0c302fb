"""Compares the answers of two edges, and sorts the differences into classes."""
import collections
import dataclasses
import email.utils
import hashlib
import re

# What is rewritten in both edges' answers before they are compared, and why.
PRODUCT = re.compile(r"(?:nginx/1\.[\d.]+|weir/[\d.]+|\bnginx\b|\bweir\b)")
# Fields whose values are a moment or the edge's own name.
UNCOMPARED = {"date": "the moment of the answer", "server": "the edge's name"}
# The boundary of a body of parts is the number of such bodies so far.
BOUNDARY = re.compile(r"(?<=boundary=)0\d{19}|(?<=--)0\d{19}")
# The number that `userid` gives to a client.
CLIENT = re.compile(r"(?<==)[\w+/]{22,23}={1,2}(?=;|$)")
# Parameters and fields that name a port of the kernel's choice, or count connections.
CHANCE = {"REMOTE_PORT": "the client's port", "x-connection": "tests/app counts connections", "x-request": "tests/app counts connections"}


@dataclasses.dataclass(frozen=True)
class Difference:
    """One difference: where it is, and both values."""
    where: str
    nginx: str
    weir: str


def headers(answer):
    """Fields by name in lower case, values in order."""
    found = collections.defaultdict(list)
    for name, value in answer["headers"]:
        name = name.lower()
        if name in UNCOMPARED:
            value = f"({UNCOMPARED[name]})"
        elif name in CHANCE:
            value = f"({CHANCE[name]})"
        elif name == "expires":
            value = relative(value, answer)
        elif name == "content-type":
            value = BOUNDARY.sub("NUMBER", value)
        elif name == "set-cookie":
            value = CLIENT.sub("CLIENT", value)
        elif name == "content-length" and is_page(answer):
            # The product's name is in the page.
            value = str(len(body(answer)))
        found[name].append(value)
    return found


def raw(answer, name):
    """The values of a field as they came."""
    return [value for found, value in answer["headers"] if found.lower() == name]


def relative(value, answer):
    """A moment, as the distance from the answer's Date."""
    date = next((text for name, text in answer["headers"] if name.lower() == "date"), "")
    try:
        distance = email.utils.parsedate_to_datetime(value) - email.utils.parsedate_to_datetime(date)
    except ValueError:
        return value
    return f"(Date + {round(distance.total_seconds() / 2) * 2} s)" if distance.days >= 0 else value


def is_page(answer):
    """Whether the body is an error page of the edge itself."""
    return b"</center>" in answer["body"] and PRODUCT.search(answer["body"].decode("latin-1")) is not None


def body(answer):
    text = answer["body"].decode("latin-1")
    if text.startswith("\r\n--0"):
        text = BOUNDARY.sub("NUMBER", text)
    return PRODUCT.sub("EDGE", text) if is_page(answer) else text


def short(text):
    return text if len(text) < 160 else f"{text[:100]!r}… {len(text)} bytes, md5 {hashlib.md5(text.encode('latin-1', 'replace')).hexdigest()}"


def seen(request):
    """A request at an origin: its line, its fields in order, its body."""
    fields = [(name, f"({CHANCE[name]})" if name in CHANCE else PRODUCT.sub("EDGE", value)) for name, value in request["headers"]]
    return request["line"], fields, request["body"]


def differences(nginx, weir):
    """All differences between two records of one request: answer and requests seen by origins."""
    first, second = nginx["answer"], weir["answer"]
    if first["status"] != second["status"]:
        # An answer of another kind has other fields and another body: only the origins' side is compared further.
        yield Difference("status", first["status"], second["status"])
    if first["before"] != second["before"]:
        yield Difference("interim answers", str(first["before"]), str(second["before"]))
    if first["status"] == second["status"]:
        yield from answer_differences(first, second)
    if len(nginx["seen"]) != len(weir["seen"]):
        yield Difference("number of requests at origins", str([one["line"] for one in nginx["seen"]]), str([one["line"] for one in weir["seen"]]))
    for left, right in zip(nginx["seen"], weir["seen"]):
        yield from origin_differences(seen(left), seen(right))


def answer_differences(nginx, weir):
    theirs, ours = headers(nginx), headers(weir)
    for name in sorted({*ours, *theirs}):
        # A moment of the origin stays the same, however much later the other edge answers.
        if ours[name] != theirs[name] and not (name == "expires" and raw(nginx, name) == raw(weir, name)):
            yield Difference(f"field {name}", str(theirs[name]), str(ours[name]))
    if body(nginx) != body(weir):
        yield Difference("body", short(body(nginx)), short(body(weir)))


def origin_differences(nginx, weir):
    if nginx[0] != weir[0]:
        yield Difference("origin: request line", nginx[0], weir[0])
    left, right = collections.defaultdict(list), collections.defaultdict(list)
    for kept, found in ((left, nginx[1]), (right, weir[1])):
        for name, value in found:
            kept[name].append(value)
    differs = False
    for name in sorted({*left, *right}):
        if left[name] != right[name]:
            differs = True
            yield Difference(f"origin: field {name}", str(left[name]), str(right[name]))
    if not differs and nginx[1] != weir[1]:
        yield Difference("origin: order of fields", str([name for name, _ in nginx[1]]), str([name for name, _ in weir[1]]))
    if nginx[2] != weir[2]:
        yield Difference("origin: body", nginx[2], weir[2])


def kind(difference):
    """The class of a difference: where it is, and both values without what differs from case to case."""
    if difference.where in ("body", "origin: request line", "origin: order of fields"):
        return difference.where
    values = f"{difference.nginx} -> {difference.weir}"
    if difference.where.startswith(("field", "origin: field")) and len(values) > 60:
        return difference.where
    return f"{difference.where}: {re.sub(r'[0-9]{4,}', 'N', values)}"
