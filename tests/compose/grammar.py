"""The language in which the families are written, and the tree of statements that it gives.

A template is the text of a statement. `{a|b*3|c}` stands for one of these parts, `b` three times as often; parts may hold parts. `<name>` stands for a
template of the pool of this name (pools.py). `P_` at the beginning of a word stands for the prefix of a family of origins: `proxy_`, `fastcgi_` and so
on. In a sheet of templates each line is one; ` ~30` at its end is its share in percent, and deeper lines are the statements in its block.
"""
import dataclasses
import functools
import re

SHARE = re.compile(r"\s+~(\d+)$")
POOL = re.compile(r"(?<!\?)<(\w+)>")
PREFIX = re.compile(r"(?<![\w$])P_")
WEIGHT = re.compile(r"(?s)(.*)\*(\d+)")


@dataclasses.dataclass(frozen=True)
class Statement:
    """A statement of a configuration; a block is a tuple of statements."""
    text: str
    block: tuple | None = None

    @property
    def name(self):
        return self.text.split(" ", 1)[0]


@dataclasses.dataclass(frozen=True)
class Line:
    """A line of a sheet: the template, its share in percent, the lines in its block."""
    template: str
    share: int = 100
    block: tuple | None = None


@functools.cache
def sheet(text):
    """The lines of a sheet, as trees."""
    rows = []
    for row in text.split("\n"):
        if row.strip():
            share = SHARE.search(row)
            rows.append((len(row) - len(row.lstrip()), SHARE.sub("", row).strip(), int(share[1]) if share else 100))
    lines, rest = _level(rows, rows[0][0] if rows else 0)
    if rest:
        raise ValueError(f"an indentation fits nowhere: {rest[0][1]}")
    return lines


def _level(rows, depth):
    lines = []
    while rows and rows[0][0] == depth:
        _, template, share = rows[0]
        rows, block = rows[1:], None
        if template.endswith(" :"):
            template, block = template[:-2], ()
            if rows and rows[0][0] > depth:
                block, rows = _level(rows, rows[0][0])
        lines.append(Line(template, share, block))
    return tuple(lines), rows


class Dice:
    """Draws texts from templates with one source of chance."""

    def __init__(self, random, pools):
        self.random, self.pools = random, pools

    def text(self, template, prefix="proxy"):
        """One text of the template."""
        text = self._parts(template)
        while found := POOL.search(text):
            text = text[:found.start()] + self._parts(self.random.choice(self.pools[found[1]])) + text[found.end():]
        return PREFIX.sub(prefix + "_", text)

    def _parts(self, template):
        while "{" in template:
            begin = template.rindex("{")
            end = template.index("}", begin)
            template = template[:begin] + self._one(template[begin + 1:end].split("|")) + template[end + 1:]
        return template

    def _one(self, parts):
        found = [WEIGHT.fullmatch(part) for part in parts]
        return self.random.choices([one[1] if one else part for one, part in zip(found, parts)], [int(one[2]) if one else 1 for one in found])[0]

    def happens(self, percent):
        return self.random.random() * 100 < percent

    def statements(self, lines, prefix="proxy"):
        """The statements of those lines whose share falls; nothing for a line whose text is empty."""
        drawn = []
        for line in lines:
            if self.happens(line.share) and (text := self.text(line.template, prefix).strip()):
                drawn.append(Statement(text, None if line.block is None else tuple(self.statements(line.block, prefix))))
        return drawn


def walk(statements):
    """All statements, those in blocks too."""
    for statement in statements:
        yield statement
        if statement.block is not None:
            yield from walk(statement.block)


def places(statements, above=()):
    """The places of all statements; a place is the path of numbers to it."""
    for number, statement in enumerate(statements):
        yield (*above, number)
        if statement.block is not None:
            yield from places(statement.block, (*above, number))


def without(statements, dropped, above=()):
    """The statements without those at these places."""
    return tuple(statement if statement.block is None else dataclasses.replace(statement, block=without(statement.block, dropped, (*above, number)))
                 for number, statement in enumerate(statements) if (*above, number) not in dropped)


def only(statements, test):
    """The statements that pass the test, in all blocks."""
    return tuple(statement if statement.block is None else dataclasses.replace(statement, block=only(statement.block, test)) for statement in statements if test(statement))


def at(statements, place):
    """The statement at a place."""
    found = statements[place[0]]
    return found if len(place) == 1 else at(found.block, place[1:])


def replaced(statements, place, new):
    """The statements with another one at this place."""
    number, *rest = place
    old = statements[number]
    one = dataclasses.replace(old, block=replaced(old.block, tuple(rest), new)) if rest else new
    return (*statements[:number], one, *statements[number + 1:])


def written(statements, depth=0, above=()):
    """The lines of text, each with the place of its statement; the line of a closing brace has the place of its block."""
    pad = "    " * depth
    for number, statement in enumerate(statements):
        place = (*above, number)
        if statement.block is None:
            yield f"{pad}{statement.text};", place
        else:
            yield f"{pad}{statement.text} {{", place
            yield from written(statement.block, depth + 1, place)
            yield pad + "}", place


def text(statements, depth=0):
    return "".join(line + "\n" for line, _ in written(statements, depth))
