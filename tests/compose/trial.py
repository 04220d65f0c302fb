"""One run of a case with both sides."""
import dataclasses

import draw
import grammar
import judge
import pools

# Sessions of TCP, for a file with a stream block.
SESSIONS = 2


@dataclasses.dataclass
class Case:
    """A configuration and its requests."""
    tree: tuple
    asks: tuple
    seed: int | None = None


def run(pair, case, repairs):
    """All differences of the case, and the case as it ran. With `repairs`, the file first loses the statements that nginx refuses."""
    if repairs:
        tree, refusals, verdicts = pair.repaired(case.tree)
        case = dataclasses.replace(case, tree=tree)
    else:
        refusals = []
        verdicts = pair.start(pair.whole(case.tree)[0])
    if verdicts != [None, None]:
        pair.stop(verdicts)
        same = bool(verdicts[0]) == bool(verdicts[1])
        return case, [] if same else [judge.Found(None, judge.verdict(*verdicts), None)], refusals
    text = grammar.text(case.tree)
    ways = draw.ways(text)
    asks = [dataclasses.replace(ask, way=next(way for way in (ask.way, ask.otherwise, "plain") if way in ways)) for ask in case.asks]
    return case, judge.compared(text, asks, *pair.play(asks, [pools.STREAM] * SESSIONS if "listen 8090;" in text else ())), refusals


def steady(pair, case, other=None):
    """The differences without a rule that two runs of the case share, and all of the first run. With another pair, only those that it does not have."""
    case, found, refusals = run(pair, case, True)
    first = judge.unexplained(found)
    if first:
        kinds = unruled(pair, case)
        first = [one for one in first if (one.number, one.kind) in kinds]
    if first and other:
        kinds = unruled(other, case)
        first = [one for one in first if (one.number, one.kind) not in kinds]
    return case, first, found, refusals


def unruled(pair, case):
    """The requests and the kinds of the differences that have no rule."""
    return {(one.number, one.kind) for one in run(pair, case, False)[1] if one.rule is None}
