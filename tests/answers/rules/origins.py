"""Requests to origins, and the answers that they give."""
import re

from compare import body, headers
from rules.basis import SUBREQUEST, because, modern


@because("field of the connection", "HTTP/2 has no fields of the connection (RFC 9113 8.2.2): weir does not send them to such an origin")
def is_field_of_hop(_request, difference, _nginx, weir):
    """A field of the connection, for an origin that speaks HTTP/2."""
    return difference.where in ("origin: field upgrade", "origin: field connection", "origin: field te", "origin: field keep-alive") and difference.weir == "[]" and all(one["line"].startswith("grpc: ") for one in weir["seen"])


@because("asked again", "weir keeps connections to origins by default; a request that finds one closed goes to the server once more", leaves="cache")
def is_asked_again(request, difference, nginx, weir):
    """A request that found a kept connection closed, sent once more to the same server; nginx takes the next one, if there is one."""
    lines = [one["line"] for one in weir["seen"]]
    is_twice = len(set(lines)) < len(lines) == len(nginx["seen"]) and re.search("o=(?:nohead|reset)", request.target) is not None
    if is_twice and "upstream " in nginx.get("conf", "") and difference.where.startswith(("origin: request line", "log: upstream_")):
        return difference.where.startswith("log: ") or difference.nginx.partition(": ")[2] == difference.weir.partition(": ")[2]
    if difference.where != "number of requests at origins" or not re.search(r"o=(?:nohead|reset|short)|X-O: (?:nohead|reset)|X-A: (?:nohead|reset)|:9009|closing", f"{request.target} {request.headers} {nginx.get('conf', '')}".replace("', '", ": ")):
        return False
    return {modern(one["line"]) for one in nginx["seen"]} == {one["line"] for one in weir["seen"]}


@because("space in a field", "HTTP/2 has no fields whose values begin or end with a space (RFC 9113 8.2.1)")
def is_space_in_field(_request, difference, _nginx, weir):
    """A field for an origin of HTTP/2 whose value is a space, or has one at an end."""
    values = [[value.strip() for value in re.findall("'([^']*)'", text)] for text in (difference.nginx, difference.weir)]
    return difference.where.startswith("origin: field ") and values[0] == values[1] and any(one["line"].startswith("grpc: ") for one in weir["seen"])


@because("last resort", "if all servers have failed, weir tries one of them (docs/guide/health.md)", leaves="cache")
def is_last_resort(_request, difference, nginx, _weir):
    """A request for a group all of whose servers have failed: nginx's log has the name of the group instead of an address."""
    # A location without a log has no line, and neither has a part of a page.
    is_of_part = b"502 Bad Gateway" in nginx["answer"]["body"] and re.search(SUBREQUEST, nginx.get("conf", "")) is not None
    is_told = "no live upstreams" in nginx.get("told", ()) and (not nginx.get("log") and "502" in nginx["answer"]["status"] or is_of_part)
    return (names_group(nginx) or is_told) and not difference.where.startswith("origin: ")


def names_group(record):
    """Whether a log line has the name of a group in the place of an address: no server of it was free."""
    return any(address.strip().isidentifier() for line in record.get("log", ()) for address in re.split("[,:] ", line.get("upstream_addr", "")))


@because("escaped target", "weir escapes a space of `$uri` in proxy_pass; nginx sends a request line with it")
def is_escaped(_request, difference, _nginx, _weir):
    """A space in the target of a request to an origin, from `$uri`."""
    found = re.fullmatch(r"(\w+: \w+ )(.*)( HTTP/\S+)", difference.nginx)
    return difference.where == "origin: request line" and found is not None and difference.weir == found[1] + found[2].replace(" ", "%20") + found[3]


@because("body before a film", "a film that is not there leaves the request's body to the error page; nginx drops the body before it looks for the film")
def is_body_of_film(request, difference, nginx, _weir):
    """The body of a request for a film that is not there, at the origin of the error page."""
    is_film = re.search(r"^\s*(?:flv|mp4);", nginx.get("conf", ""), re.MULTILINE) is not None and "error_page " in nginx["conf"]
    is_lost = difference.where == "origin: body" and difference.nginx == "" or difference.where.lower() == "origin: field content-length" and difference.nginx in ("[]", "['0']")
    return is_film and request.method in ("GET", "HEAD") and bool(getattr(request, "body", None)) and is_lost


@because("other turn", "the turns of a group's servers follow the requests that it got before; another server may have another answer to keep", leaves="cache")
def is_other_turn(_request, difference, nginx, weir):
    """The server of a group whose turn it is, after a difference in the requests to that group; and what that server answers."""
    def lines(record):
        return {modern(re.sub(r"^\w+: (?:b=\d*)?", "", one["line"])) for one in record["seen"]}
    # nginx does not have the body of a subrequest, so it takes the servers in turn.
    is_hashed = re.search(r"hash [^;]*\$(?:request_body|bodied)", nginx.get("conf", "")) is not None and any(one.body for one in nginx.get("earlier", ()))
    # nginx sends a copy before its request, weir beside it. What follows an answer is asked beside the client's next request.
    is_copied = re.search(r"\b(?:mirror|post_action|\w+_background_update) ", nginx.get("conf", "")) is not None
    # Parts of a page are asked at the same time.
    is_in_parts = re.search(r"\b(?:ssi on|add_(?:before|after)_body )", nginx.get("conf", "")) is not None and len(nginx["seen"]) > 1
    if not (nginx.get("diverged") or is_hashed or is_copied or is_in_parts) or not nginx["seen"] or "upstream " not in nginx["conf"]:
        return False
    if nginx.get("diverged") and names_group(weir):
        # The other servers of the group have failed too, so weir has none to ask.
        return difference.where in ("status", "log: status", "number of requests at origins") and "502" in weir["answer"]["status"]
    if nginx.get("diverged") and lines(weir) < lines(nginx) and b"502 Bad Gateway" in weir["answer"]["body"]:
        # The same for a part of a page, which has no line in the log.
        return difference.where in ("body", "number of requests at origins")
    if lines(nginx) == lines(weir) and [one["line"] for one in nginx["seen"]] != [one["line"] for one in weir["seen"]]:
        return not difference.where.startswith("origin: body")
    # One of the edges has met the server that refuses connections, or the one that closes them.
    met = [[address in str([line.get("upstream_addr") for line in record["log"]]) for address in (":9010", ":9009")] for record in (nginx, weir)]
    if nginx.get("diverged") and met[0] != met[1]:
        return not difference.where.startswith("origin: body")
    return difference.where == "log: upstream_addr" and re.sub(":90(?:0[129]|10)", "", difference.nginx) == re.sub(":90(?:0[129]|10)", "", difference.weir)


@because("kept body", "weir asks the next server if it has the whole body of the request; without buffering, nginx asks none")
def is_asked_with_body(request, difference, nginx, weir):
    """One more server, for a request with a body that has come whole."""
    lines = [[modern(re.sub(r"^\w+: ", "", one["line"])) for one in record["seen"]] for record in (nginx, weir)]
    is_more = len(lines[1]) > len(lines[0]) and set(lines[1]) == set(lines[0]) and "502" in nginx["answer"]["status"]
    is_body = getattr(request, "body", None) is not None and "_request_buffering off" in nginx.get("conf", "")
    return is_more and is_body and not difference.where.startswith("origin: ")


@because("no HTTP", "weir answers 502 if an application's answer is no HTTP", leaves="group")
def is_no_http(_request, difference, nginx, weir):
    """Bytes of an application that are no HTTP; for HEAD, nginx then sends nothing."""
    if difference.where == "body":
        return b"\0garbage" in nginx["answer"]["body"] and b"502 Bad Gateway" in weir["answer"]["body"] and body(nginx["answer"]).partition("\0garbage")[0] == body(weir["answer"]).partition("<html>\r\n<head><title>502")[0]
    # A line may be that of a subrequest.
    is_line = difference.where == "log: status" and difference.nginx == "009" and difference.weir == "502" and "log_subrequest on" in nginx.get("conf", "")
    is_sent = is_line or nginx["answer"]["status"].startswith(("no HTTP: ", "HTTP/2 000"))
    # With `access_log off`, no line tells it.
    is_sent |= nginx["answer"]["status"] in ("closed", "silence") and all(line.get("status") == "009" for line in nginx["log"])
    return is_sent and difference.where in ("status", "log: status") and ("009" in (difference.nginx, difference.weir) or difference.where == "status") and "garbage" in nginx["answer"]["status"] + str(nginx["seen"]) + nginx.get("conf", "")


@because("frame as a body", "over HTTP/3, nginx sends the bytes of a DATA frame to the origin as a body that it has discarded")
def is_frame_as_body(request, difference, nginx, weir):
    """The head of a frame in the place of a body, and the length of the body."""
    is_frame = any(one["body"].startswith("\0") for one in nginx["seen"]) and not any(one["body"] for one in weir["seen"])
    return getattr(request, "is_http3", False) and is_frame and difference.where.lower() in ("origin: body", "origin: field content-length")


@because("hints", "weir passes 103 to clients of HTTP/2 (docs/reference/directives.md, early_hints)")
def is_hint(request, difference, nginx, _weir):
    """An origin's 103 over HTTP/2."""
    # Where the directive is set, both obey it: the composer sets it for all, or in a location.
    is_set = re.search("^ {0,4}early_hints ", nginx.get("conf", ""), re.M) is not None
    return request.http2 and not is_set and difference.where == "interim answers" and difference.nginx == "[]" and ":status: 103" in difference.weir


@because("lost challenge", "nginx drops the fields that it has set before an origin's interim answer")
def is_lost_challenge(_request, difference, nginx, _weir):
    """WWW-Authenticate of a request whose origin sends an interim answer first."""
    return difference.where == "field www-authenticate" and difference.nginx == "[]" and "early" in str(nginx["seen"])


@because("websocket", "weir passes a WebSocket on without directives, if the file sets neither Upgrade nor Connection")
def is_websocket(request, difference, nginx, weir):
    """An Upgrade that nginx does not pass on; a subrequest never has it."""
    asking = {one["line"].partition(": ")[2] for one in weir["seen"] if any(name.lower() == "upgrade" for name, _ in one["headers"])}
    # X-Accel-Redirect and an error page send the client's own request on.
    is_sent_on = "o=accel" in getattr(request, "target", "") or any(" : " in line.get("upstream_status", "") for line in weir.get("log", ()))
    if re.search(SUBREQUEST, nginx.get("conf", "")) is not None and (len(asking) > 1 and not is_sent_on or any("/auth" in line for line in asking)):
        return False
    return request.what == "Upgrade" and (difference.where == "status" and difference.weir.startswith("HTTP/1.1 101")
                                          or difference.where in ("origin: field Connection", "origin: field Upgrade") and difference.nginx == "[]")


@because("fragment", "weir passes no target with `#` to an origin (RFC 9112 3.2): the origin may read another path than the location saw (strict_targets)")
def is_fragment(request, difference, _nginx, weir):
    """A target with a fragment, for an origin."""
    return "#" in request.target and weir["answer"]["status"].startswith("HTTP/1.1 400") and difference.where in ("status", "number of requests at origins")


@because("charset", "nginx gives its own answer the charset of the answer that X-Accel-Redirect replaced")
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


@because("order of fields", "nginx has other places for Content-Length, TE and the Cookie that it joins; the order of different fields has no meaning (RFC 9110 5.3)")
def is_order_of_fields(_request, difference, _nginx, _weir):
    """The place of TE and Content-Length among the fields for an origin."""
    if difference.where != "origin: order of fields":
        return False
    left, right = ([name for name in re.findall(r"'([^']*)'", names) if name.lower().removeprefix("http_") not in ("te", "content-length", "cookie")] for names in (difference.nginx, difference.weir))
    return left == right
