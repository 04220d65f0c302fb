"""The client's connection, and the end of an answer."""
import re

from compare import headers
from rules.basis import because, of_servers, plain


@because("late trailers", "nginx ends a connection of HTTP/2 if trailers come after the answer")
def is_trailer_late(request, difference, nginx, _weir):
    """Trailers of a request over HTTP/2 whose answer came before them."""
    is_of_case = difference.where == "files: kept" or difference.where == "error log: crit" and difference.weir.count("[crit]") == len(re.findall(r"rename\(\) [^,]*, [^\]]*HTTP/2.0", difference.weir))
    if is_of_case:
        # A file that nginx has not made, or that only weir has tried to make, for such a client.
        return any(one.http2 and getattr(one, "trailers", ()) and one.method in ("PUT", "MKCOL", "COPY", "MOVE", "DELETE") for one in nginx["asks"]) and "closed" in nginx.get("statuses", ())
    return request.http2 and bool(getattr(request, "trailers", ())) and nginx["answer"]["status"] in ("closed", "no HTTP: ProtocolError", "silence") and difference.where.startswith(("status", "log: ", "number of requests"))


@because("reset after a body", "without lingering_close, the rest of a body resets the connection, which can overtake the answer")
def is_reset_after_body(request, difference, nginx, weir):
    """The end of an answer, if the edge closes a connection with a body that nobody has read."""
    ends = {nginx["answer"]["end"], weir["answer"]["end"]}
    return difference.where == "end" and ends == {"closed", "cut short"} and "lingering_close off" in nginx.get("conf", "") and bool(getattr(request, "body", None)) and nginx["answer"]["body"][:100] == weir["answer"]["body"][:100]


@because("chunked head", "nginx's answer to a WebDAV request announces chunks for trailers, and sends none; weir sends the last one")
def is_chunked_head(_request, difference, nginx, weir):
    """An answer of dav without a body, with trailers: nginx says that chunks follow, and sends none."""
    answer = nginx["answer"]
    return difference.where in ("end", "trailers", "log: sent_trailer_x_t1") and answer["status"].startswith(("HTTP/1.1 201", "HTTP/1.1 204")) and answer["end"] == "cut short" and ("Transfer-Encoding", "chunked") in answer["headers"] and not weir["answer"]["body"] and re.search("add_trailer ", nginx.get("conf", "")) is not None and "dav_methods " in nginx["conf"]


@because("earlier piece", "weir passes on what it has; nginx's buffers and filters may hold it back")
def is_earlier_piece(_request, difference, _nginx, _weir):
    """A piece of an answer that one of nginx's buffers holds back."""
    return difference.where == "pieces" and (difference.nginx, difference.weir) == ("all pieces at the end", "each piece by itself")


@because("cut answer", "`$request_completion` is empty for an answer that was cut short; nginx may keep its head back too")
def is_cut_answer(_request, difference, nginx, weir):
    """An answer that was cut short: `$request_completion`, and the head that nginx has not sent yet."""
    if difference.where in ("end", "trailers"):
        # nginx does not see the early end if it keeps the connection.
        is_kept = "fastcgi_keep_conn on" in nginx.get("conf", "") and any(one["line"] == "fastcgi: FastCGI" and "=short" in str(one["headers"]) for one in weir["seen"])
        return is_kept and (nginx["answer"]["end"], weir["answer"]["end"]) in (("kept", "cut short"), ("ended", "reset"))
    if "slice " in nginx.get("conf", "") and (nginx["answer"]["end"], weir["answer"]["status"]) == ("cut short", "closed"):
        # A later part has failed before weir has sent the first one.
        return difference.where in ("status", "log: body_bytes_sent")
    # nginx ends a stream of HTTP/2 whose body is shorter than it was told, as if it were whole.
    is_withheld = nginx["answer"]["status"] in ("closed", "silence", "no HTTP: InvalidBodyLengthError")
    # The end of an answer without chunks and a length is the end of its connection.
    if is_withheld and (weir["answer"]["end"] in ("cut short", "reset") or weir["answer"]["end"] == "closed" and "o=short" in str(weir["seen"])):
        return difference.where in ("status", "number of requests at origins") or difference.where.startswith("log: ")
    if difference.where != "log: request_completion":
        return False
    is_cut = is_withheld or nginx["answer"]["end"] in ("cut short", "reset")
    return "o=short" in str(nginx["seen"]) or is_cut and (difference.nginx, difference.weir) == ("OK", "")


@because("session reset", "a close with bytes of the client unread is a reset, which can overtake the answer")
def is_session_reset(_request, difference, nginx, _weir):
    """The text of a stream server's `return`, if the connection is reset before the client reads it."""
    return difference.where == "streams" and re.search(r"return \"text", nginx.get("conf", "")) is not None and "b''" in difference.nginx + difference.weir


@because("GOAWAY first", "nginx sends GOAWAY before the last answer of a connection; the client's library takes no frames after it")
def is_goaway_first(request, difference, nginx, _weir):
    """HTTP/2 on a connection that ends with its first answer."""
    return request.http2 and nginx["answer"]["status"] == "no HTTP: ProtocolError" and re.search(r"keepalive_(?:timeout 0|requests 1;|disable)", nginx.get("conf", "")) is not None


@because("unread body on a connection", "each server has its own bound for a body that nobody reads, and then ends the connection (docs/guide/nginx-files.md)")
def is_after_body(request, difference, nginx, _weir):
    """A kept connection that an edge closed because of a body that nobody had read."""
    if difference.where in ("end", "field connection", "status", "log: status") and getattr(request, "is_chunked", False) and "client_max_body_size " in nginx.get("conf", ""):
        return "status" not in difference.where or "413" in difference.weir
    if difference.where != "reused" or not nginx.get("earlier"):
        return False
    if nginx.get("is_other_connection", False):
        return True
    return nginx["earlier"][-1].body is not None or re.search("post_action |keepalive_(?:requests|timeout|disable|time) ", nginx["conf"]) is not None


@because("limit while lingering", "nginx counts a request for limit_conn while it reads the rest of the body after the answer (lingering_close); weir counts it until the answer is sent")
def is_limit_while_lingering(_request, difference, nginx, _weir):
    """503 for a request after one whose body was not read to its end."""
    is_after_body = any(getattr(one, "body", None) for one in nginx.get("earlier", ())[-1:])
    is_limited = re.search(r"limit_conn \S+ 1;", nginx.get("conf", "")) is not None and nginx["answer"]["status"].split(" ")[1:2] == ["503"]
    return is_after_body and is_limited and difference.where.startswith(("status", "number of requests", "log: ", "body", "field "))


@because("connection of an internal location", "what a location says of connections also holds for the requests that it refuses because it is internal; nginx refuses them before")
def is_refused_by_internal(request, difference, nginx, _weir):
    """A connection that ends after a request for an internal location, or after its error page."""
    internal = re.findall(r"location (/\S*) \{\n\s+internal;", nginx.get("conf", ""))
    is_answered = not nginx["seen"] and re.search(" (?:404|30[12378]) ", nginx["answer"]["status"]) is not None
    has_page = re.search(r"error_page [^;]*\b404\b", nginx.get("conf", "")) is not None and any(plain(request.target).startswith(path) for path in internal)
    is_refused = re.search(r"\binternal;", nginx.get("conf", "")) is not None and (is_answered or has_page)
    return is_refused and "keepalive_timeout 0;" in nginx["conf"] and difference.where in ("field connection", "end", "reused")


@because("no end", "nginx never ends the answer to a change of DAV if it has trailers")
def is_stuck(request, difference, nginx, weir):
    """A change of DAV with trailers, whose answer nginx does not end."""
    is_unended = nginx["answer"]["status"] == "silence" or difference.where == "end" and difference.nginx == "cut short"
    is_change = request.method in ("PUT", "MKCOL", "COPY", "MOVE", "DELETE") and weir["answer"]["status"].split(" ")[1:2][:1] in (["201"], ["204"])
    return is_unended and is_change and "add_trailer " in nginx.get("conf", "") and difference.where in ("status", "end", "log: request_completion", "log: body_bytes_sent", "log: sent_trailer_x_t1", "reused")


@because("last request", "nginx does not look at the limits of a connection if the server answers or the location is internal; weir ends the connection as the file says")
def is_kept_by_refusal(_request, difference, nginx, weir):
    """The last request of a connection, if nginx answers it before it has looked at the location's settings; and requests on another connection than nginx's."""
    conf = nginx.get("conf", "")
    if difference.where not in ("field connection", "field keep-alive", "end") or re.search(r"keepalive_(?:requests|timeout|disable|time) ", conf) is None:
        return False
    status = nginx["answer"]["status"].split(" ")[1:2]
    is_early = status == ["404"] and "internal;" in conf or status[:1] in [[found] for found in re.findall(r"return (\d+)", of_servers(conf))]
    is_early |= status in (["301"], ["302"]) and re.search(r"rewrite [^;]* http", of_servers(conf)) is not None
    is_other = nginx.get("is_other_connection", False) or nginx["answer"].get("reused") != weir["answer"].get("reused")
    return is_early or is_other and "keepalive_requests " in conf


@because("kept by a length", "an answer with a length needs no end of the connection; why weir alone knows the length has a rule of its own")
def is_kept_by_length(_request, difference, nginx, weir):
    """The connection of an answer whose length weir alone knows, if the file takes the chunks away."""
    lengths = [headers(record["answer"]).get("content-length", []) for record in (nginx, weir)]
    return difference.where in ("end", "field connection", "field keep-alive") and "chunked_transfer_encoding off" in nginx.get("conf", "") and not lengths[0] and len(lengths[1]) == 1


@because("permission", "weir sends no `100 Continue` to a client that has sent the body already, or whose body it does not need (RFC 9110 10.1.1)")
def is_permission(request, difference, nginx, weir):
    """`100 Continue` to a client that has sent the body, or whose body nobody reads."""
    is_answered = request.what == "Expect" and not (nginx["seen"] or weir["seen"])
    return difference.where == "interim answers" and (is_answered or request.what == "Expect with the body" or getattr(request, "expects", False))


@because("broken stream", "curl 7.88 drops an answer whose stream is reset with NO_ERROR (RFC 9113 8.1); it depends on packets with both edges")
def is_broken_stream(request, difference, _nginx, _weir):
    """An answer over HTTP/2 that curl drops (`client.BROKEN_STREAM`), from one of the edges alone."""
    return request.http2 and bool(request.body) and difference.where == "status" and "curl's error 92" in (difference.nginx, difference.weir)


@because("no wait over QUIC", "with `keepalive_timeout 0`, nginx ends a connection of HTTP/3 as soon as its timer of 0 ms runs, which may be before the first request is answered")
def is_ended_before_the_request(request, difference, nginx, weir):
    """An answer over HTTP/3 that nginx does not give, because the connection has no time to wait for a request."""
    is_unanswered = nginx["answer"]["status"] in ("silence", "closed") and weir["answer"]["status"].startswith("HTTP/3 ")
    is_of_case = difference.where.startswith(("status", "log: ", "number of ", "origin: ", "files: cached", "reused", "end"))
    return getattr(request, "is_http3", False) and is_unanswered and is_of_case and "keepalive_timeout 0;" in nginx.get("conf", "")


@because("rest of a body over QUIC", "without buffering, nginx does not read the rest of a body over HTTP/3 after an error page of `error_page`: it sends nothing until its time ends")
def is_rest_of_body_unread(request, difference, nginx, weir):
    """A request over HTTP/3 with a body whose error page nginx asks an origin for, and never gets."""
    is_timed_out = "504" in nginx["answer"]["status"] and "504" not in weir["answer"]["status"] and len(nginx["seen"]) < len(weir["seen"])
    conf = nginx.get("conf", "")
    is_of_case = getattr(request, "is_http3", False) and bool(getattr(request, "body", None)) and "_request_buffering off" in conf and "error_page " in conf
    return is_timed_out and is_of_case and difference.where.startswith(("status", "log: ", "number of ", "field ", "body"))
