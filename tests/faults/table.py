"""Writes the results of weir and of nginx side by side."""

HEAD = """# Upstream faults

A hostile origin behind weir and behind nginx 1.31.5. `tests/faults.py --weir BIN --nginx BIN --table docs/scores/upstream-faults.md` makes
this page; do not edit it. The bytes of each fault are in `tests/faults/`.

An outcome is the status, and *cut* if the client can tell that the answer is not complete: the length is not reached, the last chunk is missing,
or the stream is reset. *closed*: the client gets no byte. *hangs*: no end within seconds. *second*: the answer of the second peer. A
number behind × counts the variants, such as the bytes at which an answer ends. If HTTP/1.1,
HTTP/2 and the cache give the same, it stands once. Faults with the same outcome in both are in one line below each table.
"""
TITLES = {"http": "HTTP/1.1", "https": "HTTP/1.1 behind TLS", "h2": "HTTP/2", "grpc": "gRPC", "fastcgi": "FastCGI", "uwsgi": "uwsgi", "scgi": "SCGI", "memcached": "memcached", "stream": "TCP (`stream`)"}
CLIENTS = ("h1", "h2", "grpc", "cache", "tcp")


def text(suites, results, reason):
    """The page."""
    page = [HEAD]
    for suite in suites:
        weir = results["weir", suite.protocol]
        nginx = results.get(("nginx", suite.protocol)) or weir
        same, rows = {}, []
        for case in suite.cases:
            pair = [column(edge[case.name]) for edge in (weir, nginx)]
            if pair[0] == pair[1]:
                same.setdefault(pair[0], []).append(case.name)
            else:
                rows.append(f"| {case.name} | {' | '.join(' | '.join(cells) for cells in pair)} | {reason(f'{suite.protocol}/{case.name}') or ''} |")
        page.append(f"## {TITLES[suite.protocol]}\n")
        if rows:
            page += ["| fault | weir | weir, second peer | nginx | nginx, second peer | why |", "|---|---|---|---|---|---|", *rows, ""]
        for (clients, second), names in same.items():
            words = [clients] * bool(clients) + ["with a second peer " + second] * bool(second)
            page.append(f"- {'; '.join(words)}: {', '.join(names)}.")
        page.append("")
    return "\n".join(page).rstrip() + "\n"


def column(ways):
    """The outcomes of one edge: towards the clients, and with a second peer."""
    return together(ways, [way for way in ways if way in CLIENTS]), together(ways, [way for way in ways if way not in CLIENTS])


def together(ways, chosen):
    """The outcomes of these ways: once, if all are the same."""
    texts = {}
    for way in chosen:
        result = ways[way]
        words = ", ".join(outcome + (f" ×{len(variants)}" if len(result.outcomes) > 1 else "") for outcome, variants in result.outcomes.items())
        texts.setdefault(words + (", **and the next client gets the rest**" if result.foreign else ""), []).append({"second": "GET", "post": "POST", "invalid": "GET with `invalid_header`"}.get(way, way))
    if len(texts) == 1:
        return next(iter(texts))
    return "; ".join(f"{' '.join(ways)}: {words}" for words, ways in texts.items())
