"""What an older nginx did otherwise."""

from rules.basis import because, version


@because("old default", "before 1.29.7, nginx spoke HTTP/1.0 to origins, and closed each connection")
def is_old_default(_request, difference, _nginx, _weir):
    """The version of a request to an origin, which nginx has changed."""
    return version() < (1, 29, 7) and (difference.where == "origin: request line" and difference.nginx.replace("HTTP/1.0", "HTTP/1.1") == difference.weir or difference.where.lower() == "origin: field connection")


@because("old answer", "before 1.29, nginx passed an origin's bytes on that are no HTTP", leaves="group")
def is_old_answer(_request, difference, nginx, _weir):
    """Bytes of an origin that are no HTTP, which nginx once passed on as HTTP/0.9."""
    is_none = nginx["answer"]["status"].startswith(("no HTTP", "silence")) or any(line.get("status") == "009" for line in nginx["log"])
    return version() < (1, 29) and is_none and difference.where.startswith(("status", "log: "))


@because("old hint", "before 1.29, nginx took 103 for the answer")
def is_old_hint(_request, difference, nginx, _weir):
    """An origin's 103, which nginx once took for the answer."""
    return version() < (1, 29) and (difference.where == "interim answers" and "103" in difference.nginx or "o=early" in str(nginx["seen"]) and difference.where in ("status", "log: status", "body"))


@because("old order", "before 1.29, nginx wrote its own fields for an origin in another order, and no Host of HTTP/2 for an application")
def is_old_order(_request, difference, _nginx, _weir):
    """The order of an edge's own fields for an origin, and the Host of HTTP/2 for an application."""
    return version() < (1, 29) and (difference.where == "origin: order of fields" or difference.where.lower() == "origin: field http_host" and difference.nginx == "[]")
