"""Exact intervals of a fraction."""

import math


def tail(most: int, of: int, chance: float) -> float:
    """The chance of at most so many of so many."""
    if chance <= 0:
        return 1.0
    if chance >= 1:
        return 1.0 if most >= of else 0.0
    logs = (math.lgamma(of + 1) - math.lgamma(count + 1) - math.lgamma(of - count + 1) + count * math.log(chance) + (of - count) * math.log1p(-chance)
            for count in range(most + 1))
    return min(1.0, sum(math.exp(log) for log in logs))


def interval(count: int, of: int, sure: float = 0.95) -> tuple[float, float]:
    """Clopper and Pearson's: it holds the true fraction at least this often, whatever that is."""
    outside = (1 - sure) / 2
    if of == 0:
        return 0.0, 1.0
    # With a larger chance, fewer are less likely.
    low = 0.0 if count == 0 else crossing(lambda chance: 1 - tail(count - 1, of, chance) >= outside)
    high = 1.0 if count == of else crossing(lambda chance: tail(count, of, chance) <= outside)
    return low, high


def crossing(is_beyond) -> float:
    """The smallest chance that is beyond."""
    low, high = 0.0, 1.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (low, middle) if is_beyond(middle) else (middle, high)
    return high


def words(count: int, of: int) -> str:
    """`45 of 48, 93.8 % [82.8, 98.7]`."""
    if of == 0:
        return "0 of 0"
    low, high = interval(count, of)
    return f"{count} of {of}, {100 * count / of:.1f} % [{100 * low:.1f}, {100 * high:.1f}]"
