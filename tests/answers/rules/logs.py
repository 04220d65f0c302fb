"""Values in the access log, and its lines."""
import re

from rules.basis import SUBREQUEST, because, has_line_of_subrequest


@because("interim status", "`$upstream_status` is the status of the answer; nginx keeps that of the interim answer before it")
def is_interim_in_log(_request, difference, nginx, _weir):
    """The status of an interim answer of the origin, in `$upstream_status`."""
    if difference.where.startswith(("trailers", "field ")):
        return "$upstream_status" in nginx.get("conf", "") and "103" in difference.nginx and difference.nginx.replace("103", "200") == difference.weir
    return difference.where in ("log: upstream_status", "log: sent_trailer_x_t1") and "103" in difference.nginx and "103" not in difference.weir


@because("bytes before silence", "how much of an endless answer is sent before the client leaves depends on the moment, and so does its log line")
def is_sent_in_vain(_request, difference, nginx, weir):
    """`$body_bytes_sent` and the line of an answer whose end neither server reaches in time."""
    return difference.where in ("log: body_bytes_sent", "log: number of lines") and nginx["answer"]["status"] == weir["answer"]["status"] == "silence"


@because("log after post_action", "after post_action, nginx's log line mixes both requests: the place of the one, fields and bytes of the other", leaves="cache")
def is_after(_request, difference, nginx, weir):
    """The log line of a request with a post_action, and the connection or the stream after it."""
    if "post_action " not in nginx.get("conf", ""):
        return False
    if difference.where == "end":
        # 444 of a post_action: the client has its whole answer already.
        return (difference.nginx, difference.weir) == ("reset", "ended") and "444" in nginx["conf"]
    if difference.where.startswith("origin: ") and "auth_request /" in nginx["conf"]:
        # After `return`, nginx checks the post_action and does not go on; the rest is not the same request.
        return sorted(one["line"] for one in nginx["seen"]) != sorted(one["line"] for one in weir["seen"])
    return difference.where.startswith(("log: ", "number of requests", "files: cached")) or difference.nginx in ("closed", "silence")


@because("body after post_action", "nginx sends no body that is in a file with a post_action, although it announces one; the origin waits for it", leaves="group")
def is_body_after(_request, difference, nginx, _weir):
    """The body of a post_action, if client_body_in_file_only has put it into a file."""
    conf = nginx.get("conf", "")
    return difference.where == "origin: body" and difference.nginx == "" and "post_action " in conf and "client_body_in_file_only " in conf


@because("too large while it comes", "a body without a length is found too large after weir has looked into the cache, or has chosen an origin for a body that it passes on while it comes")
def is_found_too_large(request, difference, nginx, weir):
    """The upstream in the log line of a 413."""
    is_413 = all(record["answer"]["status"].split(" ")[1:2] == ["413"] for record in (nginx, weir))
    # nginx passes each body to gRPC while it comes.
    is_early = difference.where == "log: upstream_cache_status" or re.search("_request_buffering off|grpc_pass ", nginx.get("conf", "")) is not None
    return is_413 and difference.where.startswith("log: upstream_") and is_early and (request.http2 or getattr(request, "is_chunked", False))


@because("first value", "nginx keeps the value that a variable had when it was read first; weir gives that of the moment (docs/guide/nginx-files.md)")
def is_first_value(_request, difference, nginx, _weir):
    """A variable in the log that the file reads elsewhere too, before the answer is there."""
    name = difference.where.removeprefix("log: ")
    if name in ("uri", "request_filename", "args", "is_args"):
        names = {"uri": "(?:document_)?uri", "args": "(?:args|query_string)"}.get(name, name)
        # The line of a subrequest reads them all.
        return re.search(rf"\${names}\b|log_subrequest on", nginx.get("conf", "")) is not None
    if name == "remote_addr":
        # realip of a location changes it after `if` has read it.
        return re.search(r"\$remote_addr\b", nginx.get("conf", "")) is not None and "set_real_ip_from" in nginx["conf"]
    return name.startswith(("sent_http_", "upstream_", "limit_", "request_completion")) and difference.where.startswith("log: ") and re.search(rf"\${name}\b", nginx.get("conf", "")) is not None


@because("unsent trailer", "`$sent_trailer_NAME` is a trailer that was sent; nginx computes it for answers without chunks too")
def is_trailer_unsent(_request, difference, _nginx, weir):
    """A trailer that is not sent, because the answer is not in chunks."""
    return difference.where.startswith("log: sent_trailer_") and difference.weir in ("", "-") and not weir["answer"]["trailers"]


@because("log line of a subrequest", "nginx fills the fields of a subrequest's answer only if its body is sent")
def is_subrequest_logged(_request, difference, nginx, _weir):
    """The log line of a subrequest, and the trailer with the value that this line has read first."""
    if difference.where == "trailers":
        values = [value for line in nginx["log"] for name, value in line.items() if name.startswith("sent_http_") and value]
        is_read = re.search(r"add_trailer [^;]*\$sent_http_", nginx.get("conf", "")) is not None
        return is_read and "log_subrequest on" in nginx["conf"] and len(nginx["log"]) > 1 and difference.nginx.partition(": ")[2] in values
    return difference.where.startswith(("log: request_completion", "log: sent_http_", "log: sent_trailer_")) and "log_subrequest on" in nginx.get("conf", "") and has_line_of_subrequest(nginx)


@because("overwritten Location", "nginx writes the Location that it changes over the origin's, so its variable has parts of both")
def is_overwritten_location(_request, difference, _nginx, _weir):
    """`$upstream_http_location` after proxy_redirect: nginx changes the origin's bytes."""
    return difference.where == "log: upstream_http_location" and len(difference.nginx) == len(difference.weir)


@because("end of a slow answer", "after an answer with a rate, nginx waits before it ends the request; a client that closes then is one that left early, and what is read for a cache after `304` is not stored", leaves="cache")
def is_end_of_slow(_request, difference, nginx, weir):
    """`$request_completion` of an answer with a rate, whose client is content and closes."""
    is_slow = "o=accelodd" in str(nginx["seen"]) or re.search(r"\b(?:proxy_)?limit_rate ", nginx.get("conf", "")) is not None
    return difference.where == "log: request_completion" and (difference.nginx.strip("-"), difference.weir) == ("", "OK") and is_slow and nginx["answer"]["end"] == weir["answer"]["end"] and nginx["answer"]["end"] in ("kept", "closed", "ended")


@because("status in the log", "`$status` is the status that the client gets; nginx has that of error_page, also if a range or a condition makes it 206 or 304 (docs/guide/nginx-files.md)")
def is_status_in_log(_request, difference, nginx, weir):
    """The status in the log of a page of error_page that a range or a condition changes."""
    is_sent = all(record["answer"]["status"].split(" ")[1:2] == [difference.weir] for record in (nginx, weir))
    return difference.where == "log: status" and difference.weir in ("206", "304") and is_sent and "error_page " in nginx.get("conf", "")


@because("sent field", "`$sent_http_NAME` is the field as it was sent; nginx has it before its last changes")
def is_sent_field(_request, difference, nginx, weir):
    """`$sent_http_NAME`, which is the field that was sent, as the client sees it."""
    if difference.where == "log: status":
        # `error_page 401 =200 /page` of nginx: the line has 200, whatever was sent.
        return f" {difference.weir}" in nginx["answer"]["status"] and f" {difference.weir}" in weir["answer"]["status"] and difference.nginx not in nginx["answer"]["status"]
    if difference.where.startswith("field ") and " 204" in nginx["answer"]["status"] and "$sent_http_content_type" in nginx.get("conf", ""):
        return difference.nginx.count("'") > difference.weir.count("'")
    if not difference.where.startswith("log: sent_http_") or "answer" not in nginx:
        return False
    name = difference.where.removeprefix("log: sent_http_").replace("_", "-")

    def sent(record):
        return [value for found, value in record["answer"]["headers"] if found.lower() == name]

    def is_sent(record, told):
        return told.strip("-") in (", ".join(sent(record)), (sent(record) or [""])[-1])
    return len(nginx["log"]) == 1 and not is_sent(nginx, difference.nginx) and is_sent(weir, difference.weir)


@because("host of a refused head", "weir reads no field of a head that it refuses because of its length; nginx knows the fields before the bound")
def is_host_of_refused(_request, difference, nginx, weir):
    """`$host` of a request whose head is too large."""
    is_refused = all(b"Request Header Or Cookie Too Large" in record["answer"]["body"] for record in (nginx, weir))
    return is_refused and difference.where == "log: host"


@because("asked again, in the log", "the second try after a kept connection was found closed has no place of its own in weir's log")
def is_asked_again_in_log(_request, difference, nginx, _weir):
    """A request that found a kept connection closed, sent once more to the same server, in the log."""
    if not difference.where.startswith("log: upstream_"):
        return False
    for line in nginx["log"]:
        addresses = line.get("upstream_addr", "").split(", ")
        if len(addresses) != len(set(addresses)) and len(difference.nginx.split(", ")) > len(difference.weir.split(", ")):
            return True
    return False


@because("condition of a log", "nginx computes a map once for a request and its subrequests; weir for each of them")
def is_condition_of_log(_request, difference, nginx, _weir):
    """A condition of the log, for a request and its subrequest."""
    conf = nginx.get("conf", "")
    return difference.where == "log: number of lines" and "log_subrequest on" in conf and re.search(r"access_log [^;]* if=\$", conf) is not None and re.search(SUBREQUEST, conf) is not None


@because("part in the log", "the parts of a sliced answer are no subrequests of weir: they have no lines in the log (docs/guide/nginx-files.md)")
def is_part_logged(_request, difference, nginx, weir):
    """The parts of a sliced answer in the log."""
    is_sliced = re.search(r"\bslice [1-9]", nginx.get("conf", "")) is not None and "log_subrequest on" in nginx["conf"]
    return difference.where == "log: number of lines" and is_sliced and len(nginx["log"]) > len(weir["log"])
