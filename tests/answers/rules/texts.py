"""Texts of the file with variables."""
import re

from rules.basis import FRAME, because, is_of_stored


@because("body in a text", "weir reads the body for a text that has it; in nginx `$request_body` is empty unless a handler has read it (docs/guide/nginx-files.md)", leaves="group")
def is_body_read(request, difference, nginx, weir):
    """A text of the body where no handler of nginx has read it."""
    if re.search(r"\$(?:request_body|bodied)\b", nginx.get("conf", "")) is None:
        return False
    # A copy without fields may come with the next request.
    texts = [one.body.decode("latin-1") for one in (request, *nginx.get("earlier", ())[-1:]) if getattr(one, "body", None)]
    if difference.where == "origin: body":
        # What weir has read goes to the origin, whole. A text around it goes without the body too.
        if "_set_body " in nginx["conf"] and any(text and is_around(difference, text) for text in texts):
            return True
        return difference.nginx == "" and difference.weir in (*texts, *(f"{text[:300]}… {len(text)}" for text in texts))
    if difference.where == "origin: field content-length" and difference.nginx == "['0']" and difference.weir in [str([str(len(text))]) for text in texts]:
        return True
    if getattr(request, "body", None) is None:
        return False
    if difference.where == "origin: request line":
        # A group that the body chooses from, and a condition.
        is_chosen = re.search(r"hash [^;]*\$request_body", nginx["conf"]) is not None and difference.nginx.partition(": ")[2] == difference.weir.partition(": ")[2]
        return is_chosen or "if ($request_body " in nginx["conf"]
    # A condition may answer without an origin.
    is_condition = "if ($request_body " in nginx["conf"] and (nginx["seen"] and not weir["seen"] or difference.where == "log: number of lines")
    if not is_condition and (is_of_stored(nginx) or is_of_stored(weir)):
        return False
    return difference.where not in FRAME and difference.where.startswith(("body", "field ", "log: ", "origin: field ", "status", "number of requests"))


def is_around(difference, text):
    """Whether weir's body is nginx's with this text in it. A long body is written as its beginning and its length."""
    length = re.search(r"… (\d+)$", difference.weir)
    return difference.weir.replace(text, "") == difference.nginx if length is None else int(length[1]) == len(text) + len(difference.nginx)


@because("body of a check", "a check of auth_request has no body (docs/guide/auth_request.md); in nginx its `$request_body` is that of the client's request")
def is_body_of_check(request, difference, nginx, _weir):
    """A text of the body in the request of a check."""
    text = (getattr(request, "body", None) or b"").decode("latin-1")
    is_written = re.search(r"_set_body [^;]*\$(?:request_body|bodied)", nginx.get("conf", "")) is not None
    return is_written and "auth_request /" in nginx["conf"] and difference.where == "origin: body" and text != "" and difference.nginx.replace(text, "") == difference.weir


@because("capture of a map", "the regular expressions of a map do not change `$1` of the location (docs/guide/nginx-files.md)")
def is_capture(_request, difference, nginx, _weir):
    """`$1` after a map with a regular expression."""
    conf = nginx.get("conf", "")
    if re.search(r"\$[12]\b", conf) is None or re.search(r"map [^{]*\{[^}]*~", conf) is None or difference.where in FRAME:
        return False
    is_path = difference.where in ("log: request_filename", "log: document_root") and re.search(r"(?:alias|root) [^;]*\$[12]\b", conf) is not None
    return is_path or difference.where.startswith(("field ", "trailers", "body", "origin: field ", "log: sent_", "log: body_bytes_sent", "log: upstream_response_length"))


@because("late text", "nginx keeps the empty value that a variable of the answer had when it was read first (docs/guide/nginx-files.md)")
def is_late_text(_request, difference, nginx, _weir):
    """A text with a variable of the answer that the file has read before there was an answer."""
    names = re.findall(r"\$((?:upstream|sent_http|limit)_\w+|request_completion|status)\b", nginx.get("conf", ""))
    is_value = difference.where not in FRAME and difference.where.startswith(("field ", "trailers", "body", "origin: field ", "log: sent_", "log: body_bytes_sent"))
    if is_value and names and "log_subrequest on" in nginx["conf"] and len(nginx["log"]) > 1:
        # The log line of a subrequest has read it.
        return True
    return is_value and len(names) != len(set(names)) and len(difference.nginx) < len(difference.weir)


@because("alias and rewrite", "`$request_filename` of a redirect is the file of the URI; nginx leaves it empty after `rewrite … break`")
def is_alias_left(_request, difference, nginx, _weir):
    """`$request_filename` of a redirect by `rewrite … break` in a location with alias."""
    conf = nginx.get("conf", "")
    return difference.where == "log: request_filename" and difference.nginx == "" and "alias " in conf and re.search(r"rewrite [^;]* http[^;]* break;", conf) is not None and nginx["answer"]["status"].split(" ")[1:2] == ["302"]


