"""Lengths of bodies, announced and counted."""
import re

from rules.basis import FRAME, NGINX, because, has_line_of_subrequest, is_of_stored


@because("length of a page", "HEAD announces the length of an error page, and the product's name is in the page")
def is_page_length(request, difference, nginx, weir):
    """HEAD: the announced length of an error page differs by the product's name alone."""
    if request.method != "HEAD" or difference.where != "field content-length":
        return False
    lengths = [sum(int(value) for name, value in record["answer"]["headers"] if name.lower() == "content-length") for record in (nginx, weir)]
    return lengths[0] - lengths[1] in [len(name) - len("weir") for name in ("nginx", *NGINX)]


@because("length of a page in the log", "the product's name is in the page, and a compressed page has another length")
def is_page_in_log(_request, difference, nginx, _weir):
    """The log line of an answer with an error page, by the product's name in one to four pages."""
    if difference.where not in ("log: body_bytes_sent", "log: sent_http_content_length") or not (difference.nginx.isdigit() and difference.weir.isdigit()):
        return False
    return int(difference.nginx) - int(difference.weir) in range(1, 5) or "gzip" in str(nginx["answer"]["headers"])


@because("length from the origin", "`$upstream_response_length` counts the bytes of the body; nginx also counts the sizes of its chunks")
def is_framing_of_origin(_request, difference, _nginx, _weir):
    """The chunks of the origin's answer, in `$upstream_response_length`."""
    left, right = (re.split("[,:] | : ", lengths) for lengths in (difference.nginx, difference.weir))
    return difference.where == "log: upstream_response_length" and len(left) == len(right) and all(one == other or one.isdigit() and other.isdigit() and int(one) > int(other) for one, other in zip(left, right))


@because("length without a body", "weir never announces a body to an origin that it does not send (docs/guide/mirror.md, auth_request.md)")
def is_length_without_body(_request, difference, nginx, weir):
    """A Content-Length that nginx announces to the origin without a body; and the origin that waits for it."""
    def is_late(one):
        return not any(name.lower() in ("x-n", "http_x_n") for name, _ in one["headers"]) and not one["body"] and any(name.lower() == "content-length" and value != "0" for name, value in one["headers"])
    if difference.where.startswith(("number of requests", "origin: ")) and any(is_late(one) for one in nginx["seen"]) and sorted(one["line"] for one in nginx["seen"]) != sorted(one["line"] for one in weir["seen"]):
        # A request without a number: the origin has waited for its body, and may have seen it beside a later one.
        return True
    if difference.nginx == "silence" or nginx["answer"]["status"] == "silence":
        # A copy of the request before may have left such a length on the connection.
        is_after = "mirror_request_body off" in nginx.get("conf", "") and any(getattr(one, "body", None) for one in nginx.get("earlier", ())[-1:])
        return is_after or any(name.lower() == "content-length" and value != "0" and not one["body"] for one in nginx["seen"] for name, value in one["headers"])
    return difference.where.lower() in ("origin: field content-length", "origin: field content_length", "origin: field http_content_length") and difference.weir in ("[]", "['0']", "['']") and any(not one["body"] for one in weir["seen"])


@because("length of a body that comes", "a body that weir passes on while it comes has no length for the origin; nginx names the length if the whole body has come (RFC 9112 6.1 allows both)")
def is_length_of_chunks(request, difference, nginx, weir):
    """Content-Length and Transfer-Encoding of a chunked body, which the origin gets whole from both."""
    names = ("origin: field content-length", "origin: field transfer-encoding", "origin: field content_length")
    is_same = sorted(one["body"] for one in nginx["seen"]) == sorted(one["body"] for one in weir["seen"])
    return getattr(request, "is_chunked", False) and is_same and difference.where.lower() in names and difference.weir in ("[]", "['chunked']")


@because("length of 416", "`$upstream_response_length` counts what the origin has sent, also if the client's range is outside of it")
def is_length_outside(_request, difference, nginx, _weir):
    """The length of an origin's answer that has no byte of the range."""
    return difference.where == "log: upstream_response_length" and difference.nginx == "0" and nginx["answer"]["status"].split(" ")[1:2] == ["416"]


@because("line of a subrequest", "a subrequest's line in the log counts its own bytes; nginx counts those that the client got before")
def is_line_of_subrequest(_request, difference, nginx, _weir):
    """The bytes in the log line of a subrequest: nginx counts those of the whole connection."""
    return difference.where == "log: body_bytes_sent" and "log_subrequest on" in nginx.get("conf", "") and has_line_of_subrequest(nginx)


@because("length of chunks", "`$content_length` of a body in chunks is known while weir has the body; nginx counts what it read, and 0 for a body that it discards")
def is_length_of_chunks(request, difference, nginx, _weir):
    """The length of a body in chunks, in the log or in a text."""
    if "$content_length" in nginx.get("conf", "") and (request.http2 or getattr(request, "is_chunked", False)):
        return difference.where.startswith(("field ", "body", "log: ", "origin: field ", "trailers"))
    is_open = request.http2 or getattr(request, "is_chunked", False)
    if is_open and "_request_buffering off" in nginx.get("conf", "") and difference.where.startswith("origin: field "):
        # The whole body has come when weir asks the origin.
        name = difference.where.lower().removeprefix("origin: field ")
        return name == "transfer-encoding" and difference.weir == "[]" or name == "content-length" and difference.nginx == "[]"
    return difference.where == "log: content_length" and is_open


@because("interim answer counted", "`$body_bytes_sent` has no bytes of `100 Continue`; nginx counts them")
def is_interim_counted(request, difference, _nginx, _weir):
    """The 25 bytes of `100 Continue`, in the count of the body's bytes."""
    return difference.where == "log: body_bytes_sent" and getattr(request, "expects", False) and difference.nginx.isdigit() and int(difference.nginx) - int(difference.weir) - len("HTTP/1.1 100 Continue\r\n\r\n") in range(5)


@because("length written", "weir itself says the length of the body that it sends to an origin (docs/guide/nginx-files.md)", leaves="group")
def is_length_written(_request, difference, nginx, weir):
    """A Content-Length that the file writes for a request to an origin."""
    is_written = re.search(r"_set_body |_set_header Content-Length |_param CONTENT_LENGTH ", nginx.get("conf", "")) is not None
    is_refused = {one["line"].partition(": ")[0] for one in weir["seen"]} == {"grpc"} and not any(one["line"].startswith("grpc: ") for one in nginx["seen"]) and any("502" in line.get("upstream_status", "") for line in nginx["log"])
    if is_written and is_refused:
        # An origin of HTTP/2 refuses a body of another length than the told one (RFC 9113 8.1.1). An error page may have asked another origin.
        return difference.where.startswith(("status", "number of requests", "log: ", "field ", "body", "end"))
    lines = [[one["line"].partition(": ")[2] for one in record["seen"]] for record in (nginx, weir)]
    if is_written and any(line not in lines[1] and any(line.endswith(other) for other in lines[1]) for line in lines[0]):
        # Bytes of a body without a length, on the connection of the next request: its answer has another length.
        if difference.where in ("body", "field content-encoding", "field transfer-encoding", "field content-length", "field vary", "log: sent_http_transfer_encoding") or difference.where == "origin: request line" and difference.nginx.endswith(difference.weir.partition(": ")[2]):
            return True
    elif is_written and difference.where in ("body", "log: upstream_response_length"):
        # The answer says what came.
        bodies = [str(record["answer"]["body"]) for record in (nginx, weir)]
        return bodies[0] != bodies[1] and len({re.sub(r"b=\d+:b'.*'", "", body) for body in bodies}) == 1
    return difference.where.lower() in ("origin: field content-length", "origin: field content_length", "origin: body") and re.search(r"_set_header Content-Length |_param CONTENT_LENGTH ", nginx.get("conf", "")) is not None


@because("framing", "the sizes of chunks and frames are not a body's bytes, and depend on packets")
def is_framing(request, difference, nginx, weir):
    """The sizes of chunks, which depend on packets, in the log line of a chunked answer; or those of a request in chunks or frames."""
    if difference.where == "log: body_bytes_sent":
        # Over HTTP/3, nginx counts the heads of DATA frames, but for the one frame of an answer whose length it knows at first.
        told = next((value for name, value in weir["answer"]["headers"] if name.lower() == "content-length"), difference.weir)
        is_more = difference.nginx.isdigit() and difference.weir.isdigit() and int(difference.nginx) > int(difference.weir)
        is_in_frames = getattr(request, "is_http3", False) and is_more and difference.weir == told
        return is_in_frames or ("Transfer-Encoding", "chunked") in nginx["answer"]["headers"] or nginx["answer"]["end"] in ("cut short", "reset")
    return difference.where == "log: request_length" and (request.http2 or getattr(request, "is_chunked", False))


@because("part of a HEAD", "weir reads the part that it has asked for, also for HEAD")
def is_part_of_head(request, difference, nginx, _weir):
    """The part that a HEAD asks for."""
    return difference.where == "log: upstream_response_length" and request.method == "HEAD" and difference.nginx == "0" and difference.weir in ("1024", "4096") and "slice " in nginx.get("conf", "")


@because("stored coding", "weir stores a compressed body beside the plain one, so its length is known (docs/guide/cache.md)")
def is_stored_coding(_request, difference, _nginx, weir):
    """The length of a compressed answer that weir has stored."""
    return difference.where in ("field content-length", "field transfer-encoding") and "_cache " in weir.get("conf", "") and ("Content-Encoding", "gzip") in weir["answer"]["headers"]


@because("unread body", "`$request_length` of a body that nobody reads depends on what had come")
def is_unread_counted(request, difference, _nginx, _weir):
    """The bytes of a body that nobody has read, in `$request_length`."""
    return difference.where == "log: request_length" and getattr(request, "body", None) is not None


@because("length over HTTP/2", "an origin of HTTP/2 that tells no length: weir says 0 if there is no body, and nothing for HEAD (RFC 9110 9.3.2) and 304 (8.6); nginx the other way round")
def is_length_over_http2(request, difference, nginx, weir):
    """The length of an answer whose origin speaks HTTP/2 and tells none."""
    if not any(one["line"].startswith("grpc: ") for one in (*weir["seen"], *nginx["seen"])):
        return False
    is_told = difference.where in ("field content-length", "log: sent_http_content_length")
    if is_told and nginx["answer"]["status"].startswith("HTTP/1.1 304"):
        return difference.nginx in ("['0']", "0") and difference.weir in ("[]", "")
    if request.method == "HEAD":
        # Compression and sub_filter then see another length.
        return is_told and difference.nginx in ("['0']", "0") and difference.weir in ("[]", "") or difference.where in ("field content-encoding", "field vary", "field etag", "log: sent_http_etag", "field last-modified", "log: sent_http_last_modified", "field accept-ranges")
    if difference.where == "field vary" and not nginx["answer"]["body"] and ("Content-Length", "0") in weir["answer"]["headers"]:
        # Nothing to compress.
        return True
    if difference.where == "origin: field content-length":
        return difference.nginx == "[]" and bool(getattr(request, "body", None))
    return is_told and difference.weir in ("['0']", "0") or difference.where == "field transfer-encoding" and difference.weir == "[]" and not weir["answer"]["body"]


@because("end of a cut body", "sub_filter of nginx keeps the bytes that could begin a match, and loses them if the answer is cut short")
def is_cut_body(_request, difference, nginx, weir):
    """The end of a body that was cut short."""
    bodies = sorted((nginx["answer"]["body"], weir["answer"]["body"]), key=len)
    is_cut = "o=short" in str(nginx["seen"]) or weir["answer"]["end"] in ("cut short", "reset") and nginx["answer"]["end"] in ("cut short", "reset")
    return difference.where in ("body", "log: body_bytes_sent") and bodies[1].startswith(bodies[0]) and is_cut


@because("count", "a count of bytes in a text has the reasons of the same count in the log")
def is_count(_request, difference, nginx, weir):
    """A count of bytes in a text of the file."""
    if re.search(r"\$(?:body_bytes_sent|bytes_sent|request_length|upstream_response_length|content_length)\b", nginx.get("conf", "")) is None:
        return False
    texts = [difference.nginx, difference.weir]
    if difference.where == "body":
        texts = [record["answer"]["body"].decode("latin-1") for record in (nginx, weir)]
    return difference.where not in FRAME and difference.where.startswith(("field ", "trailers", "origin: field ", "log: sent_", "body")) and len({re.sub(r"\d+", "0", text) for text in texts}) == 1


@because("length of a stored answer", "weir knows the length of an answer that the cache has whole")
def is_length_of_stored(_request, difference, nginx, weir):
    """The length of an answer that the cache has."""
    return (is_of_stored(nginx) or is_of_stored(weir)) and (difference.where in ("field content-length", "log: sent_http_content_length") and difference.nginx in ("[]", "") or difference.where == "field transfer-encoding" and difference.weir == "[]" or is_too_short(difference, weir))


def is_too_short(difference, weir):
    """Whether weir does not compress an answer because it knows that it is short (gzip_min_length)."""
    return difference.where in ("field content-encoding", "field vary") and difference.weir == "[]" and len(weir["answer"]["body"]) < 20
