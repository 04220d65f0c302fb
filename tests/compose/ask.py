"""One request of a case."""
import dataclasses
import json

# The ways to the edge: the listener, and the protocol.
WAYS = ("plain", "tls", "h2c", "h2", "h3", "proxied", "other")


@dataclasses.dataclass(frozen=True)
class Ask:
    """A request as the client sends it. `pause` are the seconds before it; `again` takes the connection of the request before, if it is open.

    `otherwise` is the way to an edge that does not have `way`.
    """
    method: str = "GET"
    target: str = "/"
    version: str = "HTTP/1.1"
    fields: tuple = ()
    body: bytes | None = None
    way: str = "plain"
    is_chunked: bool = False
    expects: bool = False
    is_late: bool = False
    again: bool = False
    trailers: tuple = ()
    pause: float = 0
    otherwise: str = "plain"

    @property
    def is_http2(self):
        return self.way in ("h2", "h2c")

    # The names of answers/client.py, for the rules that both programs share.

    @property
    def headers(self):
        return self.fields

    @property
    def is_http3(self):
        return self.way == "h3"

    @property
    def http2(self):
        """Also HTTP/3: what the rules say of HTTP/2 is about frames."""
        return self.is_http2 or self.is_http3

    @property
    def what(self):
        if self.given("Upgrade"):
            return "Upgrade"
        return "Expect with the body" if self.expects else ""

    def given(self, name):
        return next((value for found, value in self.fields if found.lower() == name.lower()), None)

    def short(self):
        """A line for people."""
        words = [f"{self.method} {self.target}", *(f"{name}: {value}" for name, value in self.fields if (name, value) != ("Host", "x.test"))]
        if self.body is not None:
            words.append(f"body {self.body[:40]!r}" + (f" ({len(self.body)} bytes)" if len(self.body) > 40 else "") + (" chunked" if self.is_chunked else ""))
        plain = Ask()
        words += [f"{name}={getattr(self, name)}" for name in ("version", "way", "expects", "is_late", "again", "trailers", "pause", "otherwise") if getattr(self, name) != getattr(plain, name)]
        return " | ".join(words)

    def dump(self):
        return {field.name: value.decode("latin-1") if isinstance(value := getattr(self, field.name), bytes) else value for field in dataclasses.fields(self)}

    @classmethod
    def load(cls, found):
        found = dict(found)
        found["body"] = None if found["body"] is None else found["body"].encode("latin-1")
        for name in ("fields", "trailers"):
            found[name] = tuple(tuple(pair) for pair in found[name])
        return cls(**found)


def dumps(asks):
    return json.dumps([ask.dump() for ask in asks])
