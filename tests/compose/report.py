"""Texts for people: a case with its difference, and the counts of a run."""
import grammar
import rules

# Of a value.
SHOWN = 400


def shown(text):
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}… {len(text)} characters"


def case_text(case):
    """The statements of the http block, and the requests."""
    lines = [grammar.text(case.tree).rstrip()]
    lines += [f"# {number}: {ask.short()}" for number, ask in enumerate(case.asks)]
    return "\n".join(lines)


def difference_text(found):
    at = "the case" if found.number is None else f"request {found.number}"
    return f"{found.kind} ({at})\n  nginx: {shown(found.difference.nginx)}\n  weir:  {shown(found.difference.weir)}"


def names(case):
    """The directives of a case, as one text."""
    plain = ("server", "listen", "server_name", "location", "root")
    return " ".join(sorted({statement.name for statement in grammar.walk(case.tree)} - set(plain)))


def whole(case, found):
    return "\n".join([*(difference_text(one) for one in found), "", case_text(case), ""])


def rules_text(counts):
    return "\n".join(f"{counts[name]:6} explained by {name}: {reason}" for name, reason, *_ in rules.RULES if counts[name])
