"""What rules share, and the list of them."""
import posixpath
import re
import urllib.parse

# nginx's name with its version, as `nginx -v` says it.
NGINX = []

# A statement that makes subrequests.
SUBREQUEST = r"\b(?:add_(?:before|after)_body|ssi|mirror|auth_request|slice|\w+_background_update) "

# Fields of which no text of the file is a part.
FRAME = ("field connection", "field keep-alive", "field transfer-encoding", "field accept-ranges", "field content-encoding", "field allow")

# Deliberate differences: (name, reason, what it leaves, test).
RULES = []


def because(name, reason, leaves=None):
    """Makes a test a rule. The test gets the request, one difference, and both records. Afterwards the edges may have another state of their
    caches (`leaves="cache"`), or of their groups of servers (`leaves="group"`)."""
    def add(test):
        RULES.append((name, reason, leaves, test))
        return test
    return add


def of_servers(conf):
    """The text of a file without its locations."""
    return re.sub(r"(?m)^    location [^\n]*\{\n(?:     [^\n]*\n)*    \}\n", "", conf)


def version():
    """The version of the nginx that runs, as numbers; the newest if it is unknown."""
    return tuple(int(part) for part in NGINX[0].split("/")[1].split(".")) if NGINX and "/" in NGINX[0] else (9,)


def modern(line):
    """A request line of an nginx that spoke HTTP/1.0 to origins."""
    return line.replace(" HTTP/1.0", " HTTP/1.1") if version() < (1, 29, 7) else line


def is_status_of(record, *states):
    """Whether a line of the log has this state of the cache."""
    return any(line.get("upstream_cache_status") in states for line in record.get("log", ()))


def has_line_of_subrequest(record):
    """Whether the log has a line of a subrequest, which has read no bytes; the line of the client's request may be missing."""
    return len(record["log"]) > 1 or any(line.get("request_length") == "0" for line in record["log"])


def is_of_stored(record):
    """Whether a stored answer was, or may have been, a part of the exchange: without a log only Age tells."""
    if "_cache " in record.get("conf", "") and "post_action " in record["conf"] and any(name == "Age" for name, _ in record["answer"]["headers"]):
        # The log has the state of the post_action.
        return True
    if not record.get("log") and "_cache " in record.get("conf", ""):
        return not record.get("seen") or any(name == "Age" for name, _ in record["answer"]["headers"])
    return any(line.get("upstream_cache_status") for line in record.get("log", ()))


def plain(target):
    """The path of a target, as `$uri` has it."""
    path = posixpath.normpath(re.sub("/+", "/", urllib.parse.unquote(target.partition("?")[0], "latin-1")))
    return path + "/" * (target.partition("?")[0].endswith("/") and path != "/")
