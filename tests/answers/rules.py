"""The deliberate differences between weir and nginx: one list of rules for `real_answers.py` and `compose.py`."""
import re

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


def is_websocket(request, difference, _nginx, _weir):
    """An Upgrade that nginx does not pass on."""
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
        return difference.nginx == "[]" and difference.weir == "['bytes']" and (bool(weir["seen"] or nginx["seen"]) or is_of_stored(nginx))
    is_asked = any(name.startswith(("If-", "Range")) for name, _ in request.headers)
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


def is_kept_by_refusal(_request, difference, nginx, _weir):
    """The last request of a connection, if nginx refuses it before it has looked at the location's settings."""
    return difference.where in ("field connection", "end") and nginx["answer"]["status"].startswith("HTTP/1.1 404") and re.search(r"keepalive_(?:requests|timeout|disable|time) ", nginx.get("conf", "")) is not None and "internal;" in nginx.get("conf", "")


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
    is_extra = any(one["line"] not in lines for one in weir["seen"])
    return asks(request) and (is_extra or bool(weir["seen"]) and is_of_stored(nginx) and not difference.where.startswith("origin: "))


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
    if not difference.where.startswith("log: sent_http_") or "answer" not in nginx:
        return False
    name = difference.where.removeprefix("log: sent_http_").replace("_", "-")

    def sent(record):
        values = [value for found, value in record["answer"]["headers"] if found.lower() == name]
        return values[-1] if values else ""
    return len(nginx["log"]) == 1 and difference.nginx.strip("-") != sent(nginx) and difference.weir.strip("-") == sent(weir)


def is_loop_of_subrequests(_request, difference, nginx, weir):
    """Copies that make copies: each server has its bound."""
    most = max(len(record[part]) for record in (nginx, weir) for part in ("seen", "log"))
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
    if is_withheld and weir["answer"]["end"] in ("cut short", "reset"):
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
        # Compression then sees another length.
        return is_told and difference.nginx in ("['0']", "0") and difference.weir in ("[]", "") or difference.where in ("field content-encoding", "field vary", "field etag", "log: sent_http_etag")
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
    return "closed" in (nginx["answer"]["status"], weir["answer"]["status"]) or difference.where == "log: status" and "444" in (difference.nginx, difference.weir)


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
        return difference.weir == ""
    limits = [[(line.get("limit_req_status"), line.get("limit_conn_status")) for line in record["log"]] for record in (nginx, weir)]
    return difference.where in ("status", "log: status") and limits[0] != limits[1]


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
    return difference.where.startswith(("body", "field ", "log: ", "origin: field ", "status", "number of requests"))


def is_count(_request, difference, nginx, _weir):
    """A count of bytes in a text of the file."""
    if re.search(r"\$(?:body_bytes_sent|bytes_sent|request_length|upstream_response_length|content_length)\b", nginx.get("conf", "")) is None:
        return False
    return difference.where.startswith(("field ", "trailers", "origin: field ", "log: sent_", "body")) and re.sub(r"\d+", "0", difference.nginx) == re.sub(r"\d+", "0", difference.weir)


def is_post_stored(_request, difference, nginx, _weir):
    """The answer to another method than GET, as a file."""
    return difference.where == "files: kept" and "_store " in nginx.get("conf", "") and any(one.method != "GET" for one in nginx.get("asks", ()))


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
    return re.search(r"\$[12]\b", conf) is not None and re.search(r"map [^{]*\{[^}]*~", conf) is not None and difference.where.startswith(("field ", "trailers", "body", "origin: field ", "log: sent_", "log: body_bytes_sent", "log: upstream_response_length"))


def is_range_of_method(request, difference, nginx, _weir):
    """Range, and the field that offers it, with another method than GET and HEAD."""
    if request.method in ("GET", "HEAD"):
        return False
    is_ranged = any(name == "Range" for name, _ in request.headers)
    return difference.where == "field accept-ranges" and difference.weir == "[]" or is_ranged and difference.where in ("status", "log: status") and re.search("206|416", difference.nginx) is not None


def is_late_text(_request, difference, nginx, _weir):
    """A text with a variable of the answer that the file has read before there was an answer."""
    names = re.findall(r"\$((?:upstream|sent_http|limit)_\w+|request_completion|status)\b", nginx.get("conf", ""))
    is_value = difference.where.startswith(("field ", "trailers", "body", "origin: field ", "log: sent_", "log: body_bytes_sent"))
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
    """`$slice_range` in a request of gRPC: nginx fetches the answer in parts, weir at once."""
    conf = nginx.get("conf", "")
    if re.search("grpc_pass |proxy_http_version 2", conf) is None or "slice " not in conf:
        return False
    whole, parts = ([one for one in record["seen"] if one["line"].startswith("grpc: ") and is_ranged == any(name == "range" for name, _ in one["headers"])] for record, is_ranged in ((weir, False), (nginx, True)))
    if not parts or not {one["line"] for one in parts} <= {one["line"] for one in whole}:
        return False
    if difference.where == "origin: field range":
        return difference.weir == "[]"
    # The origin sends at most 30000 bytes at once.
    bodies = [record["answer"]["body"] for record in (nginx, weir)]
    return bodies[0].startswith(bodies[1]) and difference.where in ("body", "field content-length", "field transfer-encoding", "log: sent_http_content_length", "log: sent_http_transfer_encoding", "log: upstream_status", "log: upstream_response_length", "log: body_bytes_sent")


def is_key_in_file(request, difference, nginx, weir):
    """A request whose key has a body that is in a file."""
    is_stored = is_of_stored(nginx) or is_of_stored(weir)
    return len(getattr(request, "body", None) or b"") > 8000 and re.search(r"_cache(?:_key|_bypass)? [^;]*\$(?:request_body|bodied|nested)", nginx.get("conf", "")) is not None and is_stored and not difference.where.startswith("origin: ")


# Rules about answers that one of the edges keeps: later requests can find another state of the cache.
STATEFUL = ("personal", "HEAD stored", "cache", "short life", "log after post_action", "body of a subrequest", "asked again", "last resort", "stored answer")


def is_other_state(_request, difference, nginx, weir):
    """A request for a cache whose state differs since an earlier request."""
    is_asked = "auth_request" in nginx.get("conf", "") and "_cache " in nginx["conf"] and len(nginx["seen"]) != len(weir["seen"])
    return nginx.get("is_other_state", False) and (is_of_stored(nginx) or is_of_stored(weir) or is_asked) and not difference.where.startswith("origin: ")


def is_length_of_stored(_request, difference, nginx, _weir):
    """The length of an answer that the cache has."""
    return is_of_stored(nginx) and (difference.where in ("field content-length", "log: sent_http_content_length") and difference.nginx in ("[]", "") or difference.where == "field transfer-encoding" and difference.weir == "[]")


def is_short_life(_request, difference, nginx, weir):
    """A stored answer that lives for a second."""
    is_cached = is_of_stored(nginx) or is_of_stored(weir)
    return re.search(r"_cache_valid [^;]*\b1s", nginx.get("conf", "")) is not None and (is_cached and difference.where.startswith("log: upstream_") or difference.where.startswith("number of requests"))


def is_other_turn(_request, difference, nginx, weir):
    """The server of a group whose turn it is, after a difference in the number of requests to that group; and what that server answers."""
    def line(record):
        return modern(re.sub(r"^\w+: ", "", record["seen"][0]["line"]))
    if not nginx.get("diverged") or not nginx["seen"] or not weir["seen"] or "upstream " not in nginx["conf"]:
        return False
    if nginx["seen"][0]["line"] != weir["seen"][0]["line"] and line(nginx) == line(weir):
        return not difference.where.startswith("origin: body")
    return difference.where == "log: upstream_addr" and re.sub(":90(?:0[129]|10)", "", difference.nginx) == re.sub(":90(?:0[129]|10)", "", difference.weir)


def is_no_http(_request, difference, nginx, weir):
    """Bytes of an application that are no HTTP."""
    if difference.where == "body":
        return b"\0garbage" in nginx["answer"]["body"] and b"502 Bad Gateway" in weir["answer"]["body"] and body(nginx["answer"]).partition("\0garbage")[0] == body(weir["answer"]).partition("<html>\r\n<head><title>502")[0]
    return nginx["answer"]["status"].startswith("no HTTP: ") and difference.where in ("status", "log: status") and ("009" in (difference.nginx, difference.weir) or difference.where == "status") and "garbage" in str(nginx["seen"]) + nginx.get("conf", "")


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


def is_host_before_pass(_request, difference, nginx, weir):
    """`$proxy_host` in the text of `return`, which answers before proxy_pass."""
    is_written = re.search(r"return [^;]*\$proxy_host", nginx.get("conf", "")) is not None
    return is_written and difference.where in ("body", "field transfer-encoding", "log: sent_http_transfer_encoding") and not weir["seen"] and nginx["answer"]["body"] in weir["answer"]["body"]


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
    ("host before proxy_pass", "`$proxy_host` is the host of the location's proxy_pass; in nginx it is empty in `return`, which comes before proxy_pass", is_host_before_pass),
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
    ("key in a file", "a body in a file is never a key: weir does not use the cache then, nginx takes an empty text", is_key_in_file),
    ("length of a stored answer", "weir knows the length of an answer that the cache has whole", is_length_of_stored),
    ("short life", "the answer was old for one of the two edges, and not for the other", is_short_life),
    ("other turn", "the turns of a group's servers follow the requests that it got before", is_other_turn),
    ("no HTTP", "weir answers 502 if an application's answer is no HTTP", is_no_http),
    ("GOAWAY first", "nginx sends GOAWAY before the last answer of a connection; the client's library takes no frames after it", is_goaway_first),
    ("hints", "weir passes 103 to clients of HTTP/2 (docs/reference/directives.md, early_hints)", is_hint),
    ("unread body on a connection", "each server has its own bound for a body that nobody reads, and then ends the connection (docs/guide/nginx-files.md)", is_after_body),
    ("personal", "weir gives no stored answer to a request with Authorization, unless the answer is for everybody (docs/guide/cache.md)", is_personal),
    ("last request", "nginx forgets the limits of a connection if a location is internal; weir ends the connection as the file says", is_kept_by_refusal),
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
