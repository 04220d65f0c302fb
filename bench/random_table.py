"""The table of the verdicts on random stacks: classes, fractions with exact intervals, and remedies."""

import argparse
import collections
from typing import Any, Iterable

import random_remedies
from random_binomial import words
from random_kinds import KINDS
from random_stack import HEALTHY, POLICY, UNATTRIBUTED, Truth, compose

CLASSES = ["right", "undecided", "wrong", "wrongly PROVED", "false alarm", "missed", "not bound", "failed"]
# The worst first, as they are told.
WORST_FIRST = ["wrongly PROVED", "failed", "false alarm", "wrong", "missed", "not bound"]
# In no fraction.
NOT_JUDGED = ("not bound", "failed")
# A sentence that is not so.
UNTRUE = ("wrong", "wrongly PROVED", "false alarm", "missed")
# Words that claim a proof.
PROOFS = ("PROVED", "SHARED")
# All words that a verdict may have; `failed` is ours.
WORDS = (*PROOFS, "SUSPECTED", POLICY, UNATTRIBUTED, HEALTHY, "no verdict")


def classify(truth: Truth, word: str, rule: str | None) -> str:
    """The class of a verdict."""
    if word not in WORDS:
        return "failed"
    if word == "no verdict":
        return "undecided"
    is_said = rule in truth.rules
    if truth.is_healthy:
        is_right = word == HEALTHY and rule not in truth.unsaid
        return "right" if is_right else "wrongly PROVED" if word in PROOFS else "false alarm"
    if word == HEALTHY:
        return "right" if truth.is_waste and is_said else "missed"
    if truth.is_policy:
        return "right" if word == POLICY else "undecided" if word == UNATTRIBUTED else "wrongly PROVED" if word in PROOFS else "wrong"
    if word == UNATTRIBUTED:
        return "undecided" if truth.has_rule else "right"
    if word in PROOFS and not is_said:
        return "wrongly PROVED"
    # Where no rule was written for it, the right place may be proved too: it is squeezed like any other.
    return "right" if is_said and word != POLICY else "wrong"


def fractions(rows: Iterable[dict[str, Any]]) -> dict[str, int]:
    """How many rows are of each class."""
    counts = collections.Counter(row["class"] for row in rows)
    return {name: counts[name] for name in CLASSES}


def table(rows: list[dict[str, Any]]) -> str:
    """The confusion table by kind and edge."""
    cells: dict[tuple[str, str], list[dict[str, Any]]] = {}
    for row in rows:
        cells.setdefault((row["kind"], row["edge"]), []).append(row)
    lines = [f"{'kind':<20} {'edge':<6} {'truth':<22} {'right':>7}  others, and what was said"]
    order = {kind.name: at for at, kind in enumerate(KINDS)}
    for (kind, edge), group in sorted(cells.items(), key=lambda item: (order.get(item[0][0], 0), item[0][1])):
        judged = [row for row in group if row["class"] not in NOT_JUDGED]
        right = sum(row["class"] == "right" for row in judged)
        others = collections.Counter(f"{row['class']}: {row['word']}{' ' + row['rule'] if row['rule'] else ''}" for row in group if row["class"] != "right")
        said = ", ".join(f"{count} {name}" for name, count in others.most_common())
        lines.append(f"{kind:<20} {edge:<6} {group[0]['truth']:<22} {right:>3}/{len(judged):<3}  {said}")
    return "\n".join(lines)


def parts_of(rows: list[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """All rows; those with a rule, without one, and the sound ones."""
    truths = {kind.name: compose(0, kind, "nginx" if "n" in kind.edges else "weir").truth for kind in KINDS}
    known = [(row, truths[row["kind"]]) for row in rows if row["kind"] in truths]
    return {
        "all": rows,
        "with a rule": [row for row, truth in known if truth.has_rule and not truth.is_healthy],
        "without a rule": [row for row, truth in known if not truth.has_rule],
        "sound": [row for row, truth in known if truth.is_healthy],
    }


def totals(rows: list[dict[str, Any]]) -> str:
    """Each class as a fraction, with its exact interval of 95 %."""
    lines = []
    for name, part in parts_of(rows).items():
        counts = fractions(part)
        judged = sum(count for word, count in counts.items() if word not in NOT_JUDGED)
        said = [f"{word} {words(count, judged)}" for word, count in counts.items() if word not in NOT_JUDGED and (count or word == "right")]
        left = ", ".join(f"{counts[word]} {word}" for word in NOT_JUDGED if counts[word])
        lines.append(f"{name:<15} {'; '.join(said)}{'; beside them ' * bool(left)}{left}")
    return "\n".join(lines)


def accepted(rows: list[dict[str, Any]]) -> str:
    """The four sentences of which all have to be true, each with the fraction that was found."""
    judged = [row for row in rows if row["class"] not in NOT_JUDGED]
    parts = parts_of(judged)
    nameable, sound = parts["with a rule"], parts["sound"]
    proofs = [row for row in judged if row["word"] in PROOFS]

    def line(sentence: str, are: Iterable[bool], is_met: Any) -> str:
        marks = list(are)
        return f"{'met' if marks and is_met(sum(marks), len(marks)) else 'not met':<8} {sentence:<52} {words(sum(marks), len(marks))}"

    return "\n".join([
        line("at least 92 % of the nameable right", (row["class"] == "right" for row in nameable), lambda count, of: count >= 0.92 * of),
        line("at most 2 % wrong", (row["class"] in UNTRUE for row in judged), lambda count, of: count <= 0.02 * of),
        line("none wrongly PROVED among at least 60 proofs", (row["class"] == "wrongly PROVED" for row in proofs), lambda count, of: count == 0 and of >= 60),
        line("at least 97 % of the healthy NOT SATURATED", (row["word"] == HEALTHY for row in sound), lambda count, of: count >= 0.97 * of),
    ])


def remedies(rows: list[dict[str, Any]]) -> str:
    """How many remedies of the verdicts help, and those that cannot help."""
    given = [row for row in rows if row.get("remedy") and row["class"] not in NOT_JUDGED]
    marks = [(random_remedies.worth(row["kind"], row["rule"], row["remedy"], row.get("tried"), row["class"] == "right"), row) for row in given]
    counts = collections.Counter(mark for mark, _ in marks)
    lines = [f"remedies: {len(given)}, {counts[random_remedies.HELPS]} help, {counts[random_remedies.CANNOT]} cannot help, {counts[random_remedies.UNKNOWN]} unknown"]
    for word in (random_remedies.CANNOT, random_remedies.UNKNOWN):
        lines += [f"    {word}: {row['kind']} of {row['edge']} ({row['seed']}), {row['rule']}{', tried' * (row.get('tried') in random_remedies.TRIED)}: {row['remedy']}"
                  for mark, row in marks if mark == word]
    return "\n".join(lines)


def command(row: dict[str, Any], options: argparse.Namespace) -> str:
    """That does it again."""
    said = f"python3 bench/random_faults.py --weir {options.weir} --seed {row['seed']} --stacks 1 --only {row['kind']} --edge {row['edge']} --block {options.block}"
    return said + " --prove" * bool(row.get("is_proved", options.prove)) + " --noisy" * options.noisy


def report(rows: list[dict[str, Any]], options: argparse.Namespace) -> str:
    """All that is printed at the end."""
    text = f"{table(rows)}\n\n{totals(rows)}\n\n{accepted(rows)}\n\n{remedies(rows)}\n"
    bad = [row for row in rows if row["class"] not in ("right", "undecided")]
    for row in sorted(bad, key=lambda row: (WORST_FIRST.index(row["class"]), row["kind"])):
        text += f"\n{row['class']}: {row['kind']} of {row['edge']}, truth {row['truth']} ({row['notes']}; {row['load']})\n    {row['text']}\n    {command(row, options)}\n"
    return text
