"""The deliberate differences between weir and nginx: one list of rules for `real_answers.py` and `compose.py`."""
import ast
import posixpath
import re
import urllib.parse

from compare import body, headers

# nginx's name with its version, as `nginx -v` says it.
NGINX = []


# A statement that makes subrequests.
SUBREQUEST = r"\b(?:add_(?:before|after)_body|ssi|mirror|auth_request|slice|\w+_background_update) "


def is_page_length(request, difference, nginx, weir):
    """HEAD: the announced length of an error page differs by the product's name alone."""
    if request.method != "HEAD" or difference.where != "field content-length":
        return False
    lengths = [sum(int(value) for name, value in record["answer"]["headers"] if name.lower() == "content-length") for record in (nginx, weir)]
    return lengths[0] - lengths[1] in [len(name) - len("weir") for name in ("nginx", *NGINX)]


def is_websocket(request, difference, nginx, weir):
    """An Upgrade that nginx does not pass on; a subrequest never has it."""
    asking = {one["line"] for one in weir["seen"] if any(name.lower() == "upgrade" for name, _ in one["headers"])}
    if re.search(SUBREQUEST, nginx.get("conf", "")) is not None and (len(asking) > 1 or any("/auth" in line for line in asking)):
        return False
    return request.what == "Upgrade" and (difference.where == "status" and difference.weir.startswith("HTTP/1.1 101")
                                          or difference.where in ("origin: field Connection", "origin: field Upgrade") and difference.nginx == "[]")


def is_fragment(request, difference, _nginx, weir):
    """A target with a fragment, for an origin."""
    return "#" in request.target and weir["answer"]["status"].startswith("HTTP/1.1 400") and difference.where in ("status", "number of requests at origins")


def is_permission(request, difference, nginx, weir):
    """`100 Continue` to a client that has sent the body, or whose body nobody reads."""
    is_answered = request.what == "Expect" and not (nginx["seen"] or weir["seen"])
    return difference.where == "interim answers" and (is_answered or request.what == "Expect with the body" or getattr(request, "expects", False))


def is_order_of_vary(_request, difference, nginx, weir):
    """The same values of Vary in another order."""
    return difference.where == "field vary" and set(headers(nginx["answer"])["vary"]) == set(headers(weir["answer"])["vary"])


def is_of_cache(request, difference, nginx, weir):
    """A condition or a range at a location with a cache: weir answers it, nginx sends the whole answer."""
    if difference.where == "field accept-ranges":
        # Age is in a stored answer of weir, also where no line of the log says so.
        is_stored = is_of_stored(nginx) or "_cache " in nginx.get("conf", "") and any(name == "Age" for name, _ in weir["answer"]["headers"])
        return difference.nginx == "[]" and difference.weir == "['bytes']" and (bool(weir["seen"] or nginx["seen"]) or is_stored)
    is_asked = any(name.startswith(("If-", "Range")) for name, _ in request.headers)
    if is_asked and "slice " in nginx.get("conf", "") and "206" in nginx["answer"]["status"] and "304" in weir["answer"]["status"]:
        # nginx looks at the condition only if the origin's answer is a 200.
        return difference.where.startswith(("status", "number of requests", "log: ", "field "))
    if is_asked and difference.where in ("number of requests at origins", "log: number of lines") and weir["answer"]["status"].split(" ")[1:2][0] in ("304", "412", "416") and re.search("add_before_body |add_after_body |error_page [^;]*416|\\$slice_range", nginx.get("conf", "")):
        # An answer without a body has no additions and no further slices, and an error can have a page.
        return True
    if difference.where.lower() == "origin: field if-range":
        # The range behind proxy_cache_max_range_offset.
        return difference.nginx == "[]" and "_cache_max_range_offset " in nginx.get("conf", "") and any(name == "Range" for name, _ in request.headers)
    return is_asked and (difference.where == "status" and difference.nginx.split(" ")[1:2] == ["200"] and difference.weir.split(" ")[1:2][0] in ("206", "304", "412", "416")
                         or difference.where == "origin: field Range" and difference.nginx == "[]")


def is_lost_charset(request, difference, nginx, weir):
    """The charset of the answer that `X-Accel-Redirect` replaced; and the body that is recoded or not."""
    if "=accel" not in request.target:
        return False
    types = [re.sub("; charset=.*", "", str(headers(record["answer"])["content-type"])) for record in (nginx, weir)]
    is_other = types[0] == types[1] and headers(nginx["answer"])["content-type"] != headers(weir["answer"])["content-type"]
    if difference.where in ("body", "field content-length", "field transfer-encoding", "log: sent_http_content_length", "log: sent_http_transfer_encoding", "log: body_bytes_sent"):
        # Up to the first character that the two write in other ways.
        return is_other and len({re.split("[^\n -~]|[?]|&#", body(record["answer"]))[0] for record in (nginx, weir)}) == 1
    return difference.where in ("field content-type", "log: sent_http_content_type") and difference.nginx.partition("; charset=")[0].rstrip("']") == difference.weir.partition("; charset=")[0].rstrip("']")


def is_of_handshake(request, _difference, _nginx, _weir):
    """A request without a host over TLS, from a client that named a server in its handshake."""
    return request.what in ("no version",)


def is_broken_stream(request, difference, _nginx, _weir):
    """An answer over HTTP/2 that curl drops (`client.BROKEN_STREAM`), from one of the edges alone."""
    return request.http2 and bool(request.body) and difference.where == "status" and "curl's error 92" in (difference.nginx, difference.weir)


def is_page_in_log(_request, difference, nginx, _weir):
    """The log line of an answer with an error page, by the product's name in one to four pages."""
    if difference.where not in ("log: body_bytes_sent", "log: sent_http_content_length") or not (difference.nginx.isdigit() and difference.weir.isdigit()):
        return False
    return int(difference.nginx) - int(difference.weir) in range(1, 5) or "gzip" in str(nginx["answer"]["headers"])


def is_framing_of_origin(_request, difference, _nginx, _weir):
    """The chunks of the origin's answer, in `$upstream_response_length`."""
    left, right = (re.split("[,:] | : ", lengths) for lengths in (difference.nginx, difference.weir))
    return difference.where == "log: upstream_response_length" and len(left) == len(right) and all(one == other or one.isdigit() and other.isdigit() and int(one) > int(other) for one, other in zip(left, right))


def of_servers(conf):
    """The text of a file without its locations."""
    return re.sub(r"(?m)^    location [^\n]*\{\n(?:     [^\n]*\n)*    \}\n", "", conf)


def is_kept_by_refusal(_request, difference, nginx, _weir):
    """The last request of a connection, if nginx answers it before it has looked at the location's settings; and the request after it."""
    conf = nginx.get("conf", "")
    if difference.where not in ("field connection", "field keep-alive", "end") or re.search(r"keepalive_(?:requests|timeout|disable|time) ", conf) is None:
        return False
    status = nginx["answer"]["status"].split(" ")[1:2]
    is_early = status == ["404"] and "internal;" in conf or status[:1] in [[found] for found in re.findall(r"return (\d+)", of_servers(conf))]
    return is_early or nginx.get("is_other_connection", False) and "keepalive_requests " in conf


def is_kept_by_length(_request, difference, nginx, weir):
    """The connection of an answer whose length weir alone knows, if the file takes the chunks away."""
    lengths = [headers(record["answer"]).get("content-length", []) for record in (nginx, weir)]
    return difference.where in ("end", "field connection", "field keep-alive") and "chunked_transfer_encoding off" in nginx.get("conf", "") and not lengths[0] and len(lengths[1]) == 1


def is_length_without_body(_request, difference, nginx, weir):
    """A Content-Length that nginx announces to the origin without a body; and the origin that waits for it."""
    if difference.nginx == "silence" or nginx["answer"]["status"] == "silence":
        return any(name.lower() == "content-length" and value != "0" and not one["body"] for one in nginx["seen"] for name, value in one["headers"])
    return difference.where.lower() in ("origin: field content-length", "origin: field content_length", "origin: field http_content_length") and difference.weir in ("[]", "['0']", "['']") and any(not one["body"] for one in weir["seen"])


def is_interim_in_log(_request, difference, nginx, _weir):
    """The status of an interim answer of the origin, in `$upstream_status`."""
    if difference.where.startswith(("trailers", "field ")):
        return "$upstream_status" in nginx.get("conf", "") and "103" in difference.nginx and difference.nginx.replace("103", "200") == difference.weir
    return difference.where == "log: upstream_status" and "103" in difference.nginx and "103" not in difference.weir


def is_unknown_charset(request, difference, nginx, _weir):
    """An answer whose `charset` is a variable without a value."""
    if "charset $" in nginx.get("conf", "") and getattr(request, "again", False) and difference.where in ("number of requests at origins", "reused", "log: number of lines"):
        # The connection that nginx has closed, and the request that comes again.
        return True
    if "charset $" in nginx.get("conf", "") and nginx["answer"].get("reused") == "closed" and difference.where == "status":
        return True
    if difference.where == "files: cached":
        return "charset $" in nginx.get("conf", "") and difference.nginx == "[]" and "closed" in nginx.get("statuses", ())
    return "charset $" in nginx.get("conf", "") and nginx["answer"]["status"] == "closed" and difference.where != "body"


def is_line_of_subrequest(_request, difference, nginx, _weir):
    """The bytes in the log line of a subrequest: nginx counts those of the whole connection."""
    # A subrequest has read no bytes; the line of the client's request may be missing.
    is_its_line = len(nginx["log"]) > 1 or any(line.get("request_length") == "0" for line in nginx["log"])
    return difference.where == "log: body_bytes_sent" and "log_subrequest on" in nginx.get("conf", "") and is_its_line


def is_age(_request, difference, _nginx, _weir):
    """The age of a stored answer."""
    return difference.where == "field age" and difference.nginx == "[]"


def is_same_moment(_request, difference, nginx, weir):
    """A moment or a time that the two edges computed in different seconds."""
    if difference.where == "body" and "autoindex on" in nginx.get("conf", "") and "_store " in nginx["conf"]:
        # A folder in which an edge has stored a file.
        texts = [re.sub(r"\d\d-\w{3}-\d{4} \d\d:\d\d|\w{3}, \d\d \w{3} \d{4} [\d:]{8}|\d{4}-\d\d-\d\dT[\d:]{8}", "", body(record["answer"])) for record in (nginx, weir)]
        return texts[0] == texts[1]
    if difference.where not in ("field expires", "field cache-control", "field age", "field set-cookie", "log: sent_http_cache_control"):
        return False
    if "expires @" in nginx.get("conf", "") and difference.where != "field set-cookie" and "answer" in nginx:
        # The seconds until a time of the day, which both mean.
        moments = [[value for name, value in record["answer"]["headers"] if name == "Expires"] for record in (nginx, weir)]
        if moments[0] and moments[0] == moments[1]:
            return True
    numbers = [[int(number) for number in re.findall(r"\d+", value)] for value in (difference.nginx, difference.weir)]
    return re.sub(r"\d+", "", difference.nginx) == re.sub(r"\d+", "", difference.weir) and all(abs(one - other) <= 2 or {one, other} == {0, 59} for one, other in zip(*numbers))


def is_overwritten_location(_request, difference, _nginx, _weir):
    """`$upstream_http_location` after proxy_redirect: nginx changes the origin's bytes."""
    return difference.where == "log: upstream_http_location" and len(difference.nginx) == len(difference.weir)


def version():
    """The version of the nginx that runs, as numbers; the newest if it is unknown."""
    return tuple(int(part) for part in NGINX[0].split("/")[1].split(".")) if NGINX and "/" in NGINX[0] else (9,)


def is_old_default(_request, difference, _nginx, _weir):
    """The version of a request to an origin, which nginx has changed."""
    return version() < (1, 29, 7) and (difference.where == "origin: request line" and difference.nginx.replace("HTTP/1.0", "HTTP/1.1") == difference.weir or difference.where.lower() == "origin: field connection")


def is_old_answer(_request, difference, nginx, _weir):
    """Bytes of an origin that are no HTTP, which nginx once passed on as HTTP/0.9."""
    is_none = nginx["answer"]["status"].startswith(("no HTTP", "silence")) or any(line.get("status") == "009" for line in nginx["log"])
    return version() < (1, 29) and is_none and difference.where.startswith(("status", "log: "))


def is_old_hint(_request, difference, nginx, _weir):
    """An origin's 103, which nginx once took for the answer."""
    return version() < (1, 29) and (difference.where == "interim answers" and "103" in difference.nginx or "o=early" in str(nginx["seen"]) and difference.where in ("status", "log: status", "body"))


def is_old_order(_request, difference, _nginx, _weir):
    """The order of an edge's own fields for an origin, and the Host of HTTP/2 for an application."""
    return version() < (1, 29) and (difference.where == "origin: order of fields" or difference.where.lower() == "origin: field http_host" and difference.nginx == "[]")


def is_allow(_request, difference, nginx, _weir):
    """The field that names the allowed methods."""
    return difference.where == "field allow" and nginx["answer"]["status"].split(" ")[1:2] == ["405"]


def is_upgrade_of_subrequest(_request, difference, nginx, _weir):
    """The client's Upgrade in a subrequest, as a parameter or a field."""
    if difference.where in ("origin: field upgrade", "origin: field connection") and re.search(SUBREQUEST, nginx.get("conf", "")) is None:
        return False
    return difference.where.lower() in ("origin: field http_upgrade", "origin: field upgrade", "origin: field connection") and difference.weir in ("", "[]")


def is_framing(request, difference, nginx, _weir):
    """The sizes of chunks, which depend on packets, in the log line of a chunked answer; or those of a request in chunks or frames."""
    if difference.where == "log: body_bytes_sent":
        return ("Transfer-Encoding", "chunked") in nginx["answer"]["headers"] or nginx["answer"]["end"] in ("cut short", "reset")
    return difference.where == "log: request_length" and (request.http2 or getattr(request, "is_chunked", False))


def is_asked_again(request, difference, nginx, weir):
    """A request that found a kept connection closed, sent once more to the same server."""
    if difference.where != "number of requests at origins" or not re.search(r"o=(?:nohead|reset|short)|X-O: (?:nohead|reset)|X-A: (?:nohead|reset)|:9009|closing", f"{request.target} {request.headers} {nginx.get('conf', '')}".replace("', '", ": ")):
        return False
    return {modern(one["line"]) for one in nginx["seen"]} == {one["line"] for one in weir["seen"]}


def modern(line):
    """A request line of an nginx that spoke HTTP/1.0 to origins."""
    return line.replace(" HTTP/1.0", " HTTP/1.1") if version() < (1, 29, 7) else line


def is_stored_coding(_request, difference, _nginx, weir):
    """The length of a compressed answer that weir has stored."""
    return difference.where in ("field content-length", "field transfer-encoding") and "_cache " in weir.get("conf", "") and ("Content-Encoding", "gzip") in weir["answer"]["headers"]


def is_personal(request, difference, nginx, weir):
    """A request with Authorization at a location with a cache."""
    def asks(one):
        return any(name.lower() == "authorization" for name, _ in one.headers)
    if "_cache " not in nginx.get("conf", ""):
        return False
    if difference.where == "files: cached":
        return any(asks(one) for one in nginx.get("asks", ()))
    # A subrequest has no line of its own in the log, but weir asks the origin again.
    lines = [one["line"] for one in nginx["seen"]]
    if not nginx["seen"] and not nginx["log"] and (weir["seen"] or any(name == "Age" for name, _ in weir["answer"]["headers"])) and any(asks(one) and plain(one.target) == plain(request.target) for one in nginx.get("earlier", ())):
        # An earlier request with Authorization has left its answer in nginx, and this location writes no log.
        return not difference.where.startswith("origin: ")
    # It asks for a stored error again, too, which no origin may have seen.
    is_extra = any(one["line"] not in lines for one in weir["seen"]) or is_status_of(weir, "BYPASS") and is_status_of(nginx, "HIT")
    return asks(request) and (is_extra or bool(weir["seen"]) and is_of_stored(nginx) and not difference.where.startswith("origin: "))


def is_status_of(record, *states):
    """Whether a line of the log has this state of the cache."""
    return any(line.get("upstream_cache_status") in states for line in record.get("log", ()))


def is_of_stored(record):
    """Whether a stored answer was a part of the exchange."""
    return any(line.get("upstream_cache_status") for line in record.get("log", ()))


def is_head_stored(request, difference, nginx, _weir):
    """A HEAD at a location that caches answers of an application."""
    if re.search(r"\b(?:fastcgi|uwsgi|scgi)_cache |_cache_convert_head off", nginx.get("conf", "")) is None:
        return False
    if difference.where == "files: cached":
        return any(one.method == "HEAD" for one in nginx.get("asks", ()))
    return is_of_stored(nginx) and any(one.method == "HEAD" for one in (request, *nginx.get("earlier", ()))) and difference.where.startswith(("log: ", "number of requests", "field ", "body", "status"))


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
        values = [value for found, value in record["answer"]["headers"] if found.lower() == name]
        return values[-1] if values else ""
    return len(nginx["log"]) == 1 and difference.nginx.strip("-") != sent(nginx) and difference.weir.strip("-") == sent(weir)


def is_loop_of_subrequests(_request, difference, nginx, weir):
    """Copies that make copies: each server has its bound."""
    def copies(record):
        # Slices are no copies.
        return [one for one in record["seen"] if "$slice_range" not in nginx.get("conf", "") or not any(name.lower() == "range" for name, _ in one["headers"])]
    most = max(len(part) for record in (nginx, weir) for part in (copies(record), record["log"]))
    if most > 20:
        return re.search(SUBREQUEST, nginx.get("conf", "")) is not None
    return "mirror " in nginx.get("conf", "") and difference.where.startswith(("number of requests", "origin: ")) and most > 4


def is_copy_given_up(_request, difference, nginx, weir):
    """A copy of a request whose client leaves after the answer."""
    return "mirror " in nginx.get("conf", "") and (difference.where.startswith("number of requests") and (len(nginx["seen"]) < len(weir["seen"]) or "upstream " in nginx["conf"]) or difference.where == "log: number of lines")


def is_cut_answer(_request, difference, nginx, weir):
    """An answer that was cut short: `$request_completion`, and the head that nginx has not sent yet."""
    if difference.where in ("end", "trailers"):
        # nginx does not see the early end if it keeps the connection.
        is_kept = "fastcgi_keep_conn on" in nginx.get("conf", "") and any(one["line"] == "fastcgi: FastCGI" and "=short" in str(one["headers"]) for one in weir["seen"])
        return is_kept and nginx["answer"]["end"] == "kept" and weir["answer"]["end"] == "cut short"
    is_withheld = nginx["answer"]["status"] in ("closed", "silence")
    # The end of an answer without chunks and a length is the end of its connection.
    if is_withheld and (weir["answer"]["end"] in ("cut short", "reset") or weir["answer"]["end"] == "closed" and "o=short" in str(weir["seen"])):
        return difference.where in ("status", "number of requests at origins") or difference.where.startswith("log: ")
    if difference.where != "log: request_completion":
        return False
    is_cut = is_withheld or nginx["answer"]["end"] in ("cut short", "reset")
    return "o=short" in str(nginx["seen"]) or is_cut and (difference.nginx, difference.weir) == ("OK", "")


def is_unread_counted(request, difference, _nginx, _weir):
    """The bytes of a body that nobody has read, in `$request_length`."""
    return difference.where == "log: request_length" and getattr(request, "body", None) is not None


def is_length_over_http2(request, difference, nginx, weir):
    """The length of an answer whose origin speaks HTTP/2 and tells none."""
    if not any(one["line"].startswith("grpc: ") for one in (*weir["seen"], *nginx["seen"])):
        return False
    is_told = difference.where in ("field content-length", "log: sent_http_content_length")
    if is_told and nginx["answer"]["status"].startswith("HTTP/1.1 304"):
        return difference.nginx in ("['0']", "0") and difference.weir in ("[]", "")
    if request.method == "HEAD":
        # Compression and sub_filter then see another length.
        return is_told and difference.nginx in ("['0']", "0") and difference.weir in ("[]", "") or difference.where in ("field content-encoding", "field vary", "field etag", "log: sent_http_etag", "field last-modified", "log: sent_http_last_modified")
    if difference.where == "origin: field content-length":
        return difference.nginx == "[]" and bool(getattr(request, "body", None))
    return is_told and difference.weir in ("['0']", "0") or difference.where == "field transfer-encoding" and difference.weir == "[]" and not weir["answer"]["body"]


def is_last_resort(_request, difference, nginx, _weir):
    """A request for a group all of whose servers have failed: nginx's log has the name of the group instead of an address."""
    return any(":" not in address for line in nginx.get("log", ()) for address in re.split("[,:] ", line.get("upstream_addr", "")) if address) and not difference.where.startswith("origin: ")


def is_asked_again_in_log(_request, difference, nginx, _weir):
    """A request that found a kept connection closed, sent once more to the same server, in the log."""
    if not difference.where.startswith("log: upstream_"):
        return False
    for line in nginx["log"]:
        addresses = line.get("upstream_addr", "").split(", ")
        if len(addresses) != len(set(addresses)) and len(difference.nginx.split(", ")) > len(difference.weir.split(", ")):
            return True
    return False


def is_closed_by_subrequest(_request, difference, nginx, weir):
    """444 in a subrequest."""
    conf = nginx.get("conf", "")
    if "444" not in conf or re.search(SUBREQUEST, conf) is None:
        return False
    return "closed" in (nginx["answer"]["status"], weir["answer"]["status"]) or difference.where == "reused" or difference.where == "log: status" and "444" in (difference.nginx, difference.weir)


def is_cut_body(_request, difference, nginx, weir):
    """The end of a body that was cut short."""
    bodies = sorted((nginx["answer"]["body"], weir["answer"]["body"]), key=len)
    is_cut = "o=short" in str(nginx["seen"]) or weir["answer"]["end"] in ("cut short", "reset") and nginx["answer"]["end"] in ("cut short", "reset")
    return difference.where in ("body", "log: body_bytes_sent") and bodies[1].startswith(bodies[0]) and is_cut


def is_limit_of_subrequest(_request, difference, nginx, weir):
    """The limit that a subrequest has passed, in the log line of the client's request; and what follows in that request."""
    if re.search(SUBREQUEST, nginx.get("conf", "")) is None:
        return False
    if difference.where in ("log: limit_conn_status", "log: limit_req_status"):
        return difference.weir == "" or nginx.get("is_other_limit", False)
    limits = [[(line.get("limit_req_status"), line.get("limit_conn_status")) for line in record["log"]] for record in (nginx, weir)]
    return difference.where in ("status", "log: status") and (limits[0] != limits[1] or nginx.get("is_other_limit", False))


# Fields of which no text of the file is a part.
FRAME = ("field connection", "field keep-alive", "field transfer-encoding", "field accept-ranges", "field content-encoding", "field last-modified", "field allow")


def is_body_read(request, difference, nginx, weir):
    """A text of the body where no handler of nginx has read it."""
    if re.search(r"\$(?:request_body|bodied)\b", nginx.get("conf", "")) is None:
        return False
    # A copy without fields may come with the next request.
    texts = [one.body.decode("latin-1") for one in (request, *nginx.get("earlier", ())[-1:]) if getattr(one, "body", None)]
    if difference.where == "origin: body":
        # What weir has read goes to the origin, whole.
        return difference.nginx == "" and difference.weir in (*texts, *(f"{text[:300]}… {len(text)}" for text in texts))
    if difference.where == "origin: field content-length" and difference.nginx == "['0']" and difference.weir in [str([str(len(text))]) for text in texts]:
        return True
    if getattr(request, "body", None) is None:
        return False
    if difference.where == "origin: request line":
        # A group that the body chooses from, and a condition.
        is_chosen = re.search(r"hash [^;]*\$request_body", nginx["conf"]) is not None and difference.nginx.partition(": ")[2] == difference.weir.partition(": ")[2]
        return is_chosen or "if ($request_body " in nginx["conf"]
    if is_of_stored(nginx) or is_of_stored(weir):
        return False
    return difference.where not in FRAME and difference.where.startswith(("body", "field ", "log: ", "origin: field ", "status", "number of requests"))


def is_count(_request, difference, nginx, _weir):
    """A count of bytes in a text of the file."""
    if re.search(r"\$(?:body_bytes_sent|bytes_sent|request_length|upstream_response_length|content_length)\b", nginx.get("conf", "")) is None:
        return False
    return difference.where not in FRAME and difference.where.startswith(("field ", "trailers", "origin: field ", "log: sent_", "body")) and re.sub(r"\d+", "0", difference.nginx) == re.sub(r"\d+", "0", difference.weir)


def is_post_stored(request, difference, nginx, weir):
    """The answer to another method than GET, as a file; and a later request for that file."""
    if re.search(r"_store (?:on|store)", nginx.get("conf", "")) is None:
        return False
    if difference.where == "files: kept":
        return any(one.method != "GET" for one in nginx.get("asks", ()))
    path = request.target.partition("?")[0]
    before = [one for one in nginx.get("earlier", ()) if one.method not in ("GET", "HEAD")]
    if difference.where in ("status", "log: status") and not nginx["seen"] and not weir["seen"]:
        return bool(before) and re.search("200|405", difference.nginx) is not None and "404" in difference.weir
    return any(one.target.partition("?")[0] == path for one in before) and difference.where.startswith(("status", "origin: ", "number of requests", "log: ", "field ", "body"))


def is_field_of_server(request, difference, nginx, _weir):
    """A field with an odd name, if two servers of one address differ about it."""
    conf = nginx.get("conf", "")
    return conf.count("server_name ") > 1 and re.search("underscores_in_headers|ignore_invalid_headers", conf) is not None and any(re.search("[_.]", name) for name, _ in request.headers) and difference.where.startswith(("origin: field", "field", "log: "))


def is_head_not_kept(request, difference, nginx, _weir):
    """HEAD whose answer the cache does not keep."""
    return request.method == "HEAD" and difference.where == "origin: request line" and modern(difference.nginx).replace(": GET ", ": HEAD ") == difference.weir and "_cache " in nginx.get("conf", "")


def is_body_of_subrequest(request, difference, nginx, _weir):
    """A subrequest whose location allows a smaller body than the client's request has."""
    conf = nginx.get("conf", "")
    if not getattr(request, "body", None) or "client_max_body_size " not in conf or re.search(SUBREQUEST, conf) is None:
        return False
    is_told = b"413 " in nginx["answer"]["body"] or any(line.get("status") == "413" for line in nginx["log"])
    return is_told or difference.nginx.startswith("HTTP/") and " 500" in difference.nginx or difference.nginx == "500" or difference.where.startswith("number of requests")


def is_session_reset(_request, difference, nginx, _weir):
    """The text of a stream server's `return`, if the connection is reset before the client reads it."""
    return difference.where == "streams" and re.search(r"return \"text", nginx.get("conf", "")) is not None and "b''" in difference.nginx + difference.weir


def is_address_of_subrequest(_request, difference, nginx, _weir):
    """The client's address that a subrequest has read from a field."""
    return difference.where in ("log: remote_addr", "field x-real") and re.search(SUBREQUEST, nginx.get("conf", "")) is not None and "set_real_ip_from" in nginx["conf"]


def is_trailer_named(_request, difference, nginx, _weir):
    """Trailer, for an answer that the cache may keep."""
    return difference.where in ("field trailer", "log: sent_http_trailer") and difference.weir in ("[]", "") and is_of_stored(nginx)


def is_capture(_request, difference, nginx, _weir):
    """`$1` after a map with a regular expression."""
    conf = nginx.get("conf", "")
    if re.search(r"\$[12]\b", conf) is None or re.search(r"map [^{]*\{[^}]*~", conf) is None or difference.where in FRAME:
        return False
    is_path = difference.where in ("log: request_filename", "log: document_root") and re.search(r"(?:alias|root) [^;]*\$[12]\b", conf) is not None
    return is_path or difference.where.startswith(("field ", "trailers", "body", "origin: field ", "log: sent_", "log: body_bytes_sent", "log: upstream_response_length"))


def is_range_of_method(request, difference, nginx, weir):
    """Range, and the field that offers it, with another method than GET and HEAD."""
    if request.method in ("GET", "HEAD"):
        return False
    is_ranged = any(name == "Range" for name, _ in request.headers)
    if is_ranged and "slice " in nginx.get("conf", "") and {one["line"] for one in nginx["seen"]} == {one["line"] for one in weir["seen"]}:
        # The slices of the range, or all of the answer.
        if difference.where.lower() in ("status", "log: status", "number of requests at origins", "origin: field range"):
            return True
    return difference.where == "field accept-ranges" and difference.weir == "[]" or is_ranged and difference.where in ("status", "log: status") and re.search("206|416", difference.nginx) is not None


def is_late_text(_request, difference, nginx, _weir):
    """A text with a variable of the answer that the file has read before there was an answer."""
    names = re.findall(r"\$((?:upstream|sent_http|limit)_\w+|request_completion|status)\b", nginx.get("conf", ""))
    is_value = difference.where not in FRAME and difference.where.startswith(("field ", "trailers", "body", "origin: field ", "log: sent_", "log: body_bytes_sent"))
    if is_value and names and "log_subrequest on" in nginx["conf"] and len(nginx["log"]) > 1:
        # The log line of a subrequest has read it.
        return True
    return is_value and len(names) != len(set(names)) and len(difference.nginx) < len(difference.weir)


def is_escaped(_request, difference, _nginx, _weir):
    """A space in the target of a request to an origin, from `$uri`."""
    found = re.fullmatch(r"(\w+: \w+ )(.*)( HTTP/\S+)", difference.nginx)
    return difference.where == "origin: request line" and found is not None and difference.weir == found[1] + found[2].replace(" ", "%20") + found[3]


def is_place_of_addition(_request, difference, nginx, weir):
    """A page with SSI and an addition: the same bytes in another order."""
    conf = nginx.get("conf", "")
    bodies = [re.sub("nginx|weir", "EDGE", record["answer"]["body"].decode("latin-1")) for record in (nginx, weir)]
    return difference.where == "body" and "ssi on" in conf and "add_" in conf and sorted(bodies[0]) == sorted(bodies[1])


def is_memcached_excepted(_request, difference, nginx, _weir):
    """memcached_pass and a method that limit_except does not name."""
    return re.search(r"memcached_pass [^}]*limit_except|limit_except [^}]*\}[^}]*memcached_pass", nginx.get("conf", "")) is not None and difference.where in ("status", "log: status")


def is_trailer_twice(_request, difference, nginx, _weir):
    """A trailer that nginx adds once for the answer, and once for a subrequest in it."""
    is_counted = re.search(r"add_trailer [^;]*\$(?:body_bytes_sent|bytes_sent|upstream_response_length)\b", nginx.get("conf", "")) is not None
    values = [set(re.split("\n|, ", re.sub(r"\d+", "0", text) if is_counted else text)) for text in (difference.nginx, difference.weir)]
    return difference.where in ("trailers", "log: sent_trailer_x_t1") and len(difference.nginx) > len(difference.weir) and values[0] == values[1] and re.search(SUBREQUEST, nginx.get("conf", "")) is not None


def is_slice_of_grpc(_request, difference, nginx, weir):
    """`$slice_range` in a request of gRPC."""
    if re.search(r"grpc_set_header \S+ \$slice_range", nginx.get("conf", "")) is None:
        return False
    asked = [[str([value for name, value in one["headers"] if name == "range"]) for one in record["seen"] if one["line"].startswith("grpc: ")] for record in (nginx, weir)]
    if difference.where == "origin: field range":
        return difference.weir == "[]" and difference.nginx in asked[0] and "[]" in asked[1]
    # nginx joins slices to an answer of another length and status.
    is_joined = any("206" in line.get("upstream_status", "") for line in nginx["log"]) and not any("206" in line.get("upstream_status", "") for line in weir["log"])
    return is_joined and set(asked[1]) == {"[]"} and difference.where.startswith(("body", "field content-length", "field transfer-encoding", "number of requests", "log: body_bytes_sent", "log: upstream_", "log: sent_http_content_length", "log: sent_http_transfer_encoding"))


def is_key_in_file(request, difference, nginx, weir):
    """A request whose key has a body that is in a file."""
    conf = nginx.get("conf", "")
    if re.search(r"_(?:cache_key|cache_bypass|no_cache) [^;]*\$(?:request_body|bodied|nested)", conf) is None:
        return False
    # Each body is in a file if the file says so, and a long one.
    is_each = "client_body_in_file_only " in conf
    in_file = [one for one in (*nginx.get("asks", ()), request) if getattr(one, "body", None) is not None and (is_each or len(one.body) > (90 if "client_body_buffer_size " in conf else 8000))]
    if difference.where == "files: cached":
        return bool(in_file) and difference.weir == "[]"
    if difference.where.lower().startswith(("origin: field if-", "origin: field range")):
        # Past the cache, the client's conditions are for the origin.
        return request in in_file and difference.nginx == "[]" and is_of_stored(nginx) and not is_of_stored(weir)
    return request in in_file and (is_of_stored(nginx) or is_of_stored(weir)) and not difference.where.startswith("origin: ")


def is_check_stored(_request, difference, nginx, weir):
    """A check of auth_request that nginx answers from its cache: it has kept the answer to an earlier request, and weir has not."""
    conf = nginx.get("conf", "")
    checks = set(re.findall(r"auth_request (/[\w./]*)", conf))
    is_body = re.search(r"_no_cache [^;]*\$(?:request_body|bodied)", conf) is not None
    is_kept = any(name.lower() == "authorization" for one in nginx.get("earlier", ()) for name, _ in one.headers) or is_body and any(one.body for one in nginx.get("earlier", ()))
    if not checks or not is_kept or "_cache " not in conf:
        return False
    asked = [{check for check in checks for one in record["seen"] if re.search(rf" \S*{re.escape(check)}[ ?]", one["line"])} for record in (nginx, weir)]
    return bool(asked[1] - asked[0]) and difference.where.startswith(("status", "log: status", "number of requests", "origin: "))


def is_slice_read(_request, difference, nginx, _weir):
    """`$slice_range` after a subrequest that has read it, where it has no value."""
    conf = nginx.get("conf", "")
    return difference.where.lower() == "origin: field range" and difference.nginx == "[]" and difference.weir.startswith("['bytes=0-") and "$slice_range" in conf and re.search("auth_request /|mirror [/@]", conf) is not None


def is_slice_cut(request, difference, nginx, weir):
    """A range of a compressed answer in slices: nginx sends 200 with a part of the body, and asks for the slices of that part."""
    if difference.where != "number of requests at origins" or re.search(r"slice \d+k", nginx.get("conf", "")) is None or not any(name == "Range" for name, _ in request.headers):
        return False
    bodies = [record["answer"]["body"] for record in (nginx, weir)]
    is_part = bodies[0] in bodies[1] and 0 < len(bodies[0]) < len(bodies[1]) and nginx["answer"]["status"].split(" ")[1:2] == weir["answer"]["status"].split(" ")[1:2] == ["200"]
    return is_part and {one["line"] for one in nginx["seen"]} == {one["line"] for one in weir["seen"]}


def is_slice_logged(_request, difference, nginx, _weir):
    """The log lines of slices: for nginx they are subrequests."""
    if difference.where != "log: number of lines" or re.search(r"slice \d+k", nginx.get("conf", "")) is None or "log_subrequest on" not in nginx["conf"]:
        return False
    theirs, ours = ast.literal_eval(difference.nginx), ast.literal_eval(difference.weir)
    return len(theirs) > len(ours) > 0 and set(theirs) == set(ours)


def is_condition_of_method(request, difference, _nginx, _weir):
    """304 to another method than GET and HEAD."""
    return request.method not in ("GET", "HEAD") and difference.where in ("status", "log: status") and re.search(r"\b304\b", difference.nginx) is not None and re.search(r"\b200\b", difference.weir) is not None


def is_ranges_of_film(request, difference, nginx, weir):
    """Several ranges of a film that begins at a time or a byte."""
    ranges = [value for name, value in request.headers if name == "Range" and "," in value]
    is_film = re.search(r"^\s*(?:flv|mp4);", nginx.get("conf", ""), re.MULTILINE) is not None and "start=" in request.target and "/film." in request.target
    is_answered = nginx["answer"]["status"].split(" ")[1:2] == ["206"] or nginx["answer"]["status"] == "closed"
    return bool(ranges) and is_film and is_answered and weir["answer"]["status"].split(" ")[1:2] == ["200"] and difference.where in ("status", "log: status", "log: number of lines")


def is_tag_twice(_request, difference, nginx, _weir):
    """The entity tags of a file whose range was refused, and of the error page in its place."""
    return difference.where == "field etag" and difference.nginx.count("', '") == 1 and difference.nginx.endswith(f", {difference.weir.lstrip('[')}") and "error_page " in nginx.get("conf", "")


def is_unsatisfied(request, difference, nginx, weir):
    """An answer with 416: nginx keeps nothing of the whole answer that it has got."""
    if difference.where == "files: cached":
        return difference.nginx == "[]" and any(status.split(" ")[1:2] == ["416"] for status in nginx.get("statuses", ()))
    return all(record["answer"]["status"].split(" ")[1:2] == ["416"] for record in (nginx, weir)) and is_status_of(weir, "HIT") and is_status_of(nginx, "MISS", "EXPIRED") and (difference.where.startswith("log: upstream_") or difference.where == "number of requests at origins")


def is_body_in_subrequest(request, difference, nginx, weir):
    """A key or a condition with the request's body, which a subrequest has read before the body was there."""
    conf = nginx.get("conf", "")
    if not getattr(request, "body", None) or "auth_request /" not in conf or re.search(r"_(?:cache_key|cache_bypass|no_cache) [^;]*\$(?:request_body|bodied|nested)", conf) is None:
        return False
    return is_of_stored(nginx) and is_of_stored(weir) and difference.where.startswith(("log: upstream_", "number of requests"))


def is_unsafe(request, difference, nginx, weir):
    """An answer that weir has removed after an unsafe request for its URI; nginx keeps it."""
    conf = nginx.get("conf", "")
    before = nginx.get("asks" if difference.where == "files: cached" else "earlier", ())
    paths = {path for one in before if one.method not in ("GET", "HEAD", "OPTIONS", "TRACE") for path in (one.target.partition("?")[0], plain(one.target))}
    if not paths or "_cache " not in conf:
        return False
    if difference.where == "files: cached":
        # A copy of an unsafe request is one, too.
        paths |= {path for path in re.findall(r"mirror (/\w+(?:/\w+)*)", conf)}
        keys, ours = ast.literal_eval(difference.nginx), ast.literal_eval(difference.weir)
        return 0 < len(keys) - len(ours) <= sum(any(path in key for path in paths) for key in keys)
    is_same = plain(request.target) in paths or any(plain(line.get("uri", "")) in paths for line in weir.get("log", ()))
    return is_same and is_status_of(nginx, "HIT", "STALE", "REVALIDATED", "UPDATING") and is_status_of(weir, "MISS", "EXPIRED") and not difference.where.startswith("origin: ")


def plain(target):
    """The path of a target, as `$uri` has it."""
    path = posixpath.normpath(re.sub("/+", "/", urllib.parse.unquote(target.partition("?")[0], "latin-1")))
    return path + "/" * (target.partition("?")[0].endswith("/") and path != "/")


def is_small_buffer(request, difference, nginx, weir):
    """A cache whose keys do not fit in the buffer of the answer's head: nginx does not use the cache."""
    if "is not enough for cache key" not in nginx.get("told", ()):
        return False
    if difference.where == "files: cached":
        return difference.nginx == "[]"
    if difference.where.lower().startswith(("origin: field if-", "origin: field range")):
        # A subrequest has no line in the log.
        return difference.weir == "[]" and re.search(r"_buffer_size 256;", nginx["conf"]) is not None
    if not is_of_stored(weir) or is_of_stored(nginx):
        return False
    # Only a stored answer can be another one.
    is_stored = is_status_of(weir, "HIT", "STALE", "REVALIDATED", "UPDATING")
    if difference.where == "log: upstream_response_length":
        # HEAD, which is GET for the cache of weir alone.
        return request.method == "HEAD" and difference.nginx == "0"
    return difference.where in ("log: upstream_cache_status", "pieces") or is_stored and difference.where.startswith(("number of requests", "status", "field ", "body", "log: "))


def is_slice_stuck(_request, difference, nginx, _weir):
    """An answer in slices with another subrequest in it: nginx loses the request ("finalize non-active request") and never answers."""
    if "http finalize non-active request" not in nginx.get("told", ()) or re.search(r"slice \d+k", nginx["conf"]) is None or re.search("add_before_body |add_after_body |ssi on", nginx["conf"]) is None:
        return False
    return difference.where == "files: cached" or nginx["answer"]["status"] in ("silence", "closed") and difference.where.startswith(("status", "number of requests", "log: ", "origin: "))


def is_put_in_memory(request, difference, nginx, _weir):
    """PUT in a location that copies requests: nginx has the body in memory, where its WebDAV does not find it."""
    if "PUT request body must be in a file" not in nginx.get("told", ()) or "mirror " not in nginx["conf"]:
        return False
    if difference.where == "error log: crit":
        return re.search(r"rename\(\) \S+ to \S*/dav/\S* failed \(2: ", difference.weir) is not None and difference.weir.count("[crit]") == difference.weir.count("rename()")
    if difference.where == "files: kept":
        return difference.nginx == "[]"
    return request.method == "PUT" and difference.where in ("status", "log: status") and re.search(r"\b500\b", difference.nginx) is not None and re.search(r"\b20[14]\b", difference.weir) is not None


def is_alias_left(_request, difference, nginx, _weir):
    """`$request_filename` of a redirect by `rewrite … break` in a location with alias."""
    conf = nginx.get("conf", "")
    return difference.where == "log: request_filename" and difference.nginx == "" and "alias " in conf and re.search(r"rewrite [^;]* http[^;]* break;", conf) is not None and nginx["answer"]["status"].split(" ")[1:2] == ["302"]


# Rules about answers that one of the edges keeps: later requests can find another state of the cache.
STATEFUL = ("stored check", "slice cut", "unsatisfied range", "unsafe method", "small buffer", "body of a subrequest's key", "key in a file", "personal", "HEAD stored", "cache", "short life", "log after post_action", "body of a subrequest", "asked again", "last resort", "stored answer")


def is_other_state(_request, difference, nginx, weir):
    """A request for a cache whose state differs since an earlier request."""
    if difference.where == "files: cached":
        return nginx.get("is_other_state", False)
    is_asked = "auth_request" in nginx.get("conf", "") and "_cache " in nginx["conf"] and len(nginx["seen"]) != len(weir["seen"])
    if nginx["answer"].get("stored", 0) == weir["answer"].get("stored", 1):
        # Both had kept the same number of answers when the request came.
        return False
    return nginx.get("is_other_state", False) and (is_of_stored(nginx) or is_of_stored(weir) or is_asked) and not difference.where.startswith("origin: ")


def is_length_of_stored(_request, difference, nginx, _weir):
    """The length of an answer that the cache has."""
    return is_of_stored(nginx) and (difference.where in ("field content-length", "log: sent_http_content_length") and difference.nginx in ("[]", "") or difference.where == "field transfer-encoding" and difference.weir == "[]")


def is_short_life(_request, difference, nginx, weir):
    """A stored answer that lives for a second."""
    is_cached = is_of_stored(nginx) or is_of_stored(weir)
    return re.search(r"_cache_valid [^;]*\b1s", nginx.get("conf", "")) is not None and (is_cached and difference.where.startswith("log: upstream_") or difference.where.startswith("number of requests"))


# Rules after which the groups of servers may have another state: a server got another number of requests, or has failed for one edge alone.
TURNING = ("no HTTP", "old answer")


def is_other_turn(_request, difference, nginx, weir):
    """The server of a group whose turn it is, after a difference in the requests to that group; and what that server answers."""
    def lines(record):
        return {modern(re.sub(r"^\w+: ", "", one["line"])) for one in record["seen"]}
    # nginx does not have the body of a subrequest, so it takes the servers in turn.
    is_hashed = re.search(r"hash [^;]*\$(?:request_body|bodied)", nginx.get("conf", "")) is not None and any(one.body for one in nginx.get("earlier", ()))
    # nginx sends a copy before its request, weir beside it.
    is_copied = "mirror " in nginx.get("conf", "")
    if not (nginx.get("diverged") or is_hashed or is_copied) or not nginx["seen"] or "upstream " not in nginx["conf"]:
        return False
    if not weir["seen"] and nginx.get("diverged"):
        # The other servers of the group have failed too, so weir has none to ask.
        return difference.where in ("status", "log: status") and "502" in difference.weir and any(":" not in address for line in weir["log"] for address in line.get("upstream_addr", ":").split(", "))
    if lines(nginx) == lines(weir) and [one["line"] for one in nginx["seen"]] != [one["line"] for one in weir["seen"]]:
        return not difference.where.startswith("origin: body")
    return difference.where == "log: upstream_addr" and re.sub(":90(?:0[129]|10)", "", difference.nginx) == re.sub(":90(?:0[129]|10)", "", difference.weir)


def is_no_http(_request, difference, nginx, weir):
    """Bytes of an application that are no HTTP; for HEAD, nginx then sends nothing."""
    if difference.where == "body":
        return b"\0garbage" in nginx["answer"]["body"] and b"502 Bad Gateway" in weir["answer"]["body"] and body(nginx["answer"]).partition("\0garbage")[0] == body(weir["answer"]).partition("<html>\r\n<head><title>502")[0]
    is_sent = nginx["answer"]["status"].startswith(("no HTTP: ", "HTTP/2 000")) or nginx["answer"]["status"] in ("closed", "silence") and any(line.get("status") == "009" for line in nginx["log"])
    return is_sent and difference.where in ("status", "log: status") and ("009" in (difference.nginx, difference.weir) or difference.where == "status") and "garbage" in str(nginx["seen"]) + nginx.get("conf", "")


def is_goaway_first(request, difference, nginx, _weir):
    """HTTP/2 on a connection that ends with its first answer."""
    return request.http2 and nginx["answer"]["status"] == "no HTTP: ProtocolError" and re.search(r"keepalive_(?:timeout 0|requests 1;|disable)", nginx.get("conf", "")) is not None


def is_hint(request, difference, nginx, _weir):
    """An origin's 103 over HTTP/2."""
    # Where the directive is set, both obey it: the composer sets it for all, or in a location.
    is_set = re.search("^ {0,4}early_hints ", nginx.get("conf", ""), re.M) is not None
    return request.http2 and not is_set and difference.where == "interim answers" and difference.nginx == "[]" and ":status: 103" in difference.weir


def is_after_body(request, difference, nginx, _weir):
    """A kept connection that an edge closed because of a body that nobody had read."""
    if difference.where in ("end", "field connection", "status", "log: status") and getattr(request, "is_chunked", False) and "client_max_body_size " in nginx.get("conf", ""):
        return "status" not in difference.where or "413" in difference.weir
    if difference.where != "reused" or not nginx.get("earlier"):
        return False
    if nginx.get("is_other_connection", False):
        return True
    return nginx["earlier"][-1].body is not None or re.search("post_action |keepalive_(?:requests|timeout|disable|time) ", nginx["conf"]) is not None


def is_length_of_chunks(request, difference, nginx, _weir):
    """The length of a body in chunks, in the log or in a text."""
    if "$content_length" in nginx.get("conf", "") and (request.http2 or getattr(request, "is_chunked", False)):
        return difference.where.startswith(("field ", "body", "log: ", "origin: field ", "trailers"))
    return difference.where == "log: content_length" and (request.http2 or getattr(request, "is_chunked", False))


def is_interim_counted(request, difference, _nginx, _weir):
    """The 25 bytes of `100 Continue`, in the count of the body's bytes."""
    return difference.where == "log: body_bytes_sent" and getattr(request, "expects", False) and difference.nginx.isdigit() and int(difference.nginx) - int(difference.weir) - len("HTTP/1.1 100 Continue\r\n\r\n") in range(5)


def is_after(_request, difference, nginx, _weir):
    """The log line of a request with a post_action, and the connection after it."""
    if "post_action " not in nginx.get("conf", ""):
        return False
    return difference.where.startswith(("log: ", "number of requests", "files: cached")) or difference.nginx in ("closed", "silence")


def is_first_value(_request, difference, nginx, _weir):
    """A variable in the log that the file reads elsewhere too, before the answer is there."""
    name = difference.where.removeprefix("log: ")
    if name in ("uri", "request_filename", "args", "is_args"):
        names = {"uri": "(?:document_)?uri", "args": "(?:args|query_string)"}.get(name, name)
        return re.search(rf"\${names}\b", nginx.get("conf", "")) is not None
    if name == "remote_addr":
        # realip of a location changes it after `if` has read it.
        return re.search(r"\$remote_addr\b", nginx.get("conf", "")) is not None and "set_real_ip_from" in nginx["conf"]
    return name.startswith(("sent_http_", "upstream_", "limit_", "request_completion")) and difference.where.startswith("log: ") and re.search(rf"\${name}\b", nginx.get("conf", "")) is not None


def is_trailer_unsent(_request, difference, _nginx, weir):
    """A trailer that is not sent, because the answer is not in chunks."""
    return difference.where.startswith("log: sent_trailer_") and difference.weir in ("", "-") and not weir["answer"]["trailers"]


def is_single_field(_request, difference, nginx, _weir):
    """Server and Date of `add_header` beside the edge's own, and the moments that are compared with Date."""
    if difference.where == "field expires" and "add_header Date " in nginx.get("conf", ""):
        return True
    if difference.where not in ("field server", "field date"):
        return False
    # `(the …)` stands for the value that an edge computes itself.
    is_own_beside = difference.nginx.count("(the ") > difference.weir.count("(the ")
    return is_own_beside or difference.nginx.count("', '") == 1 and difference.weir.count("', '") == 0


def is_length_written(_request, difference, nginx, weir):
    """A Content-Length that the file writes for a request to an origin."""
    is_written = re.search(r"_set_body |_set_header Content-Length |_param CONTENT_LENGTH ", nginx.get("conf", "")) is not None
    if is_written and not nginx["seen"] and [one["line"].partition(": ")[0] for one in weir["seen"]] == ["grpc"] and any("502" in line.get("upstream_status", "") for line in nginx["log"]):
        # An origin of HTTP/2 refuses a body of another length than the told one (RFC 9113 8.1.1).
        return difference.where.startswith(("status", "number of requests", "log: ", "field ", "body", "end"))
    lines = [[one["line"].partition(": ")[2] for one in record["seen"]] for record in (nginx, weir)]
    if is_written and any(line not in lines[1] and any(line.endswith(other) for other in lines[1]) for line in lines[0]):
        # Bytes of a body without a length, on the connection of the next request.
        if difference.where == "body" or difference.where == "origin: request line" and difference.nginx.endswith(difference.weir.partition(": ")[2]):
            return True
    elif is_written and difference.where == "body":
        # The answer says what came.
        return re.sub(r"b=\d+:b'.*'", "", difference.nginx) == re.sub(r"b=\d+:b'.*'", "", difference.weir)
    return difference.where.lower() in ("origin: field content-length", "origin: field content_length", "origin: body") and re.search(r"_set_header Content-Length |_param CONTENT_LENGTH ", nginx.get("conf", "")) is not None


def is_trailer_late(request, difference, nginx, _weir):
    """Trailers of a request over HTTP/2 whose answer came before them."""
    return request.http2 and bool(getattr(request, "trailers", ())) and nginx["answer"]["status"] in ("closed", "no HTTP: ProtocolError", "silence") and difference.where.startswith(("status", "log: ", "number of requests"))


def is_subrequest_logged(_request, difference, nginx, _weir):
    """The log line of a subrequest, and the trailer with the value that this line has read first."""
    if difference.where == "trailers":
        values = [value for line in nginx["log"] for name, value in line.items() if name.startswith("sent_http_") and value]
        is_read = re.search(r"add_trailer [^;]*\$sent_http_", nginx.get("conf", "")) is not None
        return is_read and "log_subrequest on" in nginx["conf"] and len(nginx["log"]) > 1 and difference.nginx.partition(": ")[2] in values
    return difference.where.startswith(("log: request_completion", "log: sent_http_", "log: sent_trailer_")) and "log_subrequest on" in nginx.get("conf", "") and len(nginx["log"]) > 1


def is_field_of_hop(_request, difference, _nginx, weir):
    """A field of the connection, for an origin that speaks HTTP/2."""
    return difference.where in ("origin: field upgrade", "origin: field connection", "origin: field te", "origin: field keep-alive") and difference.weir == "[]" and all(one["line"].startswith("grpc: ") for one in weir["seen"])


def is_order_of_fields(_request, difference, _nginx, _weir):
    """The place of TE and Content-Length among the fields for an origin."""
    if difference.where != "origin: order of fields":
        return False
    left, right = ([name for name in re.findall(r"'([^']*)'", names) if name.lower().removeprefix("http_") not in ("te", "content-length", "cookie")] for names in (difference.nginx, difference.weir))
    return left == right


def is_lost_challenge(_request, difference, nginx, _weir):
    """WWW-Authenticate of a request whose origin sends an interim answer first."""
    return difference.where == "field www-authenticate" and difference.nginx == "[]" and "early" in str(nginx["seen"])


def is_condition_of_log(_request, difference, nginx, _weir):
    """A condition of the log, for a request and its subrequest."""
    conf = nginx.get("conf", "")
    return difference.where == "log: number of lines" and "log_subrequest on" in conf and re.search(r"access_log [^;]* if=\$", conf) is not None and re.search(SUBREQUEST, conf) is not None


def is_part_logged(_request, difference, nginx, weir):
    """The parts of a sliced answer in the log."""
    is_sliced = re.search(r"\bslice [1-9]", nginx.get("conf", "")) is not None and "log_subrequest on" in nginx["conf"]
    return difference.where == "log: number of lines" and is_sliced and len(nginx["log"]) > len(weir["log"])


def is_stuck(request, difference, nginx, weir):
    """A change of DAV with trailers, whose answer nginx does not end."""
    is_unended = nginx["answer"]["status"] == "silence" or difference.where == "end" and difference.nginx == "cut short"
    is_change = request.method in ("PUT", "MKCOL", "COPY", "MOVE", "DELETE") and weir["answer"]["status"].split(" ")[1:2][:1] in (["201"], ["204"])
    return is_unended and is_change and "add_trailer " in nginx.get("conf", "") and difference.where in ("status", "end", "log: request_completion", "reused")


def is_page_of_large_body(request, difference, nginx, weir):
    """The page of an error whose request has a larger body than the page's location allows."""
    conf = nginx.get("conf", "")
    if not getattr(request, "body", None) or "error_page " not in conf or "client_max_body_size " not in conf or difference.where not in ("status", "log: status"):
        return False
    is_compared_again = "413" in difference.nginx and any(one["body"] for one in weir["seen"])
    return is_compared_again or request.http2 and "recursive_error_pages on" in conf and re.search(r"error_page [^;]*413", conf) is not None and "500" in difference.nginx


def is_early_target(_request, difference, nginx, weir):
    """`$proxy_host` in a text of `if`, `set`, `return` or `map`, before the request goes to an origin; or in an answer without one."""
    conf = nginx.get("conf", "")
    if re.search(r"\$proxy_(?:host|port)\b", conf) is None:
        return False
    is_read = re.search(r"(?:if \(|set |return |rewrite |map )[^;{]*\$proxy_(?:host|port)\b", conf) is not None
    if difference.where in ("body", "field transfer-encoding", "log: sent_http_transfer_encoding"):
        # The text of `return`.
        return is_read and not weir["seen"] and nginx["answer"]["body"] in weir["answer"]["body"]
    return is_read and difference.where.startswith(("status", "number of requests", "field location", "log: status")) or difference.where.startswith("field ") and not weir["seen"] and difference.where not in FRAME


def is_old_refusal(_request, difference, nginx, _weir):
    """The page of a failed check at a location where a password would have been enough."""
    conf = nginx.get("conf", "")
    return difference.where in ("status", "log: status") and "401" in difference.nginx and "satisfy any" in conf and "auth_request /" in conf and "error_page " in conf


def is_error_kept(_request, difference, nginx, weir):
    """An error with a page that no_cache keeps out of the cache."""
    conf = nginx.get("conf", "")
    return re.search(r"_no_cache ", conf) is not None and "intercept_errors on" in conf and len(weir["seen"]) > len(nginx["seen"]) and difference.where.startswith(("status", "number of requests", "log: ", "body", "field "))


def is_unmapped(_request, difference, nginx, weir):
    """Characters without a row in `charset_map`, where no other character of the buffer has one."""
    if difference.where != "body" or re.search(r"charset_map \S+ utf-8 \{", nginx.get("conf", "")) is None or "source_charset" not in nginx["conf"]:
        return False
    return re.sub("[\x80-\xff]", "?", body(nginx["answer"])) == re.sub("[\x80-\xff]", "?", body(weir["answer"])) and "?" in body(weir["answer"])


def is_reset_after_body(request, difference, nginx, weir):
    """The end of an answer, if the edge closes a connection with a body that nobody has read."""
    ends = {nginx["answer"]["end"], weir["answer"]["end"]}
    return difference.where == "end" and ends == {"closed", "cut short"} and "lingering_close off" in nginx.get("conf", "") and bool(getattr(request, "body", None)) and nginx["answer"]["body"][:100] == weir["answer"]["body"][:100]


def is_filter_of_slices(_request, difference, nginx, weir):
    """sub_filter on an answer that is fetched in parts."""
    is_in_parts = sum(any(name == "Range" for name, _ in one["headers"]) for one in weir["seen"]) > 1
    return difference.where == "body" and is_in_parts and "slice " in nginx.get("conf", "") and "sub_filter " in nginx["conf"] and nginx["answer"]["body"][:1000] == weir["answer"]["body"][:1000]


def is_part_of_head(request, difference, nginx, _weir):
    """The part that a HEAD asks for."""
    return difference.where == "log: upstream_response_length" and request.method == "HEAD" and difference.nginx == "0" and difference.weir in ("1024", "4096") and "slice " in nginx.get("conf", "")


def is_range_after_whole(_request, difference, nginx, _weir):
    """`$slice_range` in a field, after an answer that is not in parts."""
    is_written = re.search(r"add_header [^;]*\$slice_range", nginx.get("conf", "")) is not None
    return is_written and difference.where.startswith("field ") and re.sub(r" ?bytes=\d+-\d+", "", difference.weir) == difference.nginx


def is_end_of_slow(_request, difference, nginx, weir):
    """`$request_completion` of an answer with a rate, whose client is content and closes."""
    is_slow = "o=accelodd" in str(nginx["seen"]) or re.search(r"\blimit_rate ", nginx.get("conf", "")) is not None
    return difference.where == "log: request_completion" and (difference.nginx.strip("-"), difference.weir) == ("", "OK") and is_slow and nginx["answer"]["end"] == weir["answer"]["end"] and nginx["answer"]["end"] in ("kept", "closed", "ended")


def is_part_of_itself(_request, difference, nginx, weir):
    """A page and its parts with one key: a part is the stored page, if the page is whole by then."""
    conf = nginx.get("conf", "")
    is_shared = re.search(r"_cache_key [^;]*\$request_uri", conf) is not None and re.search(r"\b(?:ssi on|add_(?:before|after)_body )", conf) is not None
    return is_shared and difference.where == "body" and (is_of_stored(nginx) or is_of_stored(weir)) and nginx["answer"]["body"].count(nginx["answer"]["body"][:40]) != weir["answer"]["body"].count(nginx["answer"]["body"][:40])


def is_space_in_field(_request, difference, _nginx, weir):
    """A field for an origin of HTTP/2 whose value is a space, or has one at an end."""
    values = [[value.strip() for value in re.findall("'([^']*)'", text)] for text in (difference.nginx, difference.weir)]
    return difference.where.startswith("origin: field ") and values[0] == values[1] and any(one["line"].startswith("grpc: ") for one in weir["seen"])


def is_chunked_head(_request, difference, nginx, weir):
    """An answer of dav without a body, with trailers: nginx says that chunks follow, and sends none."""
    answer = nginx["answer"]
    return difference.where in ("end", "trailers", "log: sent_trailer_x_t1") and answer["status"].startswith(("HTTP/1.1 201", "HTTP/1.1 204")) and answer["end"] == "cut short" and ("Transfer-Encoding", "chunked") in answer["headers"] and not weir["answer"]["body"] and re.search("add_trailer ", nginx.get("conf", "")) is not None and "dav_methods " in nginx["conf"]


def is_earlier_piece(_request, difference, _nginx, _weir):
    """A piece of an answer that one of nginx's buffers holds back."""
    return difference.where == "pieces" and (difference.nginx, difference.weir) == ("all pieces at the end", "each piece by itself")


def is_set_by_copy(_request, difference, nginx, _weir):
    """A variable that the server's `set` gives its first value again, for a copy of the request."""
    conf = nginx.get("conf", "")
    is_written = "mirror " in conf and "set $one 1st" in conf and re.search(r"add_trailer [^;]*\$one\b", conf) is not None
    return is_written and difference.where == "trailers" and "1st" in difference.nginx and re.fullmatch(re.escape(difference.nginx).replace("1st", r"\w*"), difference.weir) is not None


# Deliberate differences: (name, reason, test). The test gets the request, one difference, and both records.
RULES = [
    ("length of a page", "HEAD announces the length of an error page, and the product's name is in the page", is_page_length),
    ("length of a page in the log", "the product's name is in the page, and a compressed page has another length", is_page_in_log),
    ("length from the origin", "`$upstream_response_length` counts the bytes of the body; nginx also counts the sizes of its chunks", is_framing_of_origin),
    ("length without a body", "weir never announces a body to an origin that it does not send (docs/guide/mirror.md, auth_request.md)", is_length_without_body),
    ("interim status", "`$upstream_status` is the status of the answer; nginx keeps that of the interim answer before it", is_interim_in_log),
    ("unknown charset", "if the variable of `charset` has no value, nginx closes the connection; weir sends the answer (docs/guide/bodies.md)", is_unknown_charset),
    ("line of a subrequest", "a subrequest's line in the log counts its own bytes; nginx counts those that the client got before", is_line_of_subrequest),
    ("length of chunks", "`$content_length` of a body in chunks is known while weir has the body; nginx counts what it read, and 0 for a body that it discards", is_length_of_chunks),
    ("interim answer counted", "`$body_bytes_sent` has no bytes of `100 Continue`; nginx counts them", is_interim_counted),
    ("log after post_action", "after post_action, nginx's log line mixes both requests: the place of the one, fields and bytes of the other", is_after),
    ("first value", "nginx keeps the value that a variable had when it was read first; weir gives that of the moment (docs/guide/nginx-files.md)", is_first_value),
    ("unsent trailer", "`$sent_trailer_NAME` is a trailer that was sent; nginx computes it for answers without chunks too", is_trailer_unsent),
    ("single field", "Server and Date stand once in an answer (RFC 9110 5.3): those of add_header replace weir's (docs/guide/nginx-files.md)", is_single_field),
    ("length written", "weir itself says the length of the body that it sends to an origin (docs/guide/nginx-files.md)", is_length_written),
    ("late trailers", "nginx ends a connection of HTTP/2 if trailers come after the answer", is_trailer_late),
    ("log line of a subrequest", "nginx fills the fields of a subrequest's answer only if its body is sent", is_subrequest_logged),
    ("field of the connection", "HTTP/2 has no fields of the connection (RFC 9113 8.2.2): weir does not send them to such an origin", is_field_of_hop),
    ("age", "weir says the age of a stored answer (RFC 9111 5.1)", is_age),
    ("moment", "the two edges answer in different seconds", is_same_moment),
    ("overwritten Location", "nginx writes the Location that it changes over the origin's, so its variable has parts of both", is_overwritten_location),
    ("old default", "before 1.29.7, nginx spoke HTTP/1.0 to origins, and closed each connection", is_old_default),
    ("old answer", "before 1.29, nginx passed an origin's bytes on that are no HTTP", is_old_answer),
    ("old hint", "before 1.29, nginx took 103 for the answer", is_old_hint),
    ("old order", "before 1.29, nginx wrote its own fields for an origin in another order, and no Host of HTTP/2 for an application", is_old_order),
    ("allow", "405 names the allowed methods (RFC 9110 15.5.6)", is_allow),
    ("upgrade of a copy", "a subrequest never asks for an upgrade, by fields or parameters (docs/guide/auth_request.md)", is_upgrade_of_subrequest),
    ("framing", "the sizes of chunks and frames are not a body's bytes, and depend on packets", is_framing),
    ("asked again", "weir keeps connections to origins by default; a request that finds one closed goes to the server once more", is_asked_again),
    ("unmapped characters", "charset_map writes `?` for a character without a row; nginx leaves such characters as they are if no character in its buffer has a row of several bytes", is_unmapped),
    ("reset after a body", "without lingering_close, the rest of a body resets the connection, which can overtake the answer", is_reset_after_body),
    ("filter of slices", "weir filters an answer that it fetches in parts as one body; nginx filters each part by itself", is_filter_of_slices),
    ("part of a HEAD", "weir reads the part that it has asked for, also for HEAD", is_part_of_head),
    ("range after a whole answer", "`$slice_range` keeps the range that weir has asked for; in nginx it is empty after an answer that is not in parts", is_range_after_whole),
    ("end of a slow answer", "after an answer with a rate, nginx waits before it ends the request; a client that closes then is one that left early", is_end_of_slow),
    ("page in itself", "a part of a page that has the page's key in the cache is the page itself, once it is stored; it depends on packets with both edges", is_part_of_itself),
    ("space in a field", "HTTP/2 has no fields whose values begin or end with a space (RFC 9113 8.2.1)", is_space_in_field),
    ("chunked head", "nginx's answer to a WebDAV request announces chunks for trailers, and sends none; weir sends the last one", is_chunked_head),
    ("earlier piece", "weir passes on what it has; nginx's buffers and filters may hold it back", is_earlier_piece),
    ("variable of a copy", "a copy has variables of its own; in nginx, `set` of the server changes those of the client's request again", is_set_by_copy),
    ("stored coding", "weir stores a compressed body beside the plain one, so its length is known (docs/guide/cache.md)", is_stored_coding),
    ("HEAD stored", "weir keeps no answer to a HEAD that stays one, if GET has the same key: nginx gives its empty body to a later GET (docs/guide/fastcgi.md)", is_head_stored),
    ("sent field", "`$sent_http_NAME` is the field as it was sent; nginx has it before its last changes", is_sent_field),
    ("loop of subrequests", "subrequests that make subrequests end at each server's own bound", is_loop_of_subrequests),
    ("copy given up", "nginx gives up copies that are not sent when the client leaves (docs/guide/mirror.md); a copy and its request take turns at a group's failed servers", is_copy_given_up),
    ("cut answer", "`$request_completion` is empty for an answer that was cut short; nginx may keep its head back too", is_cut_answer),
    ("unread body", "`$request_length` of a body that nobody reads depends on what had come", is_unread_counted),
    ("length over HTTP/2", "an origin of HTTP/2 that tells no length: weir says 0 if there is no body, and nothing for HEAD (RFC 9110 9.3.2) and 304 (8.6); nginx the other way round", is_length_over_http2),
    ("last resort", "if all servers have failed, weir tries one of them (docs/guide/health.md)", is_last_resort),
    ("asked again, in the log", "the second try after a kept connection was found closed has no place of its own in weir's log", is_asked_again_in_log),
    ("closed by a subrequest", "444 in a subrequest closes the client's connection; nginx over HTTP/2 drops the subrequest alone", is_closed_by_subrequest),
    ("end of a cut body", "sub_filter of nginx keeps the bytes that could begin a match, and loses them if the answer is cut short", is_cut_body),
    ("limit of a subrequest", "a subrequest has limits of its own; nginx keeps them in the client's request", is_limit_of_subrequest),
    ("body in a text", "weir reads the body for a text that has it; in nginx `$request_body` is empty unless a handler has read it (docs/guide/nginx-files.md)", is_body_read),
    ("count", "a count of bytes in a text has the reasons of the same count in the log", is_count),
    ("stored answer", "proxy_store keeps answers to GET; nginx keeps those to other methods too", is_post_stored),
    ("names of fields", "the default server of the address decides about names of fields; nginx: the named server, for fields after Host", is_field_of_server),
    ("HEAD that is not kept", "weir makes a HEAD a GET only if the cache keeps the answer; nginx always", is_head_not_kept),
    ("body of a subrequest", "a subrequest has no body of the client, so weir does not compare the length with its client_max_body_size (docs/guide/nginx-files.md)", is_body_of_subrequest),
    ("session reset", "a close with bytes of the client unread is a reset, which can overtake the answer", is_session_reset),
    ("address of a subrequest", "the address that realip reads in a subrequest is that subrequest's; nginx gives it to the connection", is_address_of_subrequest),
    ("name of trailers", "Trailer announces fields that weir does not keep: a stored answer has neither", is_trailer_named),
    ("capture of a map", "the regular expressions of a map do not change `$1` of the location (docs/guide/nginx-files.md)", is_capture),
    ("range of a method", "Range is for GET (RFC 9110 14.2): with other methods weir neither offers nor uses it, whatever proxy_force_ranges says", is_range_of_method),
    ("late text", "nginx keeps the empty value that a variable of the answer had when it was read first (docs/guide/nginx-files.md)", is_late_text),
    ("escaped target", "weir escapes a space of `$uri` in proxy_pass; nginx sends a request line with it", is_escaped),
    ("other state", "an earlier request has a difference with a reason, since when the caches do not keep the same answers", is_other_state),
    ("place of an addition", "add_after_body stands at the end of the answer; nginx sends it before the rest of a page with SSI", is_place_of_addition),
    ("memcached and limit_except", "memcached also answers the methods that limit_except does not name; nginx looks for a file", is_memcached_excepted),
    ("trailer twice", "add_trailer adds a trailer once; nginx repeats it for each subrequest in the answer", is_trailer_twice),
    ("slice of gRPC", "weir slices no answers of gRPC, which are not kept (docs/guide/grpc.md)", is_slice_of_grpc),
    ("body of a subrequest's key", "nginx keeps the empty `$request_body` that a check of auth_request has read before the body was there; a key and a condition of weir have the body", is_body_in_subrequest),
    ("stored check", "nginx gives a check of auth_request the stored answer to a request with Authorization, or with a body that no_cache names; weir asks again", is_check_stored),
    ("slice read", "nginx keeps the empty `$slice_range` that a subrequest has read", is_slice_read),
    ("slice cut", "if a range meets slices and compression, nginx sends a part of the body with 200; weir sends all of it", is_slice_cut),
    ("slice in the log", "slices of weir are parts of one request and have one line in the log; nginx writes a line for each with log_subrequest", is_slice_logged),
    ("condition of a method", "304 is for GET and HEAD (RFC 9110 15.4.5)", is_condition_of_method),
    ("ranges of a film", "weir answers several ranges of a film with a start by all of it; nginx by parts if they lie in one buffer, else it closes", is_ranges_of_film),
    ("tag twice", "an error page has its own entity tag; nginx sends that of the file beside it", is_tag_twice),
    ("unsatisfied range", "weir keeps the whole answer also if the client's range is outside of it", is_unsatisfied),
    ("unsafe method", "after an unsafe request, weir removes the answers that are kept for its URI (RFC 9111 4.4)", is_unsafe),
    ("small buffer", "weir uses the cache also if a key does not fit in the buffer of the head (proxy_buffer_size), where nginx leaves it out", is_small_buffer),
    ("slice with a subrequest", "if an answer has slices and other subrequests (add_before_body), nginx loses the request and never answers", is_slice_stuck),
    ("PUT in memory", "nginx answers PUT with 500 where mirror is on; weir stores the body, or tries to", is_put_in_memory),
    ("alias and rewrite", "`$request_filename` of a redirect is the file of the URI; nginx leaves it empty after `rewrite … break`", is_alias_left),
    ("key in a file", "a body in a file is never a key: weir does not use the cache then, nginx takes an empty text", is_key_in_file),
    ("length of a stored answer", "weir knows the length of an answer that the cache has whole", is_length_of_stored),
    ("short life", "the answer was old for one of the two edges, and not for the other", is_short_life),
    ("other turn", "the turns of a group's servers follow the requests that it got before", is_other_turn),
    ("no HTTP", "weir answers 502 if an application's answer is no HTTP", is_no_http),
    ("GOAWAY first", "nginx sends GOAWAY before the last answer of a connection; the client's library takes no frames after it", is_goaway_first),
    ("hints", "weir passes 103 to clients of HTTP/2 (docs/reference/directives.md, early_hints)", is_hint),
    ("unread body on a connection", "each server has its own bound for a body that nobody reads, and then ends the connection (docs/guide/nginx-files.md)", is_after_body),
    ("lost challenge", "nginx drops the fields that it has set before an origin's interim answer", is_lost_challenge),
    ("condition of a log", "nginx computes a map once for a request and its subrequests; weir for each of them", is_condition_of_log),
    ("part in the log", "the parts of a sliced answer are no subrequests of weir: they have no lines in the log (docs/guide/nginx-files.md)", is_part_logged),
    ("no end", "nginx never ends the answer to a change of DAV if it has trailers", is_stuck),
    ("page of a large body", "nginx compares the length of the body again with the limit of an error page's location, for 413 itself over HTTP/2 (docs/guide/nginx-files.md)", is_page_of_large_body),
    ("early target", "`$proxy_host` is that of the location's proxy_pass from the start; in nginx it is empty until the request goes to the origin", is_early_target),
    ("old refusal", "nginx remembers the 401 of auth_basic for the error page of a check that failed; the page is for everybody in weir", is_old_refusal),
    ("error kept", "no_cache also keeps an error out of the cache that error_page replaces; nginx does not ask it then", is_error_kept),
    ("personal", "weir gives no stored answer to a request with Authorization, unless the answer is for everybody (docs/guide/cache.md)", is_personal),
    ("last request", "nginx does not look at the limits of a connection if the server answers or the location is internal; weir ends the connection as the file says", is_kept_by_refusal),
    ("kept by a length", "an answer with a length needs no end of the connection; why weir alone knows the length has a rule of its own", is_kept_by_length),
    ("websocket", "weir passes a WebSocket on without directives, if the file sets neither Upgrade nor Connection", is_websocket),
    ("fragment", "weir passes no target with `#` to an origin (RFC 9112 3.2): the origin may read another path than the location saw (strict_targets)", is_fragment),
    ("permission", "weir sends no `100 Continue` to a client that has sent the body already, or whose body it does not need (RFC 9110 10.1.1)", is_permission),
    ("order of Vary", "weir adds its own Vary after the origin's, once; the order has no meaning (RFC 9110 12.5.5)", is_order_of_vary),
    ("cache", "where the cache asks for whole answers, weir itself answers ranges and conditions (docs/guide/cache.md)", is_of_cache),
    ("charset", "nginx gives its own answer the charset of the answer that X-Accel-Redirect replaced", is_lost_charset),
    ("handshake", "a request without a host belongs to the server that the client named in the TLS handshake; nginx: to the default server", is_of_handshake),
    ("order of fields", "nginx has other places for Content-Length, TE and the Cookie that it joins; the order of different fields has no meaning (RFC 9110 5.3)", is_order_of_fields),
    ("broken stream", "curl 7.88 drops an answer whose stream is reset with NO_ERROR (RFC 9113 8.1); it depends on packets with both edges", is_broken_stream),
]


def rule(request, difference, nginx, weir):
    """The name of the rule that explains this difference, or None."""
    return next((name for name, _, test in RULES if test(request, difference, nginx, weir)), None)
