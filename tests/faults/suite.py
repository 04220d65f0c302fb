"""Runs the cases of one protocol against one edge, and judges what came of them."""

import asyncio
import re
import time

import client
import origin as origins
from play import BODY, CLOSED, HEAD, REASONS, RETRIED, TWO_PEERS, Play

# Cases under way at the same time.
TOGETHER = 24

ALL_WAYS = ("h1", "h2", "cache", "second", "post", "invalid")


class Result:
    """What one way of a case gave: the different outcomes, with the variants of each, and the faults found."""

    def __init__(self):
        self.outcomes, self.lines, self.faults, self.foreign = {}, {}, [], False


class Suite:
    """The cases of one protocol, each with its origin."""

    def __init__(self, protocol, speaker, cases, ways=ALL_WAYS, names=()):
        self.protocol, self.speaker, self.ways = protocol, speaker, ways
        self.cases = [case for case in cases if not names or any(name in f"{protocol}/{case.name}" for name in names)]
        assert len({case.name for case in cases}) == len(cases), "two cases have one name"

    def ways_of(self, case):
        ways = [way for way in self.ways if case.ways.get(way, "") is not None]
        if case.method != "GET":
            ways = [way for way in ways if way not in ("cache", "post")]
        return [way for way in ways if way in ("h1", "h2", "grpc")] if case.upload else ways

    async def run(self, edge):
        """Runs every case: the results by case and way."""
        self.pairs = [(case, origins.Origin(case, self.speaker)) for case in self.cases]
        for _, origin in self.pairs:
            await origin.start()
        second = await origins.second(self.speaker)
        self.second = second.sockets[0].getsockname()[1]
        await edge.start([self])
        room, results, started = asyncio.Semaphore(TOGETHER), {}, time.monotonic()

        async def guarded(case, origin):
            async with room:
                results[case.name] = await self.try_case(edge, case, origin)
        try:
            await asyncio.gather(*[guarded(case, origin) for case, origin in self.pairs])
            if edge.is_weir:
                await self.count(edge, results)
            lines = await edge.stop()
        finally:
            second.close()
            for _, origin in self.pairs:
                origin.close()
        self.read_log(edge, lines, results)
        self.seconds = time.monotonic() - started
        return results

    async def try_case(self, edge, case, origin):
        results = {}
        for way in self.ways_of(case):
            result = results[way] = Result()
            for variant in range(case.variants):
                await self.exchange(edge, case, origin, way, variant, result)
        return results

    async def exchange(self, edge, case, origin, way, variant, result):
        base = f"/{self.protocol}-{case.name}/{way}"
        path = f"{base}/{variant}"
        play = origin.play = Play(case, path, variant)
        caller = await (client.Http2.connect(edge.h2) if way in ("h2", "grpc") else client.Http1.connect(edge.port))
        method, upload = ("POST", case.upload or 5) if way in ("post", "grpc") else (case.method, case.upload)
        fields = [*case.fields, ("te", "trailers"), ("content-type", "application/grpc")] if way == "grpc" else case.fields
        outcome = await caller.ask(method, path, upload, fields, play.seen)
        play.answered.set()
        text = outcome.text(path, case.body)
        result.outcomes.setdefault(text, []).append(variant)
        expected = self.expected(case, way, variant)
        if edge.is_weir and text != expected:
            result.faults.append(f"variant {variant}: {text}, expected {expected}")
        if edge.is_weir and origin.hits.get(path, 0) > 1:
            result.faults.append(f"variant {variant}: the origin got the request {origin.hits[path]} times")
        if case.follows:
            await self.follow(edge, case, way, (base, variant), (caller, play, outcome), result)
        caller.close()
        if way == "cache" and case.follows:
            await self.again(edge, path, outcome, result)

    async def follow(self, edge, case, way, where, told, result):
        """The next clients, on another connection and on the same one: each must get its own answer."""
        (base, variant), (caller, play, _) = where, told
        if play.late is not None or any(getattr(step, "__name__", "") == "idle" for step in self.steps_of(case, variant)):
            for _ in range(1000):
                if play.late and play.late.is_set():
                    break
                await asyncio.sleep(0.005)
        others = [caller] if caller.is_open else []
        if way == "h1" or variant == 0:
            others.insert(0, await client.Http1.connect(edge.port))
        for number, other in enumerate(others):
            path = f"{base}/next-{variant}-{number}"
            text = (await other.ask("POST" if way == "grpc" else "GET", path, 0, ())).text(path, None)
            if text not in ("200 clean", "200 second"):
                # The client's own connection may end after a cut; a wrong answer may not come.
                if not (other is caller and text == "closed"):
                    result.faults.append(f"variant {variant}: the next client got {text}")
                    # An answer that belongs to nobody who asked for it, and not only a bad one.
                    result.foreign |= bool(re.match("200$|200 .*(body|cut)", text)) and "clean" not in text
            if other is not caller:
                other.close()

    def steps_of(self, case, variant):
        return [] if callable(case.steps) else case.steps

    async def again(self, edge, path, first, result):
        """The same once more through the cache: nothing of a cut answer may be stored."""
        caller = await client.Http1.connect(edge.port)
        outcome = await caller.ask("GET", path)
        caller.close()
        is_whole = first.status is not None and first.ending == "whole" and first.status < 500
        text = outcome.text(path, None)
        if text != "200 clean" and not (is_whole and outcome.body == first.body and outcome.ending == "whole"):
            result.faults.append(f"through the cache, the same again gave {text} {outcome.body[:40]}")
        if outcome.fields.get("x-cache") == "HIT" and not is_whole:
            result.faults.append("the cache stored an answer that is not whole")

    def log_of(self, case, variant):
        return (case.log(variant) if callable(case.log) else case.log) or None

    def expected(self, case, way, variant):
        text = case.of(case.expect, variant)
        if case.retried == "also a POST" and way == "post":
            return "200 second"
        if way in case.ways:
            return case.of(case.ways[way], variant)
        if way == "second" and self.is_retried(case, variant):
            return "200 second"
        if way == "invalid" and (self.is_retried(case, variant) or self.is_invalid(case, variant)):
            return "200 second"
        return text

    def is_retried(self, case, variant):
        """nginx's rule: a failure asks the next peer, a bad answer does not."""
        if case.retried is not None:
            return bool(case.retried)
        log = self.log_of(case, variant)
        return bool(log and case.of(case.expect, variant) in ("502", "504") and re.search(RETRIED, log))

    def is_invalid(self, case, variant):
        """The answer is invalid before any of it reached the client: `invalid_header` asks the next peer."""
        log = self.log_of(case, variant)
        return bool(log and case.of(case.expect, variant) == "502" and (HEAD in log or log.startswith("upstream sent")))

    def read_log(self, edge, lines, results):
        """Each failure has its line, and nothing else is an error."""
        for case in self.cases:
            for way, result in results[case.name].items():
                for variant in range(case.variants):
                    found = lines.get(f"/{self.protocol}-{case.name}/{way}/{variant}", [])
                    pattern = self.log_of(case, variant)
                    has = pattern is None or any(re.search(shape(pattern), line) for line in found)
                    words = sorted({re.sub(r".*?\d+#\d+: \*\d+ |, client:.*", "", line) for line in found if "[error]" in line or "[crit]" in line})
                    result.lines.setdefault("; ".join(words) or "nothing", []).append(variant)
                    if edge.is_weir and not has:
                        result.faults.append(f"variant {variant}: no line {pattern!r} in the log, but {words}")
                    if edge.is_weir and pattern is None and words:
                        result.faults.append(f"variant {variant}: unexpected in the log: {words}")
        for line in edge.text.splitlines():
            if "[alert]" in line or "[emerg]" in line or "panic" in line:
                next(iter(results.values()))[next(iter(self.ways))].faults.append(f"in the log: {line}")

    async def count(self, edge, results):
        """weir's counters: failed tries by reason for each upstream, failed requests for each case."""
        for attempt in range(30):
            faults = self.differences(edge.snapshot()["weir"], results)
            if not faults:
                return
            # A snapshot is made each second.
            await asyncio.sleep(0.2)
        for (case, way), text in faults:
            results[case.name][way].faults.append(text)

    def differences(self, weir, results):
        faults = []
        for case in self.cases:
            name, tries, failed = f"{self.protocol}-{case.name}", {}, 0
            for way in results[case.name]:
                for variant in range(case.variants):
                    log, outcome = self.log_of(case, variant), self.expected(case, way, variant)
                    # The client may have a whole body although the origin broke its answer off.
                    is_broken = bool(log) and BODY in log and bool(re.search(f"{CLOSED}|failed [(]", log))
                    failed += bool(re.match("50[24]|closed", outcome) or outcome.endswith("cut") or is_broken)
                    if re.match("50[24]", case.of(case.expect, variant)):
                        group = name + (".two" if way in TWO_PEERS else "")
                        reason = case.counted or reasons(log)
                        tries.setdefault(group, {}).setdefault(reason, 0)
                        tries[group][reason] += 1
            way = next(iter(results[case.name]))
            for group in (name, name + ".two"):
                told, expected = {}, tries.get(group, {})
                for peer in weir["upstreams"].get(group, []):
                    for reason, count in peer["fails"].items():
                        if not reason.startswith("http_"):
                            word = next((words for words in expected if reason in words.split("|")), reason)
                            told[word] = told.get(word, 0) + count
                if told != expected:
                    faults.append(((case, way), f"counted for {group}: {told}, expected {expected}"))
            told = weir["location_zones"].get(name, {}).get("failed")
            if told != failed:
                faults.append(((case, way), f"failed requests counted for {name}: {told}, expected {failed}"))
        if weir.get("names_merged"):
            faults.append(((self.cases[0], "h1"), "names_merged is not 0"))
        return faults


def shape(pattern):
    """The pattern of a log line: `*` stands for any text, `|` separates alternatives."""
    return "|".join(".*".join(re.escape(piece) for piece in words.split("*")) for words in pattern.split("|"))


def reasons(log):
    """weir's word for a failed try with this line; several, if several lines are allowed."""
    found = [next((reason for pattern, reason in REASONS if re.search(pattern, words)), "other") for words in log.split("|")]
    return "|".join(sorted(set(found)))
