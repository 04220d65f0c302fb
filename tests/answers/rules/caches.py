"""What the caches and the stores keep, and what they answer."""
import ast
import re

from rules.basis import SUBREQUEST, because, is_of_stored, is_status_of, plain


@because("age", "weir says the age of a stored answer (RFC 9111 5.1)")
def is_age(_request, difference, _nginx, _weir):
    """The age of a stored answer."""
    return difference.where == "field age" and difference.nginx == "[]"


@because("page in itself", "a part of a page that has the page's key in the cache is the page itself, once it is stored; it depends on packets with both edges")
def is_part_of_itself(_request, difference, nginx, weir):
    """A page and its parts with one key: a part is the stored page, if the page is whole by then."""
    conf = nginx.get("conf", "")
    is_shared = re.search(r"_cache_key [^;]*\$request_uri", conf) is not None and re.search(r"\b(?:ssi on|add_(?:before|after)_body )", conf) is not None
    return is_shared and difference.where in ("body", "number of requests at origins", "origin: request line") and (is_of_stored(nginx) or is_of_stored(weir)) and nginx["answer"]["body"].count(nginx["answer"]["body"][:40]) != weir["answer"]["body"].count(nginx["answer"]["body"][:40])


@because("HEAD stored", "weir keeps no answer to a HEAD that stays one, if GET has the same key: nginx gives its empty body to a later GET (docs/guide/fastcgi.md)", leaves="cache")
def is_head_stored(request, difference, nginx, _weir):
    """A HEAD at a location that caches answers of an application."""
    if re.search(r"\b(?:fastcgi|uwsgi|scgi)_cache |_cache_convert_head off", nginx.get("conf", "")) is None:
        return False
    if difference.where == "files: cached":
        return any(one.method == "HEAD" for one in nginx.get("asks", ()))
    return is_of_stored(nginx) and any(one.method == "HEAD" for one in (request, *nginx.get("earlier", ()))) and difference.where.startswith(("log: ", "number of requests", "field ", "body", "status"))


@because("stored answer", "proxy_store keeps answers to GET; nginx keeps those to other methods too", leaves="cache")
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


@because("HEAD that is not kept", "weir makes a HEAD a GET only if the cache keeps the answer; nginx always")
def is_head_not_kept(request, difference, nginx, weir):
    """HEAD whose answer the cache does not keep; and the length of an answer that names the method."""
    if difference.where in ("field content-length", "log: sent_http_content_length") and request.method == "HEAD" and "o=echo" in request.target:
        return {one["line"].split(" ")[1] for one in nginx["seen"]} == {"GET"} and {one["line"].split(" ")[1] for one in weir["seen"]} == {"HEAD"}
    if request.method != "HEAD" or difference.where != "origin: request line" or "_cache " not in nginx.get("conf", ""):
        return False
    # nginx may write a space into the target.
    targets = [re.sub(r"^(\w+: )\S+ ", r"\1", line).rpartition(" HTTP/")[0].replace(" ", "%20") for line in (difference.nginx, difference.weir)]
    return targets[0] == targets[1]


@because("answers of users", "weir no longer keeps answers that differ between users, and says so in its log (docs/guide/cache.md)", leaves="cache")
def is_of_users(_request, difference, nginx, weir):
    """The answers under a key that weir has stopped to share."""
    if "differ between users, so weir no longer shares them" not in weir.get("told", ()):
        return False
    if difference.where == "files: cached":
        return difference.weir == "[]"
    return is_status_of(nginx, "HIT", "EXPIRED") and is_status_of(weir, "MISS", "BYPASS") and not difference.where.startswith("origin: ")


@because("cookie of a stored answer", "a stored answer has no Set-Cookie: a cookie is meant for one client (docs/guide/cache.md)")
def is_stored_cookie(_request, difference, nginx, weir):
    """A cookie that nginx gives to each client of a stored answer."""
    is_stored = is_status_of(nginx, "HIT") and is_status_of(weir, "HIT")
    return is_stored and difference.where == "field set-cookie" and difference.weir == "[]" and re.search(r"_ignore_headers [^;]*Set-Cookie", nginx.get("conf", "")) is not None


@because("name of trailers", "Trailer announces fields that weir does not keep: a stored answer has neither")
def is_trailer_named(_request, difference, nginx, _weir):
    """Trailer, for an answer that the cache may keep."""
    return difference.where in ("field trailer", "log: sent_http_trailer") and difference.weir in ("[]", "") and is_of_stored(nginx)


@because("other state", "an earlier request has a difference with a reason, since when the caches do not keep the same answers")
def is_other_state(_request, difference, nginx, weir):
    """A request for a cache whose state differs since an earlier request."""
    if difference.where == "files: cached":
        return nginx.get("is_other_state", False)
    # A subrequest has no line in the log.
    is_asked = re.search(SUBREQUEST, nginx.get("conf", "")) is not None and "_cache " in nginx["conf"] and (len(nginx["seen"]) != len(weir["seen"]) or difference.where in ("body", "log: body_bytes_sent"))
    is_in_memory = re.search(r"intercept_errors on|_cache_valid [^;]*\b(?:any|50\d)\b", nginx.get("conf", "")) is not None
    if nginx["answer"].get("stored", 0) == weir["answer"].get("stored", 1) and not is_in_memory:
        # Both had kept the same answers when the request came. Of an error of the edge, or one that error_page replaces, they keep the status, in memory.
        return False
    return nginx.get("is_other_state", False) and (is_of_stored(nginx) or is_of_stored(weir) or is_asked) and not difference.where.startswith("origin: ")


@because("copy with one key", "a copy and its request that have one key in the cache: each edge asks the origin for the one that comes first")
def is_copy_with_one_key(_request, difference, nginx, weir):
    """A copy that has the key of its request, where both have a line in the log."""
    conf = nginx.get("conf", "")
    if "mirror " not in conf or "_cache " not in conf or min(len(nginx["log"]), len(weir["log"])) < 2:
        return False
    return any(is_status_of(record, "HIT") for record in (nginx, weir)) and difference.where.startswith(("log: upstream_", "number of requests", "origin: request line"))


@because("stored check", "nginx gives a check of auth_request the stored answer to a request with Authorization, or with a body that no_cache names; weir asks again, also after an unsafe request", leaves="cache")
def is_check_stored(request, difference, nginx, weir):
    """A check of auth_request that nginx answers from its cache: it has kept the answer to an earlier request, and weir has not."""
    conf = nginx.get("conf", "")
    checks = set(re.findall(r"auth_request (/[\w./]*)", conf))
    is_body = re.search(r"_no_cache [^;]*\$(?:request_body|bodied)", conf) is not None
    is_kept = any(name.lower() == "authorization" for one in nginx.get("earlier", ()) for name, _ in one.headers) or is_body and any(one.body for one in nginx.get("earlier", ()))
    is_kept |= any(one.method not in ("GET", "HEAD", "OPTIONS", "TRACE") and plain(one.target) == plain(request.target) for one in nginx.get("earlier", ()))
    if not checks or not is_kept or "_cache " not in conf:
        return False
    asked = [sum(re.search(rf" \S*(?:{'|'.join(map(re.escape, checks))})[ ?]", one["line"]) is not None for one in record["seen"]) for record in (nginx, weir)]
    return asked[1] > asked[0] and difference.where.startswith(("status", "log: status", "number of requests", "origin: "))


@because("condition of a method", "304 is for GET and HEAD (RFC 9110 15.4.5)")
def is_condition_of_method(request, difference, _nginx, _weir):
    """304 to another method than GET and HEAD."""
    return request.method not in ("GET", "HEAD") and difference.where in ("status", "log: status") and re.search(r"\b304\b", difference.nginx) is not None and re.search(r"\b200\b", difference.weir) is not None


@because("unsatisfied range", "weir keeps the whole answer also if the client's range is outside of it", leaves="cache")
def is_unsatisfied(request, difference, nginx, weir):
    """An answer with 416: nginx keeps nothing of the whole answer that it has got."""
    if difference.where == "files: cached":
        return difference.nginx == "[]" and any(status.split(" ")[1:2] == ["416"] for status in nginx.get("statuses", ()))
    return all(record["answer"]["status"].split(" ")[1:2] == ["416"] for record in (nginx, weir)) and is_status_of(weir, "HIT") and is_status_of(nginx, "MISS", "EXPIRED") and (difference.where.startswith("log: upstream_") or difference.where == "number of requests at origins")


@because("unsafe method", "after an unsafe request, weir removes the answers that are kept for its URI (RFC 9111 4.4)", leaves="cache")
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
    kept = [record["answer"].get("stored") or [] for record in (nginx, weir)]
    if len(kept[0]) > len(kept[1]) and is_of_stored(nginx):
        # The file of an answer is gone, whose URI `rewrite`, `try_files` or a part of a page may name in another way.
        return not difference.where.startswith("origin: ")
    is_same = plain(request.target) in paths or any(plain(line.get("uri", "")) in paths for line in weir.get("log", ()))
    if is_same and "_cache_min_uses " in conf and request.method == "HEAD" and difference.where in ("status", "log: status"):
        # The uses are counted anew, so the cache of weir does not keep this answer: the HEAD and its condition go to the origin.
        return "304" in difference.nginx and "200" in difference.weir
    return is_same and is_status_of(nginx, "HIT", "STALE", "REVALIDATED", "UPDATING") and is_status_of(weir, "MISS", "EXPIRED") and not difference.where.startswith("origin: ")


@because("small buffer", "weir uses the cache also if a key does not fit in the buffer of the head (proxy_buffer_size), where nginx leaves it out", leaves="cache")
def is_small_buffer(request, difference, nginx, weir):
    """A cache whose keys do not fit in the buffer of the answer's head: nginx does not use the cache."""
    if "is not enough for cache key" not in nginx.get("told", ()):
        return False
    if difference.where == "files: cached":
        return difference.nginx == "[]"
    if "$upstream_cache_status" in nginx["conf"] and is_of_stored(weir) and not is_of_stored(nginx) and difference.where in ("status", "log: status"):
        return True
    if difference.where.lower().startswith(("origin: field if-", "origin: field range")):
        # A subrequest has no line in the log.
        return difference.weir == "[]" and re.search(r"_buffer_size 256;", nginx["conf"]) is not None
    asked = [{one["line"].partition(": ")[2] for one in record["seen"]} for record in (nginx, weir)]
    if re.search(SUBREQUEST, nginx["conf"]) is not None and asked[0] - asked[1]:
        # A check or a part that weir has kept: it has no line in the log.
        return difference.where.startswith(("status", "log: status", "number of requests", "origin: request line"))
    if not is_of_stored(weir) or is_of_stored(nginx):
        return False
    # Only a stored answer can be another one.
    is_stored = is_status_of(weir, "HIT", "STALE", "REVALIDATED", "UPDATING")
    if difference.where == "log: upstream_response_length":
        # HEAD, which is GET for the cache of weir alone.
        return request.method == "HEAD" and difference.nginx == "0"
    return difference.where in ("log: upstream_cache_status", "pieces") or is_stored and difference.where.startswith(("number of requests", "status", "field ", "body", "log: "))


@because("part kept", "weir keeps no 206 that is not a slice: it is a part of another answer (RFC 9111 3.3)", leaves="cache")
def is_part_kept(_request, difference, nginx, weir):
    """A 206 that an origin has sent, and that nginx keeps."""
    if difference.where == "files: cached":
        return difference.weir == "[]" and any(status.split(" ")[1:2] == ["206"] for status in nginx.get("statuses", ()))
    if nginx["answer"]["status"].split(" ")[1:2] != ["206"] or not is_status_of(nginx, "HIT") or not is_status_of(weir, "MISS"):
        return False
    # Asked again, the origin may send all of it, or an error.
    is_other = difference.where in ("status", "log: status") and bool(weir["seen"])
    return is_other or difference.where.startswith(("number of requests", "origin: ", "log: upstream_"))


@because("key in a file", "a body in a file is never a key: weir does not use the cache then, nginx takes an empty text", leaves="cache")
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
    if re.match("origin: field (?:http_)?(?:if[-_]|range)", difference.where.lower()):
        # Past the cache, the client's conditions are for the origin.
        return request in in_file and difference.nginx == "[]" and is_of_stored(nginx) and not is_of_stored(weir)
    return request in in_file and (is_of_stored(nginx) or is_of_stored(weir)) and not difference.where.startswith("origin: ")


@because("key of an unread body", "weir reads the body for a key or a condition that names it; in nginx it has no body if the body is not read before the answer is asked for", leaves="cache")
def is_key_unread(request, difference, nginx, weir):
    """A request whose key has its body, where nginx does not buffer bodies: answers to other bodies have the same key."""
    conf = nginx.get("conf", "")
    is_keyed = "_request_buffering off" in conf and re.search(r"_(?:cache_key|cache_bypass) [^;]*\$(?:request_body|bodied|nested)", conf) is not None
    is_other = is_status_of(nginx, "HIT") and is_status_of(weir, "MISS") or is_status_of(nginx, "HIT", "MISS") and is_status_of(weir, "BYPASS")
    return is_keyed and bool(getattr(request, "body", None)) and is_other and not difference.where.startswith("origin: ")


@because("short life", "the answer was old for one of the two edges, and not for the other", leaves="cache")
def is_short_life(_request, difference, nginx, weir):
    """A stored answer that lives for a second."""
    is_cached = is_of_stored(nginx) or is_of_stored(weir)
    return re.search(r"_cache_valid [^;]*\b1s", nginx.get("conf", "")) is not None and (is_cached and difference.where.startswith("log: upstream_") or difference.where.startswith("number of requests"))


@because("error kept", "no_cache also keeps an error out of the cache that error_page replaces; nginx does not ask it then")
def is_error_kept(_request, difference, nginx, weir):
    """An error with a page that no_cache keeps out of the cache."""
    conf = nginx.get("conf", "")
    return re.search(r"_no_cache ", conf) is not None and "intercept_errors on" in conf and len(weir["seen"]) > len(nginx["seen"]) and difference.where.startswith(("status", "number of requests", "log: ", "body", "field "))


@because("personal", "weir gives no stored answer to a request with Authorization, unless the answer is for everybody (docs/guide/cache.md)", leaves="cache")
def is_personal(request, difference, nginx, weir):
    """A request with Authorization at a location with a cache."""
    def asks(one):
        return any(name.lower() == "authorization" for name, _ in one.headers)
    if "_cache " not in nginx.get("conf", ""):
        return False
    if difference.where == "files: cached":
        return any(asks(one) for one in nginx.get("asks", ()))
    if difference.where.lower().startswith("origin: field if-"):
        # nginx asks whether the answer is still valid that it has kept.
        return asks(request) and difference.weir == "[]" and is_status_of(nginx, "EXPIRED") and is_status_of(weir, "MISS")
    kept = [record["answer"].get("stored") or [] for record in (nginx, weir)]
    if len(kept[0]) > len(kept[1]) and is_status_of(nginx, "HIT") and not is_status_of(weir, "HIT") and any(asks(one) for one in nginx.get("earlier", ())):
        # nginx has kept the answer to one.
        return not difference.where.startswith("origin: ")
    # A subrequest has no line of its own in the log, but weir asks the origin again.
    lines = [one["line"] for one in nginx["seen"]]
    if not nginx["seen"] and not nginx["log"] and (weir["seen"] or any(name == "Age" for name, _ in weir["answer"]["headers"])) and any(asks(one) and plain(one.target) == plain(request.target) for one in nginx.get("earlier", ())):
        # An earlier request with Authorization has left its answer in nginx, and this location writes no log.
        return not difference.where.startswith("origin: ")
    # It asks for a stored error again, too, which no origin may have seen.
    is_extra = any(one["line"] not in lines for one in weir["seen"]) or is_status_of(weir, "BYPASS") and is_status_of(nginx, "HIT")
    return asks(request) and (is_extra or bool(weir["seen"]) and is_of_stored(nginx) and not difference.where.startswith("origin: "))


@because("cache", "where the cache asks for whole answers, weir itself answers ranges and conditions (docs/guide/cache.md)", leaves="cache")
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
    if is_asked and difference.where in ("number of requests at origins", "log: number of lines") and weir["answer"]["status"].split(" ")[1:2] in (["304"], ["412"], ["416"]) and re.search("add_before_body |add_after_body |error_page [^;]*416|\\$slice_range", nginx.get("conf", "")):
        # An answer without a body has no additions and no further slices, and an error can have a page.
        return True
    if difference.where.lower() == "origin: field if-range":
        # The range behind proxy_cache_max_range_offset.
        return difference.nginx == "[]" and "_cache_max_range_offset " in nginx.get("conf", "") and any(name == "Range" for name, _ in request.headers)
    return is_asked and (difference.where == "status" and difference.nginx.split(" ")[1:2] == ["200"] and difference.weir.split(" ")[1:2] in (["206"], ["304"], ["412"], ["416"])
                         or difference.where == "origin: field Range" and difference.nginx == "[]")
