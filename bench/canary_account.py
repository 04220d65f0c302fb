"""The promises about the configurations of answers while canaries begin and end, and the answers that break them."""

import collections
from dataclasses import dataclass


@dataclass
class Answer:
    """When a request was sent, when its answer was there, and the configuration of the answer."""

    place: str      # the connection and the client
    client: str
    sent: float
    got: float
    lane: str


@dataclass
class Round:
    """A canary: its configurations, its end, and the moments."""

    old: str
    new: str
    end: str          # promote, rollback or reload
    begun: float
    ready: float      # all workers throw its coin
    ordered: float    # its end was ordered
    settled: float

    @property
    def then(self):
        """The configuration after it."""
        return {"promote": self.new, "rollback": self.old, "reload": "old"}[self.end]


def judged(answers, rounds):
    """The answers that break a promise, as sentences."""
    problems, at = [], 0
    answers = sorted(answers, key=lambda answer: answer.sent)
    for place, one in enumerate(rounds):
        until = rounds[place + 1].begun if place + 1 < len(rounds) else float("inf")
        here = []
        while at < len(answers) and answers[at].sent < until:
            if answers[at].sent >= one.begun:
                here.append(answers[at])
            at += 1
        problems += of_round(here, one)
    return problems


def of_round(answers, one):
    """The problems of the answers of one round, in the order in which their requests were sent."""
    places, running = collections.defaultdict(list), collections.defaultdict(set)
    for answer in answers:
        places[answer.place].append(answer)
        if answer.sent >= one.ready and answer.got <= one.ordered:
            running[answer.client].add(answer.lane)
        if answer.sent >= one.settled and answer.lane != one.then:
            yield f"{one.new}: {answer.lane} instead of {one.then} after {one.end}: {answer}"
        if answer.lane not in (one.old, one.new, one.then):
            yield f"{one.new}: another configuration: {answer}"
    for client, lanes in running.items():
        if len(lanes) > 1:
            yield f"{one.new}: {client} had {sorted(lanes)} in one canary"
    if len(set().union(*running.values())) < 2:
        yield f"{one.new}: all clients had the same configuration"
    for name, of_place in places.items():
        for part, last in (([answer for answer in of_place if answer.got <= one.ordered], one.new), ([answer for answer in of_place if answer.sent >= one.ordered], one.then)):
            lanes = [answer.lane for answer in part]
            if lanes != sorted(lanes, key=lambda lane: lane == last):
                yield f"{one.new}: {name} went back: {lanes}"
