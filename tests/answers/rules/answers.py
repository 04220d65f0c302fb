"""Status, fields and characters of an answer."""
import re

from compare import body, headers
from rules.basis import because


@because("earlier refusal", "what a location refuses, with `satisfy any`, is over with its error page; nginx keeps the refusal for the location of the page")
def is_earlier_refusal(request, difference, nginx, _weir):
    """403 at an error page, of the location before it."""
    conf = nginx.get("conf", "")
    is_page = any(line.get("uri") != request.target.partition("?")[0] for line in nginx["log"])
    # An answer of weir that lets the client in has no reason.
    is_error = re.search(r"\b[45]\d\d\b", difference.weir) is not None
    return "satisfy any" in conf and "error_page " in conf and is_page and is_error and difference.where in ("status", "log: status") and "403" in difference.nginx


@because("lost rate", "nginx sends nothing of an answer of a second origin after X-Accel-Redirect with X-Accel-Limit-Rate, if a check of auth_request stood between them")
def is_rate_lost(_request, difference, nginx, weir):
    """An answer after X-Accel-Limit-Rate that nginx does not send."""
    is_limited = "o=accelodd" in str(nginx["seen"]) and "auth_request " in nginx.get("conf", "")
    return is_limited and nginx["answer"]["status"] == "silence" and difference.where.startswith(("status", "log: "))


@because("Vary of the static table", "over HTTP/3, nginx takes the value of Vary from QPACK's static table; letters of field names have no case (RFC 9110 12.5.5)")
def is_vary_of_table(request, difference, _nginx, _weir):
    """The letters of the value of Vary, also of one that nginx sends twice."""
    of_nginx, of_weir = [set(re.findall("'([^']*)'", values.lower())) for values in (difference.nginx, difference.weir)]
    return getattr(request, "is_http3", False) and difference.where == "field vary" and of_nginx == of_weir and "accept-encoding" in difference.nginx


@because("counts of connections", "the numbers of stub_status follow the connections that each edge has ended; tests of their own compare them")
def is_count_of_connections(_request, difference, nginx, weir):
    """The numbers in the text of stub_status."""
    if difference.where != "body":
        return False
    texts = [re.sub(r"\d+", "N", body(record["answer"])) for record in (nginx, weir)]
    return texts[0] == texts[1] and "Active connections: " in texts[0]


@because("moment of a file", "a file of WebDAV has the time at which each edge wrote it")
def is_moment_of_file(request, difference, nginx, _weir):
    """The time of a file that the case has written, and the tag that is made of it."""
    is_written = any(one.method in ("PUT", "COPY", "MOVE") for one in nginx.get("earlier", ()))
    if not is_written or "dav_methods " not in nginx.get("conf", ""):
        return False
    # Behind the time stands the length, which both have.
    is_tag = difference.where.endswith("etag") and difference.nginx.rpartition("-")[2] == difference.weir.rpartition("-")[2]
    return difference.where in ("field last-modified", "log: sent_http_last_modified") or is_tag


@because("unknown charset", "if the variable of `charset` has no value, nginx closes the connection; weir sends the answer (docs/guide/bodies.md)", leaves="cache")
def is_unknown_charset(request, difference, nginx, _weir):
    """An answer whose `charset` is a variable without a value."""
    if "charset $" in nginx.get("conf", "") and getattr(request, "again", False) and difference.where in ("number of requests at origins", "reused", "log: number of lines"):
        # The connection that nginx has closed, and the request that comes again.
        return True
    if "charset $" in nginx.get("conf", "") and nginx["answer"].get("reused") == "closed" and difference.where == "status":
        return True
    if difference.where == "error log: crit":
        # An answer that only weir has tried to store.
        return "charset $" in nginx.get("conf", "") and "closed" in nginx.get("statuses", ()) and difference.weir.count("[crit]") == difference.weir.count("rename()")
    if difference.where == "files: cached":
        return "charset $" in nginx.get("conf", "") and difference.nginx == "[]" and "closed" in nginx.get("statuses", ())
    return "charset $" in nginx.get("conf", "") and nginx["answer"]["status"] == "closed" and difference.where != "body"


@because("single field", "Server and Date stand once in an answer (RFC 9110 5.3): those of add_header replace weir's (docs/guide/nginx-files.md)")
def is_single_field(_request, difference, nginx, _weir):
    """Server and Date of `add_header` beside the edge's own, and the moments that are compared with Date."""
    if difference.where == "field expires" and "add_header Date " in nginx.get("conf", ""):
        return True
    if difference.where not in ("field server", "field date"):
        return False
    # `(the …)` stands for the value that an edge computes itself.
    is_own_beside = difference.nginx.count("(the ") > difference.weir.count("(the ")
    return is_own_beside or difference.nginx.count("', '") == 1 and difference.weir.count("', '") == 0


@because("moment", "the two edges answer in different seconds")
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
    return re.sub(r"\d+", "", difference.nginx) == re.sub(r"\d+", "", difference.weir) and all(min(abs(one - other), 60 - abs(one - other)) <= 3 for one, other in zip(*numbers) if one != other)


@because("allow", "405 names the allowed methods (RFC 9110 15.5.6)")
def is_allow(_request, difference, nginx, _weir):
    """The field that names the allowed methods."""
    return difference.where == "field allow" and nginx["answer"]["status"].split(" ")[1:2] == ["405"]


@because("unmapped characters", "charset_map writes `?` for a character without a row; nginx leaves such characters as they are if no character in its buffer has a row of several bytes")
def is_unmapped(_request, difference, nginx, weir):
    """Characters without a row in `charset_map`, where no other character of the buffer has one."""
    if difference.where != "body" or re.search(r"charset_map \S+ utf-8 \{", nginx.get("conf", "")) is None or "source_charset" not in nginx["conf"]:
        return False
    return re.sub("[\x80-\xff]", "?", body(nginx["answer"])) == re.sub("[\x80-\xff]", "?", body(weir["answer"])) and "?" in body(weir["answer"])


@because("names of fields", "the default server of the address decides about names of fields; nginx: the named server, for fields after Host")
def is_field_of_server(request, difference, nginx, _weir):
    """A field with an odd name, if two servers of one address differ about it."""
    conf = nginx.get("conf", "")
    return conf.count("server_name ") > 1 and re.search("underscores_in_headers|ignore_invalid_headers", conf) is not None and any(re.search("[_.]", name) for name, _ in request.headers) and difference.where.startswith(("origin: field", "field", "log: "))


@because("memcached and limit_except", "memcached also answers the methods that limit_except does not name; nginx looks for a file")
def is_memcached_excepted(_request, difference, nginx, _weir):
    """memcached_pass and a method that limit_except does not name."""
    return re.search(r"memcached_pass [^}]*limit_except|limit_except [^}]*\}[^}]*memcached_pass", nginx.get("conf", "")) is not None and difference.where in ("status", "log: status")


@because("tag twice", "an error page has its own entity tag; nginx sends that of the file beside it")
def is_tag_twice(_request, difference, nginx, _weir):
    """The entity tags of a file whose range was refused, and of the error page in its place."""
    return difference.where == "field etag" and difference.nginx.count("', '") == 1 and difference.nginx.endswith(f", {difference.weir.lstrip('[')}") and "error_page " in nginx.get("conf", "")


@because("page of a large body", "nginx compares the length of the body again with the limit of the location of an error page or of X-Accel-Redirect, for 413 itself over HTTP/2 (docs/guide/nginx-files.md)")
def is_page_of_large_body(request, difference, nginx, weir):
    """The page of an error whose request has a larger body than the page's location allows."""
    conf = nginx.get("conf", "")
    is_sent_on = "error_page " in conf or "o=accel" in request.target
    if not getattr(request, "body", None) or not is_sent_on or "client_max_body_size " not in conf or difference.where not in ("status", "log: status"):
        return False
    is_compared_again = "413" in difference.nginx and any(one["body"] for one in weir["seen"])
    return is_compared_again or request.http2 and "recursive_error_pages on" in conf and re.search(r"error_page [^;]*413", conf) is not None and "500" in difference.nginx


@because("old refusal", "nginx remembers the 401 of auth_basic for the error page of a check that failed; the page is for everybody in weir", leaves="cache")
def is_old_refusal(_request, difference, nginx, _weir):
    """The page of a failed check at a location where a password would have been enough."""
    conf = nginx.get("conf", "")
    if "satisfy any" not in conf or "auth_request /" not in conf or "error_page " not in conf:
        return False
    return difference.where in ("status", "log: status") and "401" in difference.nginx or difference.where == "field www-authenticate" and difference.weir == "[]"


@because("order of Vary", "weir adds its own Vary after the origin's, once; the order has no meaning (RFC 9110 12.5.5)")
def is_order_of_vary(_request, difference, nginx, weir):
    """The same values of Vary in another order."""
    return difference.where == "field vary" and set(headers(nginx["answer"])["vary"]) == set(headers(weir["answer"])["vary"])


@because("handshake", "a request without a host belongs to the server that the client named in the TLS handshake; nginx: to the default server")
def is_of_handshake(request, _difference, _nginx, _weir):
    """A request without a host over TLS, from a client that named a server in its handshake."""
    return request.what in ("no version",)


@because("cookie without an answer", "nginx names a server in the cookie of its own 502 or 504; weir names only a server that has answered (docs/guide/sticky.md)")
def is_cookie_of_none(_request, difference, nginx, _weir):
    """Set-Cookie of `sticky cookie`, for a request that no server answered."""
    is_bound = "sticky cookie " in nginx.get("conf", "") and difference.where in ("field set-cookie", "log: sent_http_set_cookie")
    status = nginx["answer"]["status"] + str([line.get("upstream_status") for line in nginx["log"]])
    return is_bound and len(difference.weir) < len(difference.nginx) and re.search(r"\b50[24]\b", status) is not None


@because("whitespace around a value", "over HTTP/2 and HTTP/3, weir writes no whitespace around a field's value: with it, an answer is malformed (RFC 9113 8.2.1, RFC 9114 4.2)")
def is_whitespace_around(request, difference, nginx, weir):
    """Answers of nginx that the client of HTTP/3 refuses, and values that differ in this whitespace."""
    if difference.where in ("status", "end"):
        return difference.nginx in ("closed", "gone") and "whitespace" in nginx["answer"].get("malformed", "")
    is_framed = getattr(request, "is_http3", False) or request.http2
    if not is_framed or not difference.where.startswith("field "):
        return False
    of_nginx, of_weir = [headers(record["answer"])[difference.where.removeprefix("field ")] for record in (nginx, weir)]
    return of_nginx != of_weir and [value.strip() for value in of_nginx] == of_weir
