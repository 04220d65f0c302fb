"""Answers in parts: `slice`, and ranges of films."""
import ast
import os
import re

from rules.basis import because, is_status_of, modern


@because("filter of slices", "weir filters an answer that it fetches in parts as one body; nginx filters each part by itself")
def is_filter_of_slices(_request, difference, nginx, weir):
    """sub_filter on an answer that is fetched in parts."""
    is_in_parts = sum(any(name == "Range" for name, _ in one["headers"]) for one in weir["seen"]) > 1 or is_status_of(weir, "HIT")
    return difference.where == "body" and is_in_parts and "slice " in nginx.get("conf", "") and "sub_filter " in nginx["conf"] and nginx["answer"]["body"][:1000] == weir["answer"]["body"][:1000]


@because("range of a method", "Range is for GET (RFC 9110 14.2): with other methods weir neither offers nor uses it, whatever proxy_force_ranges says")
def is_range_of_method(request, difference, nginx, weir):
    """Range, and the field that offers it, with another method than GET and HEAD."""
    if request.method in ("GET", "HEAD"):
        return False
    is_ranged = any(name == "Range" for name, _ in request.headers)
    if is_ranged and "slice " in nginx.get("conf", "") and {modern(one["line"]) for one in nginx["seen"]} == {one["line"] for one in weir["seen"]}:
        # The slices of the range, or all of the answer.
        if difference.where.lower() in ("status", "log: status", "number of requests at origins", "origin: field range"):
            return True
    return difference.where == "field accept-ranges" and difference.weir == "[]" or is_ranged and difference.where in ("status", "log: status") and re.search("206|416", difference.nginx) is not None


@because("slice without ranges", "an answer that takes no range (`max_ranges 0`, a filter that changes lengths) is whole; nginx sends the slices of the client's range as if they were all of it", leaves="cache")
def is_slice_without_ranges(request, difference, nginx, weir):
    """A range of an answer in parts, where the answer has no ranges."""
    is_ranged = any(name == "Range" for name, _ in request.headers)
    bodies = [record["answer"]["body"] for record in (nginx, weir)]
    # The first slice, and the range behind it.
    first = len(os.path.commonprefix(bodies))
    is_part = " 200" in nginx["answer"]["status"] and 1000 <= first < len(bodies[0]) < len(bodies[1]) and bodies[0][first:] in bodies[1] or " 200" in nginx["answer"]["status"] and bodies[0] in bodies[1] and len(bodies[0]) < len(bodies[1])
    return is_ranged and is_part and "slice " in nginx.get("conf", "") and difference.where in ("body", "end", "number of requests at origins")


@because("many slices", "nginx sends a body again with each slice, and takes longer than the composer's client waits")
def is_slow_slices(request, difference, nginx, _weir):
    """An answer in dozens of parts, to a request with a body."""
    is_slow = nginx["answer"]["status"] == "silence" and len(nginx["seen"]) > 20 and bool(getattr(request, "body", None))
    return is_slow and "slice " in nginx.get("conf", "") and difference.where.startswith(("status", "log: ", "number of requests"))


@because("slice in a text", "`$slice_range` is the first part in a text of `return` too; nginx has none once a status is there")
def is_slice_in_text(_request, difference, nginx, weir):
    """`$slice_range` in the text of `return`."""
    texts = [record["answer"]["body"].decode("latin-1") for record in (nginx, weir)]
    is_written = re.search(r"return [^;]*\$slice_range", nginx.get("conf", "")) is not None
    return is_written and difference.where == "body" and re.sub(r"bytes=\d+-\d+", "", texts[1]) == texts[0]


@because("slice of gRPC", "weir slices no answers of gRPC, which are not kept (docs/guide/grpc.md)")
def is_slice_of_grpc(_request, difference, nginx, weir):
    """`$slice_range` in a request of gRPC."""
    if re.search(r"grpc_set_header \S+ \$slice_range", nginx.get("conf", "")) is None:
        return False
    asked = [[str([value for name, value in one["headers"] if name == "range"]) for one in record["seen"] if one["line"].startswith("grpc: ")] for record in (nginx, weir)]
    if difference.where == "origin: field range":
        return difference.weir == "[]" and difference.nginx in asked[0] and "[]" in asked[1]
    if difference.where in ("status", "log: status") and set(asked[1]) == {"[]"} and "[]" not in asked[0]:
        # A part of the answer, and all of it. A part that nginx did not ask for ends the connection.
        return "206" in difference.nginx and "200" in difference.weir or difference.nginx == "closed"
    if nginx["answer"]["status"] == "closed" and difference.where.startswith("log: "):
        return set(asked[1]) == {"[]"} and "[]" not in asked[0]
    # nginx joins slices to an answer of another length and status.
    is_joined = any("206" in line.get("upstream_status", "") for line in nginx["log"]) and not any("206" in line.get("upstream_status", "") for line in weir["log"])
    return is_joined and set(asked[1]) == {"[]"} and difference.where.startswith(("body", "field content-length", "field transfer-encoding", "number of requests", "log: body_bytes_sent", "log: upstream_", "log: sent_http_content_length", "log: sent_http_transfer_encoding"))


@because("slice read", "nginx keeps the empty `$slice_range` that a subrequest has read")
def is_slice_read(_request, difference, nginx, _weir):
    """`$slice_range` after a subrequest that has read it, where it has no value."""
    conf = nginx.get("conf", "")
    return difference.where.lower() == "origin: field range" and difference.nginx == "[]" and difference.weir.startswith("['bytes=0-") and "$slice_range" in conf and re.search("auth_request /|mirror [/@]", conf) is not None


@because("slice cut", "if a range meets slices and compression, nginx sends a part of the body with 200; weir sends all of it", leaves="cache")
def is_slice_cut(request, difference, nginx, weir):
    """A range of a compressed answer in slices: nginx sends 200 with a part of the body, and asks for the slices of that part."""
    if difference.where != "number of requests at origins" or re.search(r"slice \d+k", nginx.get("conf", "")) is None or not any(name == "Range" for name, _ in request.headers):
        return False
    bodies = [record["answer"]["body"] for record in (nginx, weir)]
    is_part = bodies[0] in bodies[1] and 0 < len(bodies[0]) < len(bodies[1]) and nginx["answer"]["status"].split(" ")[1:2] == weir["answer"]["status"].split(" ")[1:2] == ["200"]
    return is_part and {one["line"] for one in nginx["seen"]} == {one["line"] for one in weir["seen"]}


@because("slices and trailers", "nginx ends a range in slices after the first one if the answer has trailers; weir sends all of it")
def is_slice_with_trailers(request, difference, nginx, weir):
    """A range of an answer in slices that has trailers (add_trailer)."""
    conf = nginx.get("conf", "")
    bodies = [record["answer"]["body"] for record in (nginx, weir)]
    is_cut = all(record["answer"]["status"].split(" ")[1:2] == ["206"] for record in (nginx, weir)) and bodies[1].startswith(bodies[0]) and len(bodies[0]) < len(bodies[1])
    return is_cut and "add_trailer " in conf and re.search(r"slice \d+k", conf) is not None and any(name == "Range" for name, _ in request.headers) and difference.where in ("body", "number of requests at origins")


@because("slice in the log", "slices of weir are parts of one request and have one line in the log; nginx writes a line for each with log_subrequest")
def is_slice_logged(_request, difference, nginx, _weir):
    """The log lines of slices: for nginx they are subrequests."""
    if difference.where != "log: number of lines" or re.search(r"slice \d+k", nginx.get("conf", "")) is None or "log_subrequest on" not in nginx["conf"]:
        return False
    theirs, ours = ast.literal_eval(difference.nginx), ast.literal_eval(difference.weir)
    return len(theirs) > len(ours) > 0 and set(theirs) == set(ours)


@because("ranges of a film", "weir answers several ranges of a film with a start by all of it; nginx by parts if they lie in one buffer, else it closes")
def is_ranges_of_film(request, difference, nginx, weir):
    """Several ranges of a film that begins at a time or a byte."""
    ranges = [value for name, value in request.headers if name == "Range" and "," in value]
    is_film = re.search(r"^\s*(?:flv|mp4);", nginx.get("conf", ""), re.MULTILINE) is not None and "start=" in request.target and "/film." in request.target
    is_answered = nginx["answer"]["status"].split(" ")[1:2] == ["206"] or nginx["answer"]["status"] == "closed"
    return bool(ranges) and is_film and is_answered and weir["answer"]["status"].split(" ")[1:2] == ["200"] and difference.where in ("status", "log: status", "log: number of lines")


@because("slice with a subrequest", "if an answer has slices and other subrequests (add_before_body), nginx loses the request and never answers")
def is_slice_stuck(_request, difference, nginx, _weir):
    """An answer in slices with another subrequest in it: nginx loses the request ("finalize non-active request") and never answers."""
    if "http finalize non-active request" not in nginx.get("told", ()) or re.search(r"slice \d+k", nginx["conf"]) is None or re.search("add_before_body |add_after_body |ssi on", nginx["conf"]) is None:
        return False
    return difference.where == "files: cached" or nginx["answer"]["status"] in ("silence", "closed") and difference.where.startswith(("status", "number of requests", "log: ", "origin: "))
