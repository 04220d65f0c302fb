"""Subrequests: checks, copies, additions, SSI."""
import re

from rules.basis import SUBREQUEST, because, is_of_stored, is_status_of


@because("upgrade of a copy", "a subrequest never asks for an upgrade, by fields or parameters (docs/guide/auth_request.md)")
def is_upgrade_of_subrequest(_request, difference, nginx, _weir):
    """The client's Upgrade in a subrequest, as a parameter or a field."""
    if difference.where in ("origin: field upgrade", "origin: field connection") and re.search(SUBREQUEST + "|post_action ", nginx.get("conf", "")) is None:
        return False
    return difference.where.lower() in ("origin: field http_upgrade", "origin: field upgrade", "origin: field connection") and difference.weir in ("", "[]")


@because("variable of a copy", "a copy has variables of its own; in nginx, `set` for a copy changes those of the client's request")
def is_set_by_copy(_request, difference, nginx, weir):
    """A variable that `set` gives another value for a copy of the request."""
    if "mirror " not in nginx.get("conf", ""):
        return False
    if nginx["conf"].count("$invalid_referer") > 1 and difference.where.startswith(("body", "origin: ")):
        # nginx keeps the first value, which a copy may have read where no valid_referers is in force.
        return True
    if "set $one 1st" not in nginx["conf"]:
        return False
    values = [difference.nginx, difference.weir]
    if difference.where == "body":
        values = [record["answer"]["body"].decode("latin-1") for record in (nginx, weir)]
    # One of them has the server's value, where the other one has what a copy has set.
    return (difference.where in ("trailers", "body") or difference.where.startswith("field ")) and any(re.fullmatch(re.escape(one).replace("1st", r"\w*"), other) for one, other in (values, values[::-1]) if "1st" in one)


@because("moment of a trailer", "a trailer has the values that variables have at the end of the answer, also those that a part of the answer has set; nginx may write it before the part")
def is_set_by_part(request, difference, nginx, _weir):
    """A trailer with a variable that `set` gives the argument of the request, and then the argument of a part."""
    conf = nginx.get("conf", "")
    is_written = re.search(r"add_trailer [^;]*\$two\b", conf) is not None and re.search(r"\b(?:ssi on|add_(?:before|after)_body )", conf) is not None
    value = re.search(r"[?&]a=([^&]*)", request.target)
    return is_written and value is not None and difference.where == "trailers" and difference.nginx.replace(f": {value[1]}", ": ", 1) == difference.weir


@because("map of a copy", "a copy has variables of its own; nginx computes a variable of `map` and `split_clients` once for a request and its copies")
def is_mapped_for_copy(_request, difference, nginx, _weir):
    """A field with a variable that depends on the URI, or a method that depends on the method, in a request and its copy."""
    if difference.where == "origin: request line" and re.search(r"_method \$verb", nginx.get("conf", "")) is not None and "mirror " in nginx["conf"]:
        # The method alone.
        return re.sub(r": \S+ ", ": ", difference.nginx) == re.sub(r": \S+ ", ": ", difference.weir)
    is_mapped = re.search(r"(?:map|split_clients) [^{;]*\$(?:uri|document_uri|request_filename|args|is_args)\b", nginx.get("conf", "")) is not None
    return is_mapped and "mirror " in nginx["conf"] and difference.where.startswith("origin: field ") and len(nginx["seen"]) > 1


@because("method of a copy", "a copy has the method of its own request, which is GET after an error page or X-Accel-Redirect; nginx's `$request_method` is that of the client's request")
def is_method_of_copy(request, difference, nginx, _weir):
    """`$request_method` of a copy that has been redirected."""
    return difference.where.lower() == "origin: field request_method" and (difference.nginx, difference.weir) == (str([request.method]), "['GET']") and "mirror " in nginx.get("conf", "")


@because("loop of subrequests", "subrequests that make subrequests end at each server's own bound")
def is_loop_of_subrequests(_request, difference, nginx, weir):
    """Copies that make copies: each server has its bound."""
    def copies(record):
        # Slices are no copies.
        return [one for one in record["seen"] if "$slice_range" not in nginx.get("conf", "") or not any(name.lower() == "range" for name, _ in one["headers"])]
    # Parts that are files have no line at an origin, but each begins as the page does.
    pages = [page.count(page[:40]) for page in (record["answer"]["body"] for record in (nginx, weir)) if len(page) > 10000]
    most = max(*(len(part) for record in (nginx, weir) for part in (copies(record), record["log"])), *pages)
    if most > 20:
        return re.search(SUBREQUEST, nginx.get("conf", "")) is not None
    return "mirror " in nginx.get("conf", "") and difference.where.startswith(("number of requests", "origin: ")) and most > 4


def is_of_earlier(line, request, earlier):
    """Whether the query of a request line is one of an earlier request of the client, and not of this one."""
    query = line.rpartition(" ")[0].partition("?")[2]
    return query != request.target.partition("?")[2] and any(query == one.target.partition("?")[2] for one in earlier)


@because("copy given up", "nginx gives up copies that are not sent when the client leaves (docs/guide/mirror.md); a copy and its request take turns at a group's failed servers")
def is_copy_given_up(request, difference, nginx, weir):
    """A copy of a request whose client leaves after the answer."""
    # A copy without the client's fields may be counted for the next request.
    is_unnumbered = any(not any(name.lower() in ("x-n", "http_x_n") for name, _ in one["headers"]) for one in (*nginx["seen"], *weir["seen"]))
    if difference.where == "origin: request line":
        lines = (difference.nginx, difference.weir)
        return "mirror " in nginx.get("conf", "") and is_unnumbered and any(is_of_earlier(line, request, nginx.get("earlier", ())) for line in lines)
    return "mirror " in nginx.get("conf", "") and (difference.where.startswith("number of requests") and (len(nginx["seen"]) < len(weir["seen"]) or "upstream " in nginx["conf"] or is_unnumbered) or difference.where == "log: number of lines")


@because("closed by a subrequest", "444 in a subrequest closes the client's connection; nginx over HTTP/2 drops the subrequest alone")
def is_closed_by_subrequest(_request, difference, nginx, weir):
    """444 in a subrequest."""
    conf = nginx.get("conf", "")
    if "444" not in conf or re.search(SUBREQUEST, conf) is None:
        return False
    return "closed" in (nginx["answer"]["status"], weir["answer"]["status"]) or difference.where == "reused" or difference.where == "log: status" and "444" in (difference.nginx, difference.weir)


@because("limit of a subrequest", "a subrequest has limits of its own; nginx keeps them in the client's request")
def is_limit_of_subrequest(_request, difference, nginx, weir):
    """The limit that a subrequest has passed, in the log line of the client's request; and what follows in that request."""
    if re.search(SUBREQUEST, nginx.get("conf", "")) is None:
        return False
    if difference.where in ("log: limit_conn_status", "log: limit_req_status"):
        return difference.weir == "" or nginx.get("is_other_limit", False)
    if difference.where == "body" or difference.where.startswith("number of requests"):
        # A refused part of the page; nginx limits no further part.
        parts = [record["answer"]["body"].count(b"503 Service Temporarily Unavailable</h1>") + record["answer"]["body"].count(b"429 Too Many Requests</h1>") for record in (nginx, weir)]
        return "limit_" in nginx["conf"] and parts[0] < parts[1]
    limits = [[(line.get("limit_req_status"), line.get("limit_conn_status")) for line in record["log"]] for record in (nginx, weir)]
    # After a check or a copy that was refused, nginx limits the error page or X-Accel-Redirect of the client's request no more.
    is_refused = re.search("auth_request /|mirror [/@]", nginx["conf"]) is not None and "REJECTED" in str(limits)
    return difference.where in ("status", "log: status") and (limits[0] != limits[1] or is_refused or nginx.get("is_other_limit", False))


@because("other limit", "an earlier request has a difference with a reason, since when the limits have not counted the same requests")
def is_other_limit(_request, difference, nginx, _weir):
    """A limit after an earlier request with another status."""
    is_limit = difference.where in ("log: limit_conn_status", "log: limit_req_status", "status", "log: status")
    return is_limit and nginx.get("is_other_limit", False) and re.search(r"limit_(?:req|conn) ", nginx.get("conf", "")) is not None


@because("body of a subrequest", "a subrequest has no body of the client, so weir does not compare the length with its client_max_body_size (docs/guide/nginx-files.md)", leaves="cache")
def is_body_of_subrequest(request, difference, nginx, weir):
    """A subrequest whose location allows a smaller body than the client's request has."""
    conf = nginx.get("conf", "")
    if not getattr(request, "body", None) or "client_max_body_size " not in conf or re.search(SUBREQUEST, conf) is None:
        return False
    if "mirror_request_body off" in conf and difference.where == "origin: request line":
        # nginx sends the error page's request in place of the copy.
        return True
    is_told = b"413 " in nginx["answer"]["body"] or any(line.get("status") == "413" for line in nginx["log"])
    if not nginx["seen"] and weir["seen"] and b"500 Internal Server Error" in nginx["answer"]["body"]:
        # A check failed in nginx; with weir the location's own answer has the same status.
        return not difference.where.startswith("origin: ")
    return is_told or difference.nginx.startswith("HTTP/") and " 500" in difference.nginx or difference.nginx == "500" or difference.where.startswith("number of requests")


@because("address of a subrequest", "the address that realip reads in a subrequest is that subrequest's; nginx gives it to the connection")
def is_address_of_subrequest(_request, difference, nginx, _weir):
    """The client's address that a subrequest has read from a field."""
    return difference.where in ("log: remote_addr", "field x-real") and re.search(SUBREQUEST, nginx.get("conf", "")) is not None and "set_real_ip_from" in nginx["conf"]


@because("place of an addition", "add_after_body stands at the end of the answer; nginx sends it before the rest of a page with SSI")
def is_place_of_addition(_request, difference, nginx, weir):
    """A page with SSI and an addition: the same bytes in another order."""
    conf = nginx.get("conf", "")
    bodies = [re.sub("nginx|weir", "EDGE", record["answer"]["body"].decode("latin-1")) for record in (nginx, weir)]
    return difference.where == "body" and "ssi on" in conf and "add_" in conf and sorted(bodies[0]) == sorted(bodies[1])


@because("trailer twice", "add_trailer adds a trailer once; nginx repeats it for each subrequest in the answer")
def is_trailer_twice(_request, difference, nginx, _weir):
    """A trailer that nginx adds once for the answer, and once for a subrequest in it."""
    is_counted = re.search(r"add_trailer [^;]*\$(?:body_bytes_sent|bytes_sent|upstream_response_length|request_length)\b", nginx.get("conf", "")) is not None
    values = [set(re.split("\n|, ", re.sub(r"\d+", "0", text) if is_counted else text)) for text in (difference.nginx, difference.weir)]
    return difference.where in ("trailers", "log: sent_trailer_x_t1") and len(difference.nginx) > len(difference.weir) and values[0] == values[1] and re.search(SUBREQUEST, nginx.get("conf", "")) is not None


@because("body of a subrequest's key", "nginx keeps the empty `$request_body` that a check of auth_request has read before the body was there; a key and a condition of weir have the body", leaves="cache")
def is_body_in_subrequest(request, difference, nginx, weir):
    """A key or a condition with the request's body, which a subrequest has read before the body was there."""
    conf = nginx.get("conf", "")
    if not getattr(request, "body", None) or "auth_request /" not in conf or re.search(r"_(?:cache_key|cache_bypass|no_cache) [^;]*\$(?:request_body|bodied|nested)", conf) is None:
        return False
    # The answer to a body with the same empty key.
    is_unlogged = "access_log " in conf and not (nginx["log"] or weir["log"])
    is_other = is_status_of(nginx, "HIT") and is_status_of(weir, "MISS") or is_unlogged and not nginx["seen"] and bool(weir["seen"])
    is_other_answer = is_other and difference.where.startswith(("status", "body", "field ", "log: ", "number of requests"))
    return is_other_answer or is_of_stored(nginx) and is_of_stored(weir) and difference.where.startswith(("log: upstream_", "number of requests"))


@because("PUT in memory", "nginx answers PUT with 500 where mirror is on; weir stores the body, or tries to")
def is_put_in_memory(request, difference, nginx, _weir):
    """PUT in a location that copies requests: the body that nginx has read for the copies is not one that its WebDAV can take."""
    statuses = nginx.get("statuses", [nginx["answer"]["status"]])
    is_refused = "PUT request body must be in a file" in nginx.get("told", ()) or any(" 500" in status for status in statuses)
    if not is_refused or "mirror " not in nginx.get("conf", "") or "dav_methods " not in nginx["conf"]:
        return False
    if difference.where == "error log: crit":
        return re.search(r"rename\(\) \S+ to \S*/dav/\S* failed \(2: ", difference.weir) is not None and difference.weir.count("[crit]") == difference.weir.count("rename()")
    if difference.where == "files: kept":
        return difference.nginx == "[]"
    return request.method == "PUT" and difference.where in ("status", "log: status") and re.search(r"\b500\b", difference.nginx) is not None and re.search(r"\b20[14]\b", difference.weir) is not None


@because("cut check", "the status of a check comes with its head; nginx reads an answer that it stores, and closes the client's connection if the origin cuts it", leaves="cache")
def is_cut_check(request, difference, nginx, _weir):
    """A check of auth_request whose stored answer ends too early."""
    conf = nginx.get("conf", "")
    is_cut = re.search(r"o=(?:short|reset|cut)", f"{request.target} {request.headers} {conf}") is not None
    is_stored = "auth_request /" in conf and "_cache " in conf
    return is_stored and is_cut and (difference.nginx in ("closed", "000") or nginx["answer"]["status"] == "closed")
