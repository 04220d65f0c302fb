"""Makes a case smaller while a difference of its kind stays."""
import dataclasses

import grammar
import trial
from ask import Ask
from grammar import Statement

# Runs for one case.
TRIES = 260


class Reducer:
    """`holds(case)` says whether the difference is there; it is asked at most TRIES times."""

    def __init__(self, holds, tries=TRIES):
        self.holds, self.left = holds, tries

    def still(self, case):
        if self.left <= 0:
            return False
        self.left -= 1
        return self.holds(case)

    def reduced(self, case, number):
        """The smallest case that was found; the difference is at the request of this number."""
        case = self.fewer_asks(case, number)
        case = self.fewer_statements(case)
        case = self.simpler_asks(case)
        case = self.fewer_statements(case)
        case = self.shorter_statements(case)
        return self.fewer_asks(case, len(case.asks) - 1)

    def fewer_asks(self, case, number):
        asks = case.asks
        if number is not None:
            for some in (asks[number:number + 1], asks[max(0, number - 1):number + 1], asks[:number + 1]):
                if len(some) < len(asks) and self.still(smaller := dataclasses.replace(case, asks=some)):
                    case = smaller
                    break
        return dataclasses.replace(case, asks=self.thinned(case.asks, lambda some: dataclasses.replace(case, asks=some)))

    def thinned(self, items, made):
        """Fewer items: halves, quarters and so on are left out while the difference stays."""
        size = max(1, len(items) // 2)
        while len(items) > 1:
            at, changed = 0, False
            while at < len(items) and len(items) > 1:
                fewer = items[:at] + items[at + size:]
                if fewer and self.still(made(fewer)):
                    items, changed = fewer, True
                else:
                    at += size
            if size == 1 and not changed:
                break
            size = max(1, size // 2)
        return items

    def fewer_statements(self, case):
        size = max(1, len(list(grammar.places(case.tree))) // 2)
        while size:
            at, changed = 0, False
            while True:
                # Whole blocks come first.
                every = sorted(grammar.places(case.tree), key=lambda place: (len(place), place))
                if at >= len(every):
                    break
                fewer = dataclasses.replace(case, tree=grammar.without(case.tree, set(every[at:at + size])))
                if self.still(fewer):
                    case, changed = fewer, True
                else:
                    at += size
                if self.left <= 0:
                    return case
            size = size // 2 if size > 1 else 1 if changed else 0
        return case

    def simpler_asks(self, case):
        plain = Ask()
        for number in range(len(case.asks)):
            for name in ("way", "is_chunked", "is_late", "expects", "again", "trailers", "pause", "body", "version", "method"):
                ask = case.asks[number]
                if getattr(ask, name) != getattr(plain, name):
                    case = self.with_ask(case, number, dataclasses.replace(ask, **{name: getattr(plain, name)}))
            for field in case.asks[number].fields:
                if field[0] != "Host":
                    ask = case.asks[number]
                    case = self.with_ask(case, number, dataclasses.replace(ask, fields=tuple(one for one in ask.fields if one != field)))
            ask = case.asks[number]
            if ask.body and len(ask.body) > 3:
                case = self.with_ask(case, number, dataclasses.replace(ask, body=b"a=1"))
            if "?" in ask.target:
                case = self.with_ask(case, number, dataclasses.replace(case.asks[number], target=ask.target.partition("?")[0]))
        return case

    def with_ask(self, case, number, ask):
        smaller = dataclasses.replace(case, asks=(*case.asks[:number], ask, *case.asks[number + 1:]))
        return smaller if self.still(smaller) else case

    def shorter_statements(self, case):
        """Statements with fewer words."""
        for place in list(grammar.places(case.tree)):
            statement = grammar.at(case.tree, place)
            words = statement.text.split(" ")
            number = 1
            while len(words) > 2 and number < len(words) and '"' not in statement.text and statement.name not in ("location", "if", "map"):
                fewer = words[:number] + words[number + 1:]
                smaller = dataclasses.replace(case, tree=grammar.replaced(case.tree, place, Statement(" ".join(fewer), statement.block)))
                if self.still(smaller):
                    case, words = smaller, fewer
                else:
                    number += 1
        return case


def reduce(pair, case, kind, other=None):
    """The case, reduced, with a difference of the kind that another pair does not have; None if the difference does not come again."""
    def differences(pair, case):
        return [one for one in trial.run(pair, case, False)[1] if one.rule is None and one.kind == kind]

    def found(case):
        ours = differences(pair, case)
        return [] if other and ours and differences(other, case) else ours
    first = found(case)
    if not first:
        return None
    reducer = Reducer(lambda case: bool(found(case)))
    small = reducer.reduced(case, first[0].number)
    last = found(small) or found(small)
    return (small, last, TRIES - reducer.left) if last else None
