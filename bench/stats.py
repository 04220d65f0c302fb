"""Medians, spreads and paired ratios; no other opinion about numbers lives elsewhere."""

import random
import statistics
from dataclasses import dataclass

BOOTSTRAPS = 2000


@dataclass
class Ratio:
    """The median of per-round ratios, its 95 % bootstrap interval, and the sign count."""

    median: float
    low: float
    high: float
    below: int   # rounds in which the ratio was below 1
    rounds: int


def spread(values):
    """Median, smallest, largest."""
    return statistics.median(values), min(values), max(values)


def quarter(values):
    """A quarter of the values, or at least one of them, are at most this: the rounds that were disturbed least."""
    values = sorted(values)
    return values[max(len(values) // 4 - 1, 0)]


def quietest(runs, disturbance, most):
    """The first run that was disturbed by at most this much, else the least disturbed one; None without any. Takes no
    further run than it needs."""
    best = None
    for run in runs:
        if best is None or disturbance(run) < disturbance(best):
            best = run
        if disturbance(best) <= most:
            break
    return best


def ratio(ours, theirs):
    """Compares two {round: value}; only rounds that have both count. None without any."""
    pairs = [ours[r] / theirs[r] for r in sorted(ours.keys() & theirs.keys()) if theirs[r] > 0]
    if not pairs:
        return None
    dice = random.Random(1)  # the same data give the same interval
    medians = sorted(statistics.median(dice.choices(pairs, k=len(pairs))) for _ in range(BOOTSTRAPS))
    low, high = medians[int(BOOTSTRAPS * 0.025)], medians[int(BOOTSTRAPS * 0.975) - 1]
    return Ratio(statistics.median(pairs), low, high, sum(p < 1 for p in pairs), len(pairs))
