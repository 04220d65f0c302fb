#!/usr/bin/env python3
"""Canaries on a real edge with clustered clients: of nothing, and with planted harm.

    python3 bench/canary.py nothing --weir target/dist/weir [--runs 40] [--share 50%] [--clients 6000] [--rate 500] [--jobs 4]
    python3 bench/canary.py harm --weir target/dist/weir [--only gross,slower30] [--runs 5] [--share 50%] [--clients 12000] [--rate 100] [--jobs 4]
    python3 bench/canary.py ramp --weir target/dist/weir [--only errors,slower30] [--runs 3] [--pause 15s] [--rate 500] [--jobs 4]
    python3 bench/canary.py list

Each run has an edge of its own with two workers, an origin with real delays (canary_origin.py) and clients that arrive at random and differ from each
other (canary_clients.py); all on loopback. A request says its delay and its luck itself, so only the coin of the edge decides about its configuration. The
judge of the edge looks all the time. A run ends with the decision, or when the judge has counted `--clients` clients; `--jobs` runs are beside each other.

`nothing` gives both configurations the same statements. It prints the canaries that were rolled back, with the exact binomial interval, and fails if there
are more than chance explains (one in 40).

`harm` plants a harm in the new configuration. It prints for each run whether it was found, after how many clients, the clients of the new
configuration that met the harm by their own account, and the clients that the edge had announced. It fails if a harm is found within the announced
clients in fewer than 80 of 100 runs, if a harm beyond the margins is promoted, or if gross errors harm more than 10 clients. Two harms are there that no judge can see; their lines say so. If clients come much
faster than 100 a second, the first ones that count have one request, because the others are still there: slowness then needs more clients than announced.

`ramp` plants a harm in a canary of 1 %, 10 % and 50 %, and says at which share it was rolled back. It fails if a harm is not found.

`--words` has further words for `weir canary`; by default, the edge looks at the traffic for 15 s before.
"""

import argparse
import asyncio
import contextlib
import math
import multiprocessing
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass

import canary_clients
from canary_edge import ADDRESS, Edge

# Before the canary begins: the edge has connections to its origin then.
WARM_S = 1.0
LOOK_S = 0.25
# A run that takes longer has failed.
RUN_S = 400
ALPHA = 0.025
FOUND = 0.8
GROSS_MAX = 10
PASS = "proxy_pass http://app;"
KEPT = f"proxy_cache pages; proxy_cache_valid 200 2s; {PASS}"
PLAIN = f"location / {{ {PASS} }}"
PAGES = f"location / {{ proxy_cache_key $uri; {KEPT} }}"
ME = f"location / {{ proxy_cache_key $uri$arg_sid; {KEPT} }}"


def harm(words):
    return f'location / {{ proxy_set_header X-Harm "{words}"; proxy_set_header Connection ""; {PASS} }}'


def has_failed(client):
    return client.failed["new"] > 0


@dataclass(frozen=True)
class Planted:
    """A harm of the new configuration. `is_hit` says whether a client of it met the harm; `blind` says why no judge can see it."""

    title: str
    new: str
    is_hit: object
    old: str = PLAIN
    kind: str = "plain"
    blind: str = ""
    # The question of the edge's announcement that is about this harm or about a smaller one; empty if there is none.
    question: str = "failures"


def everyone(client):
    return client.answers > 0


# Harm that the margins of the judge allow: a promotion is no mistake.
WITHIN_MARGINS = {"slower10"}
NOTHING = Planted("nothing", PLAIN, lambda client: False, question="")
HARMS = {
    "gross": Planted("every request gets 500", "location / { return 500; }", has_failed),
    "errors": Planted("ten times the failures", harm("errors 10"), has_failed),
    "slower10": Planted("10 % slower", harm("slow 1.1"), everyone, question="10_percent_slower"),
    "slower30": Planted("30 % slower", harm("slow 1.3"), everyone, question="30_percent_slower"),
    "slower200": Planted("three times as slow", harm("slow 3"), everyone, question="30_percent_slower"),
    "slower200-lucky": Planted("three times as slow, while nothing fails", harm("slow 3"), everyone, kind="lucky", question="30_percent_slower"),
    "errors3": Planted("three times the failures", harm("errors 3"), has_failed),
    "resets": Planted("2 % of the answers are cut", harm("cut"), lambda client: client.cut > 0),
    "hang": Planted("the origin never answers", harm("hang"), lambda client: client.gave_up > 0, question="30_percent_slower"),
    "stuck": Planted("the origin does not answer 2 % of the requests", harm("stuck"), lambda client: client.gave_up > 0, question=""),
    "leak": Planted("a leak: the origin gets slower, then it dies", "location / { proxy_pass http://leaking; }", has_failed),
    "cached-errors": Planted("errors are cached", f"location / {{ proxy_cache_key new$uri; proxy_cache_valid any 10s; {KEPT} }}", has_failed, PAGES, "page"),
    "no-cache": Planted("the cache is no longer used", PLAIN, everyone, PAGES, "page", question="30_percent_slower"),
    "shared-errors": Planted("errors are cached, under the key of both configurations", f"location / {{ proxy_cache_key $uri; proxy_cache_valid any 10s; {KEPT} }}",
                             has_failed, PAGES, "page", "both configurations give out the cached errors"),
    "strangers": Planted("the page of another client, with 200", f"location / {{ proxy_cache_key $uri; {KEPT} }}", lambda client: client.strange > 0, ME, "me",
                         "an answer with 200 that is fast is no harm to a judge"),
}


def main():
    args = arguments()
    # Whoever ends this program ends the edges, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if args.verb == "list":
        for name, planted in HARMS.items():
            print(f"{name:14} {planted.title}" + (f" (no judge can see it: {planted.blind})" if planted.blind else ""))
        return 0
    return {"nothing": nothing, "harm": harms, "ramp": ramp}[args.verb](args)


def nothing(args):
    found = []
    for number, one in enumerate(runs([Run("nothing", number, args, args.share) for number in range(args.runs)], args)):
        found.append(one)
        print(f"    run {number}: {one['phase']}, {one['judged']:,} clients judged, largest evidence {one['largest']:.2f}, {one['seconds']:.0f} s", flush=True)
    phases = Counter(one["phase"] for one in found)
    back = phases["rolled_back"]
    low, high = interval(back, len(found))
    allowed = next(count for count in range(len(found) + 1) if 1 - sum(binomial(len(found), ALPHA, below) for below in range(count + 1)) < 0.1)
    print(f"nothing, share {args.share}: {back} of {len(found)} canaries were rolled back ({100 * back / len(found):.1f} %, 95 % interval {100 * low:.1f} to {100 * high:.1f} %), "
          f"{phases['promoted']} promoted, {phases['undecided']} undecided; {sum(one['judged'] for one in found):,} clients judged; "
          f"largest evidence {max(one['largest'] for one in found):.2f} of 40")
    strange = [one for one in found if one["changed"]]
    if strange:
        print(f"FAILED: in {len(strange)} runs clients changed their configuration")
    if back > allowed:
        print(f"FAILED: chance explains {allowed} of {len(found)}")
    return int(back > allowed or bool(strange))


def harms(args):
    failures = []
    for name in args.only or HARMS:
        planted = HARMS[name]
        found = list(runs([Run(name, number, args, args.share) for number in range(args.runs)], args))
        for number, one in enumerate(found):
            print(f"    {name} {number}: {told(one)}", flush=True)
        hits = [one for one in found if one["phase"] == "rolled_back"]
        promoted = sum(one["phase"] == "promoted" for one in found)
        late = [one for one in hits if one["announced"] and one["judged"] > one["announced"]]
        unanswerable = sum(one["announced"] is None for one in found) if planted.question else 0
        harmed = [one["harmed"] for one in found]
        line = f"{name}: {planted.title}: found in {len(hits)} of {len(found)}"
        if hits:
            kinds = ", ".join(f"{kind} ×{count}" for kind, count in Counter(one["harm"] for one in hits).most_common())
            line += f" by {kinds}; after {statistics.median(one['judged'] for one in hits):,.0f} clients (median), in {statistics.median(one['seconds'] for one in hits):.0f} s"
        line += f"; harmed clients of the new configuration: {statistics.median(harmed):,.0f} (median), {max(harmed):,} (most); {len(late)} later than announced, {unanswerable} with the announcement that the clients are not enough, {promoted} promoted"
        if planted.blind:
            print(f"{line}\n    no judge can see it: {planted.blind}", flush=True)
            continue
        print(line, flush=True)
        in_time = sum(one["announced"] is not None or not planted.question for one in hits) - len(late)
        if in_time < FOUND * (len(found) - unanswerable):
            failures.append(f"{name} is found within the announced clients in {in_time} of {len(found) - unanswerable} runs")
        if promoted and name not in WITHIN_MARGINS:
            failures.append(f"{name} was promoted in {promoted} of {len(found)} runs")
        if name == "gross" and max(harmed) > GROSS_MAX:
            failures.append(f"gross errors harmed {max(harmed)} clients")
    for failure in failures:
        print(f"FAILED: {failure}")
    return int(bool(failures))


def ramp(args):
    failures = []
    for name in args.only or ["gross", "errors", "slower30"]:
        shares = "1%,10%,50%"
        found = list(runs([Run(name, number, args, shares, ("--pause", args.pause)) for number in range(args.runs)], args))
        for number, one in enumerate(found):
            print(f"    ramp {name} {number}: at {100 * one['share']:.0f} %: {told(one)}", flush=True)
        hits = [one for one in found if one["phase"] == "rolled_back"]
        steps = ", ".join(f"{count} at {100 * share:.0f} %" for share, count in sorted(Counter(one["share"] for one in hits).items()))
        print(f"ramp {shares} with {args.pause} each, {HARMS[name].title}: found in {len(hits)} of {len(found)} ({steps}); harmed clients of the new configuration: "
              f"{statistics.median(one['harmed'] for one in found):,.0f} (median), {max(one['harmed'] for one in found):,} (most)", flush=True)
        if len(hits) < FOUND * len(found):
            failures.append(f"{name} is found in {len(hits)} of {len(found)} runs")
    for failure in failures:
        print(f"FAILED: {failure}")
    return int(bool(failures))


def told(one):
    announced = f", {one['announced']:,} announced" if one["announced"] else ""
    return (f"{one['phase']} {one['harm'] or ''}: {one['judged']:,} clients judged of {one['came']:,} that came{announced}, {one['harmed']:,} of {one['new']:,} clients of the new configuration harmed, "
            f"{one['strange']} got pages of others, the median {100 * one['slower'] - 100:+.0f} %, evidence {one['evidence']:.1f}, {one['seconds']:.0f} s")


@dataclass
class Run:
    """One canary with its own edge, origin and clients."""

    name: str
    number: int
    args: argparse.Namespace
    share: str
    more: tuple = ()

    @property
    def planted(self):
        return HARMS.get(self.name, NOTHING)

    def __call__(self):
        with tempfile.TemporaryDirectory(prefix="weir-canary-") as room:
            edge = Edge(self.args.weir, room, self.planted.old)
            try:
                return asyncio.run(asyncio.wait_for(self.live(edge), RUN_S))
            finally:
                edge.end()

    async def live(self, edge):
        await edge.serves()
        clients = canary_clients.Clients(ADDRESS, edge.port, self.args.rate, f"{self.planted.title} {self.number} {self.args.seed}", self.planted.kind)
        arriving = asyncio.create_task(clients.arrive())
        await asyncio.sleep(WARM_S)
        begun, before = time.monotonic(), len(clients.all)
        # The command waits until the edge has looked at the traffic.
        order = asyncio.create_task(edge.canary(edge.write("new", self.planted.new), "--share", self.share, "--key", "$arg_sid", *self.more, *self.args.words))
        largest, announced, limit = 0.0, None, self.args.clients
        while True:
            await asyncio.sleep(LOOK_S)
            state = await edge.state()
            if state is None and order.done():
                raise RuntimeError(f"no canary: {order.result()[1]}")
            if state is None or state["phase"] == "looking":
                begun, before = time.monotonic(), len(clients.all)
                clients.times.clear()
                continue
            largest = max(largest, state["evidence"])
            announced = self.announced(state)
            limit = max(self.args.clients, announced or 0)
            judged = state["old"]["clients"] + state["new"]["clients"]
            if state["phase"] in ("rolled_back", "promoted", "undecided") or judged >= limit:
                break
        seconds, came = time.monotonic() - begun, len(clients.all) - before
        is_decided = state["phase"] in ("rolled_back", "promoted", "undecided")
        if not is_decided:
            await edge.canary("rollback")
        clients.is_over = True
        await arriving
        await order
        with contextlib.suppress(OSError):
            edge.keeper.poll()
        return {
            "phase": state["phase"] if is_decided else "undecided", "harm": state["harm"], "judged": judged, "largest": largest, "evidence": state["evidence"],
            "seconds": seconds, "came": came, "announced": announced, "share": state["share"], "slower": clients.slower(), "new": len(clients.of_lane("new")),
            "harmed": sum(self.is_harmed(client) for client in clients.all), "strange": sum(client.strange > 0 for client in clients.all),
            # Nobody goes to the new configuration, back, and there again.
            "changed": sum(len(client.lanes) > 3 for client in clients.all),
        }

    def announced(self, state):
        """The clients within which the edge says that it finds this harm; `None` if it says that they are not enough."""
        needs = (state.get("look") or {}).get("needs", [])
        return next((need.get("clients") for need in needs if need["question"] == self.planted.question), None)

    def is_harmed(self, client):
        # A client that got no answer at all cannot know its configuration; only the new one cuts and hangs.
        return bool(self.planted.is_hit(client)) and ("new" in client.lanes or client.cut + client.gave_up > 0)


def runs(all_runs, args):
    """The results of the runs, in their order, each as soon as it is there."""
    with multiprocessing.Pool(args.jobs, maxtasksperchild=1) as pool:
        yield from pool.imap(perform, all_runs, chunksize=1)


def perform(run):
    return run()


def binomial(count, chance, wanted):
    return math.comb(count, wanted) * chance ** wanted * (1 - chance) ** (count - wanted)


def interval(hits, count, outside=0.025):
    """The interval of Clopper and Pearson."""
    def first(is_enough):
        low, high = 0.0, 1.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (low, middle) if is_enough(middle) else (middle, high)
        return high
    upper = 1.0 if hits == count else first(lambda chance: sum(binomial(count, chance, below) for below in range(hits + 1)) <= outside)
    lower = 0.0 if hits == 0 else first(lambda chance: sum(binomial(count, chance, above) for above in range(hits, count + 1)) >= outside)
    return lower, upper


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(dest="verb", required=True)
    verbs.add_parser("list")
    for verb, count, clients, rate in (("nothing", 40, 6_000, 500), ("harm", 5, 12_000, 100), ("ramp", 3, 30_000, 500)):
        one = verbs.add_parser(verb)
        one.add_argument("--weir", required=True)
        one.add_argument("--runs", type=int, default=count)
        one.add_argument("--clients", type=int, default=clients, help="clients that the judge counts, at most")
        one.add_argument("--rate", type=float, default=rate, help="clients that arrive in a second")
        one.add_argument("--jobs", type=int, default=4)
        one.add_argument("--seed", type=int, default=1)
        one.add_argument("--share", default="50%")
        one.add_argument("--pause", default="15s")
        one.add_argument("--only", type=lambda text: text.split(","))
        one.add_argument("--words", type=str.split, default=["--look", "15s"])
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
