"""Writes the results of weir and of a peer side by side."""

HEAD = """# Nothing lost

Something happens to an edge under a steady load, and each request that is lost is counted. `tests/lasting.py --weir BIN --peer nginx=BIN --slow
--write` makes this page; do not edit it. The scenarios are in `tests/lasting/`. nginx is {peer}.

The load is many clients at once: HTTP/1.1 on kept connections and on new ones, HTTP/2 with three streams and on new connections, uploads, cached answers,
WebSockets that get numbered frames back, calls of gRPC that get numbered messages back, and sessions of TCP through `stream` that get numbered lines back. The origin takes 5 to 20 ms for an answer.

- *lost*: a request without its whole right answer. In parentheses: the most that weir may lose in this scenario.
- *reopened*: a kept connection ended before a byte of the answer, and the origin had not seen the request, so the client asked again on another
  one (RFC 9112 §9.3.1, RFC 9113 §8.7).
- *refused*: in `files` a connection that was closed before the request was read, in `disk-temp` a whole answer with a status of 500 or more.
- *WebSockets*, *calls* of gRPC, *sessions*: those that ended. In parentheses: the most that weir may end.
"""
COLUMNS = ("scenario", "edge", "requests", "lost", "reopened", "refused", "WebSockets", "calls", "sessions", "notes")


def text(results, peer):
    """The page."""
    page = [HEAD.format(peer=peer), f"| {' | '.join(COLUMNS)} |", "|---|---|--:|--:|--:|--:|--:|--:|--:|---|"]
    for result in results:
        page.append("| " + " | ".join([*cells(result)[:-1], "; ".join(filter(None, [result.skipped, *result.notes, *result.faults]))]) + " |")
    page += ["", "| scenario | what happens |", "|---|---|"]
    for result in results:
        row = f"| {result.scenario.name} | {result.scenario.says} |"
        if row not in page:
            page.append(row)
    return "\n".join(page) + "\n"


def cells(result):
    """One row."""
    name = [result.scenario.name, result.edge_name]
    if result.skipped:
        return [*name, *[""] * 7, result.skipped]
    tally, most = result.tally, result.allowed

    def bounded(lost, bound):
        return f"{len(lost)} ({bound})" if result.edge_name == "weir" else str(len(lost))
    lost, sockets, calls, sessions = map(bounded, result.losses, most)
    notes = "; ".join(filter(None, result.notes))
    return [*name, f"{tally.requests:,}", lost, str(tally.reopened), str(tally.refused.total()), sockets, calls, sessions, notes]


def line(result):
    """One row for the terminal."""
    row = cells(result)
    if result.skipped:
        return f"{row[0]:12} {row[1]:6} left out: {row[-1]}"
    return f"{row[0]:12} {row[1]:6} {row[2]:>8} requests, lost {row[3]}, reopened {row[4]}, refused {row[5]}, WebSockets {row[6]}, calls {row[7]}, sessions {row[8]}; {result.seconds:.1f} s; {row[-1]}"
