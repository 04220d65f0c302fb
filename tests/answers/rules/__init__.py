"""The deliberate differences between weir and nginx: rules for `real_answers.py` and `compose.py`, one module for each subject."""
from rules import answers, caches, connections, lengths, logs, older, origins, slices, subrequests, texts  # noqa: F401
from rules.basis import NGINX, RULES

# Rules about answers that one of the edges keeps: later requests can find another state of the cache.
STATEFUL = [name for name, _, leaves, _ in RULES if leaves == "cache"]
# Rules after which the groups of servers may have another state: a server got another number of requests, or has failed for one edge alone.
TURNING = [name for name, _, leaves, _ in RULES if leaves == "group"]

__all__ = ["NGINX", "RULES", "STATEFUL", "TURNING", "rule"]


def rule(request, difference, nginx, weir):
    """The name of the rule that explains this difference, or None."""
    return next((name for name, _, _, test in RULES if test(request, difference, nginx, weir)), None)
