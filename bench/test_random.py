"""The generator of random stacks, its truth and its arithmetic: `python3 -m unittest discover bench`."""

import argparse
import collections
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import random_faults
import random_remedies
import random_table
from random_binomial import interval
from random_faults import chosen, is_bound, proves
from random_kinds import HEALTHY_KINDS, KINDS, NAMED, UNNAMED
from random_stack import HEALTHY, POLICY, UNATTRIBUTED, Truth, compose
from random_table import classify, fractions

RULED = Truth(rules=frozenset({"B15"}))
UNRULED = Truth(has_rule=False, rules=frozenset({"B26"}))
SOUND = Truth(is_healthy=True)
QUIET = Truth(is_healthy=True, unsaid=frozenset({"B73"}))
WASTE = Truth(rules=frozenset({"B02"}), is_waste=True)
LIMITED = Truth(is_policy=True)
EDGES = {"n": "nginx", "w": "weir"}


def drawn(kinds):
    return [compose(seed, kind, EDGES[edge]) for kind in kinds for edge in kind.edges for seed in range(30)]


class Generator(unittest.TestCase):
    def test_by_halves_every_second_stack_is_sound(self):
        picked = [chosen(seed, KINDS, ["nginx", "weir"], is_half=True)[0] in HEALTHY_KINDS for seed in range(40)]
        self.assertEqual(picked, [True, False] * 20)

    def test_a_block_is_longer_where_the_rate_is_low(self):
        def block(*load):
            return random_faults.block_of(argparse.Namespace(load=list(load)), "1500ms")
        self.assertEqual((block("-R", "20"), block("-R", "200"), block("-c", "8")), ("6s", "1500ms", "1500ms"))

    def test_a_seed_gives_the_same_stack_and_another_seed_another(self):
        for kind in KINDS:
            edge = EDGES[kind.edges[0]]
            self.assertEqual(compose(7, kind, edge), compose(7, kind, edge))
        pool = next(kind for kind in KINDS if kind.name == "pool-untold")
        self.assertGreater(len({compose(seed, pool, "nginx").text + str(compose(seed, pool, "nginx").extra) for seed in range(20)}), 15)

    def test_seeds_in_turn_have_each_pair_as_often_as_its_weight(self):
        pairs = sum(kind.weight * len(kind.edges) for kind in KINDS)
        counts = collections.Counter((kind.name, edge) for kind, edge in (chosen(seed, KINDS, ["nginx", "weir"]) for seed in range(pairs)))
        self.assertEqual(counts, {(kind.name, EDGES[edge]): kind.weight for kind in KINDS for edge in kind.edges})

    def test_what_is_asked_of_one_kind_and_edge_alone_is_the_same_stack(self):
        kind, edge = chosen(123, KINDS, ["nginx", "weir"])
        again = chosen(123, [kind], [edge])
        self.assertEqual(again, (kind, edge))
        self.assertEqual(compose(123, *again), compose(123, kind, edge))

    def test_every_stack_has_a_load_and_a_truth_that_can_be_missed(self):
        for stack in drawn(KINDS):
            words = " ".join(stack.load)
            self.assertTrue("-c " in words or "@SCRIPT@" in words and "script" in stack.extra, stack.kind)
            self.assertEqual(stack.text.count("{"), stack.text.count("}"), stack.text)
            truth = stack.truth
            may_be_right = [truth.is_healthy, truth.is_policy, bool(truth.rules), not truth.has_rule]
            self.assertTrue(any(may_be_right), stack.kind)

    def test_kinds_are_sorted_by_whether_a_rule_was_written_for_them(self):
        self.assertTrue(all(stack.truth.has_rule and not stack.truth.is_healthy for stack in drawn(NAMED)))
        self.assertTrue(all(not stack.truth.has_rule for stack in drawn(UNNAMED)))
        self.assertTrue(all(stack.truth.is_healthy for stack in drawn(HEALTHY_KINDS)))
        names = [kind.name for kind in KINDS]
        self.assertEqual(len(names), len(set(names)))

    def test_a_rate_is_beyond_the_capacity_of_a_fault_and_below_that_of_none(self):
        checked = 0
        for stack in drawn(KINDS):
            if stack.capacity and "-R" in stack.load:
                rate = float(stack.load[stack.load.index("-R") + 1])
                checked += 1
                if stack.truth.is_healthy:
                    self.assertLess(rate, 0.5 * stack.capacity, stack)
                else:
                    self.assertGreaterEqual(rate, 1.4 * stack.capacity, stack)
        self.assertGreater(checked, 100)

    def test_pools_of_processes_apart_are_not_shared(self):
        pool = next(kind for kind in KINDS if kind.name == "pool-untold")
        several = [stack for stack in (compose(seed, pool, "weir") for seed in range(60)) if "3 servers" in stack.notes]
        apart = {stack.truth.rules for stack in several if "apart" in stack.notes}
        together = {stack.truth.rules for stack in several if "apart" not in stack.notes}
        self.assertEqual((apart, together), ({frozenset()}, {frozenset({"B26"})}))


class Classes(unittest.TestCase):
    def test_each_class_has_its_case(self):
        for truth, word, rule, expected in [
            (RULED, "SUSPECTED", "B15", "right"), (RULED, "PROVED", "B15", "right"), (RULED, "SHARED", "B15", "right"),
            (RULED, "SUSPECTED", "B19", "wrong"), (RULED, "PROVED", "B19", "wrongly PROVED"), (RULED, "SHARED", "B19", "wrongly PROVED"),
            (RULED, UNATTRIBUTED, None, "undecided"), (RULED, "no verdict", None, "undecided"), (RULED, HEALTHY, None, "missed"),
            (RULED, HEALTHY, "B15", "missed"), (RULED, POLICY, None, "wrong"), (RULED, "failed", None, "failed"),
            (UNRULED, UNATTRIBUTED, None, "right"), (UNRULED, "SUSPECTED", "B26", "right"), (UNRULED, "SUSPECTED", "B22", "wrong"),
            (UNRULED, "PROVED", "B22", "wrongly PROVED"), (UNRULED, HEALTHY, None, "missed"), (UNRULED, POLICY, None, "wrong"),
            (UNRULED, "no verdict", None, "undecided"),
            (SOUND, HEALTHY, None, "right"), (SOUND, HEALTHY, "B03", "right"), (SOUND, UNATTRIBUTED, None, "false alarm"),
            (SOUND, "SUSPECTED", "B20", "false alarm"), (SOUND, "PROVED", "B20", "wrongly PROVED"), (SOUND, "no verdict", None, "undecided"), (QUIET, HEALTHY, "B73", "false alarm"), (QUIET, HEALTHY, "B03", "right"),
            (WASTE, HEALTHY, "B02", "right"), (WASTE, "SUSPECTED", "B02", "right"), (WASTE, HEALTHY, "B03", "missed"), (WASTE, HEALTHY, None, "missed"),
            (LIMITED, POLICY, None, "right"), (LIMITED, UNATTRIBUTED, None, "undecided"), (LIMITED, "SUSPECTED", "B27", "wrong"),
            (LIMITED, "PROVED", "B27", "wrongly PROVED"), (LIMITED, HEALTHY, None, "missed"),
        ]:
            self.assertEqual(classify(truth, word, rule), expected, (truth, word, rule))

    def test_a_fault_that_did_not_limit_is_not_counted_against_the_verdict(self):
        def signals(answered, sent, offered=None, is_closed=False, statuses=None):
            load = {"answered": answered, "sent": sent, "offered": offered, "length_s": 2.0, "is_closed": is_closed, "incomplete": [],
                    "statuses": statuses or {"200": answered}}
            return {"load": load, "seconds": 2.0}
        self.assertTrue(is_bound(RULED, 100, signals(200, 300, 150)))
        self.assertFalse(is_bound(RULED, 100, signals(300, 300, 150)))
        # What was refused was not answered, whatever its status.
        self.assertTrue(is_bound(RULED, 100, signals(300, 300, 150, statuses={"200": 200, "429": 100})))
        self.assertTrue(is_bound(RULED, None, signals(300, 300, 150, statuses={"502": 300})))
        self.assertTrue(is_bound(RULED, 100, signals(210, 210, is_closed=True)))
        self.assertFalse(is_bound(RULED, 100, signals(60, 60, is_closed=True)))
        self.assertTrue(is_bound(SOUND, None, signals(100, 100, 50)))
        self.assertFalse(is_bound(SOUND, None, signals(80, 100, 50)))


class Sums(unittest.TestCase):
    rows = [{"kind": kind, "edge": "nginx", "class": name, "word": "SUSPECTED", "rule": "B15", "truth": "B15", "seed": 1, "notes": "", "load": "",
             "text": "", "seconds": 1.0, "findings": [], "capacity": None}
            for kind, name in [("app-quota", "right"), ("app-quota", "right"), ("app-quota", "wrong"), ("app-quota", "not bound"),
                               ("lock-sleep", "wrongly PROVED"), ("healthy", "false alarm"), ("healthy", "failed")]]

    def test_every_row_is_in_one_class(self):
        counts = fractions(self.rows)
        self.assertEqual((counts["right"], counts["wrong"], counts["not bound"], sum(counts.values())), (2, 1, 1, 7))

    def test_fractions_leave_out_what_is_not_the_verdicts_to_answer(self):
        text = random_table.totals(self.rows)
        self.assertIn("right 2 of 5, 40.0 % [5.3, 85.3]; wrong 1 of 5", text)
        self.assertRegex(text, r"with a rule +right 2 of 3, 66.7 % .*; wrong 1 of 3, .*; beside them 1 not bound\n")
        self.assertRegex(text, r"sound +right 0 of 1, .*; false alarm 1 of 1, .*; beside them 1 failed")
        self.assertRegex(random_table.table(self.rows), r"app-quota +nginx +B15 +2/3 ")

    def test_what_is_wanted_of_the_ledger_is_met_or_not(self):
        def row(kind, name, word, rule=None):
            return {**self.rows[0], "kind": kind, "class": name, "word": word, "rule": rule}
        good = [row("app-quota", "right", "PROVED", "B15")] * 60 + [row("healthy", "right", HEALTHY)] * 40
        self.assertEqual([line.split("  ")[0] for line in random_table.accepted(good).splitlines()], ["met"] * 4)
        # Of 59 proofs nobody knows.
        self.assertIn("not met  none wrongly PROVED", random_table.accepted(good[1:]))
        bad = good + [row("lock-sleep", "wrongly PROVED", "PROVED", "B22")] + [row("healthy", "false alarm", "SUSPECTED", "B20")] * 2
        self.assertEqual([line.split("  ")[0] for line in random_table.accepted(bad).splitlines()], ["met", "not met", "not met", "not met"])

    def test_remedies_are_counted_and_those_that_cannot_help_are_told(self):
        rows = [{**self.rows[0], "class": "right", "kind": kind, "remedy": remedy, "tried": tried} for kind, remedy, tried in [
            ("app-quota", "a larger quota for application origin0 (cpu.max)", None), ("app-quota", "a larger quota for the edge", None),
            ("app-quota", "a larger quota for application origin0", "does not help"), ("healthy", "x", None), ("app-quota", None, None)]]
        text = random_table.remedies(rows)
        self.assertIn("remedies: 4, 1 help, 2 cannot help, 1 unknown\n", text)
        self.assertIn("cannot help: app-quota of nginx (1), B15: a larger quota for the edge\n", text)
        self.assertIn("B15, tried: a larger quota for application", text)

    def test_a_wrong_one_is_told_with_the_command_that_repeats_it(self):
        options = argparse.Namespace(weir="target/debug/weir", block="2s", prove=True, noisy=False)
        text = random_table.report(self.rows, options)
        self.assertIn("--seed 1 --stacks 1 --only lock-sleep --edge nginx --block 2s --prove", text)
        self.assertLess(text.index("\nwrongly PROVED: "), text.index("\nfalse alarm: "))


class Intervals(unittest.TestCase):
    def test_they_are_those_of_clopper_and_pearson(self):
        for count, of, low, high in [(0, 60, 0, 0.0596), (60, 60, 0.9404, 1), (5, 10, 0.1871, 0.8129), (45, 48, 0.8280, 0.9869)]:
            self.assertAlmostEqual(interval(count, of)[0], low, 4)
            self.assertAlmostEqual(interval(count, of)[1], high, 4)
        self.assertEqual(interval(0, 0), (0.0, 1.0))


class Sessions(unittest.TestCase):
    def test_which_stacks_are_proved_depends_on_the_seed(self):
        options = argparse.Namespace(prove=False, prove_share=0.25)
        first = [proves(seed, options) for seed in range(400)]
        self.assertEqual(first, [proves(seed, options) for seed in range(400)])
        self.assertTrue(70 <= sum(first) <= 130, sum(first))
        self.assertTrue(all(proves(seed, argparse.Namespace(prove=True, prove_share=0.0)) for seed in range(40)))

    def test_a_file_has_its_rows_and_the_binaries_that_made_them(self):
        with tempfile.NamedTemporaryFile("w+", suffix=".jsonl") as file:
            file.write('{"binary": "weir 1, a"}\n{"seed": 1}\n\n{"binary": "weir 1, b"}\n{"seed": 2}\n')
            file.flush()
            self.assertEqual(random_faults.read(Path(file.name)), ([{"seed": 1}, {"seed": 2}], ["weir 1, a", "weir 1, b"]))
        self.assertEqual(random_faults.read(Path("/nowhere")), ([], []))


class Remedies(unittest.TestCase):
    def test_each_kind_with_a_rule_says_what_helps(self):
        for kind in NAMED:
            self.assertIn(kind.name, random_remedies.KNOWN)
            for edge in kind.edges:
                rules = compose(1, kind, EDGES[edge]).truth.rules
                self.assertTrue(rules <= set(random_remedies.KNOWN[kind.name]) | set(random_remedies.BESIDE), (kind.name, rules))
        self.assertTrue(set(random_remedies.KNOWN) <= {kind.name for kind in KINDS})

    def test_a_remedy_of_another_cause_cannot_help_and_a_try_is_believed(self):
        worth = random_remedies.worth
        self.assertEqual(worth("slots", "B05", "worker_connections 1024;   (descriptors)"), "helps")
        self.assertEqual(worth("slots", "B19", "more CPUs for the edge"), "cannot help")
        self.assertEqual(worth("slots", "B05", "worker_connections 1024;", "does not help"), "cannot help")
        self.assertEqual(worth("slots", "B05", "worker_connections 1024;", "not shown to help"), "helps")
        self.assertEqual(worth("lock-sleep", "B26", "measure the shared resource (a lock)"), "helps")
        self.assertEqual(worth("app-thread", "B26", "measure the shared resource (a lock)", is_right=False), "cannot help")


if __name__ == "__main__":
    unittest.main()
