"""The bench's own arithmetic and readers: `python3 -m unittest discover bench`."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import canary
import canary_account
import instructions
import loads
import peers
import proc
import rings
import run
import stats


class Stats(unittest.TestCase):
    def test_ratio_pairs_by_round(self):
        # Round 3 has no partner. Unpaired, the medians would give 2.0.
        ratio = stats.ratio({0: 10, 1: 40, 2: 90, 3: 1000}, {0: 20, 1: 20, 2: 30})
        self.assertEqual((ratio.median, ratio.below, ratio.rounds), (2.0, 1, 3))
        self.assertEqual((ratio.low, ratio.high), (0.5, 3.0))

    def test_the_quarter_of_few_rounds_is_the_smallest(self):
        self.assertEqual([stats.quarter(values) for values in ([7], [9, 5, 8, 6], [8, 1, 7, 2, 6, 3, 5, 4])], [7, 5, 2])

    def test_no_common_round_gives_no_ratio(self):
        self.assertIsNone(stats.ratio({0: 1.0}, {1: 1.0}))
        self.assertIsNone(stats.ratio({0: 1.0}, {0: 0}))

    def test_an_interval_holds_its_median_and_repeats(self):
        ours = {n: 10 + n % 3 for n in range(9)}
        theirs = {n: 10 + n % 2 for n in range(9)}
        ratio = stats.ratio(ours, theirs)
        self.assertLessEqual(ratio.low, ratio.median)
        self.assertLessEqual(ratio.median, ratio.high)
        self.assertEqual(ratio, stats.ratio(ours, theirs))

    def test_the_first_quiet_run_counts_else_the_least_disturbed(self):
        taken = iter([0.5, 0.1, 0.0])
        self.assertEqual(stats.quietest(taken, lambda share: share, 0.2), 0.1)
        self.assertEqual(next(taken), 0.0, "no further run was made")
        self.assertEqual(stats.quietest([0.5, 0.3, 0.4], lambda share: share, 0.2), 0.3)
        self.assertIsNone(stats.quietest([], lambda share: share, 0.2))


class Handshakes(unittest.TestCase):
    def test_s_time_tells_connections_or_stopped(self):
        said = "812 connections in 0.81s; 1002.47 connections/user sec, bytes read 1118124\n812 connections in 4 real seconds, 1377 bytes read per connection\n"
        self.assertEqual(loads.parse_s_time(said), {"requests": 812, "errors": 0})
        self.assertEqual(loads.parse_s_time("ERROR\n"), {"requests": 0, "errors": 1})

    def test_peers_that_speak_tls_take_part(self):
        secure = loads.named("tls-full")
        taking_part = {peer.name for peer in peers.all_peers("/bin/true", False) if loads.takes_part(secure, peer)}
        self.assertLessEqual({"weir"}, taking_part)
        self.assertFalse({"floor", "varnish", "weir-tuned"} & taking_part)


class Callgrind(unittest.TestCase):
    def test_the_sum_of_a_file_and_none_of_a_cut_one(self):
        self.assertEqual(instructions.parse_callgrind("events: Ir\nfn=(1) main\n+1 5\ntotals: 42270\n"), {"Ir": 42270})
        self.assertEqual(instructions.parse_callgrind("events: Ir\nsummary: 7\nfn=(1) main\n"), {"Ir": 7})
        self.assertEqual(instructions.parse_callgrind("events: Ir\nfn=(1) main\n+1 5\n"), {})
        self.assertEqual(instructions.parse_callgrind("events: Ir I1mr\ntotals: 9 2\n"), {"Ir": 9, "I1mr": 2})

    def test_each_instruction_of_the_program_itself_is_counted(self):
        text = "ob=/bin/weir\nfn=main\n0x40 1 7\ncalls=3 0x90 1\n0x44 1 900\n0x48 1 3\nob=/lib/libc.so.6\nfn=read\n0x40 1 5\n"
        self.assertEqual(instructions.executed(text, "target/weir"), {("main", 0x40): 7, ("main", 0x48): 3})


class Wrk(unittest.TestCase):
    def test_requests_and_every_kind_of_error(self):
        clean = "  213148 requests in 2.01s, 227.71MB read\nRequests/sec: 106625.21\n"
        self.assertEqual(loads.parse_wrk(clean), {"requests": 213148, "errors": 0})
        bad = clean + "  Socket errors: connect 1, read 20, write 300, timeout 4000\n  Non-2xx or 3xx responses: 50000\n"
        self.assertEqual(loads.parse_wrk(bad), {"requests": 213148, "errors": 54321})

    def test_h2load_tells_what_failed(self):
        text = ("requests: 2000 total, 2000 started, 2000 done, 1990 succeeded, 10 failed, 0 errored, 0 timeout\n"
                "status codes: 1990 2xx, 0 3xx, 0 4xx, 10 5xx\n")
        self.assertEqual(loads.parse_h2load(text), {"requests": 1990, "errors": 10})
        self.assertEqual(loads.parse_h2load("")["errors"], 2)

    def test_no_output_is_no_requests(self):
        self.assertEqual(loads.parse_wrk("unable to connect")["requests"], 0)


class Proc(unittest.TestCase):
    def test_work_done_here_is_seen(self):
        before, count = proc.cpu(os.getpid()), 0
        while proc.cpu(os.getpid()).total_ns == before.total_ns and count < 10_000:
            count += 1
        self.assertGreater(proc.cpu(os.getpid()).since(before).total_ns, 0)

    def test_a_child_belongs_to_the_tree(self):
        child = os.fork()
        if child == 0:
            os.execvp("sleep", ["sleep", "60"])
        try:
            self.assertIn(child, proc.tree(os.getpid()))
            self.assertGreater(proc.rss_kib(os.getpid()), 0)
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)

    def test_a_process_that_is_gone_has_used_nothing(self):
        self.assertEqual(proc.cpu(2**22 + 1), proc.Cpu(0, 0, 0))


class Rings(unittest.TestCase):
    def test_each_load_meets_one_and_two_workers_and_two_share_the_cores(self):
        names = [row.name for row in rings.rows()]
        self.assertEqual(len(names), 12)
        self.assertEqual(sorted(names), sorted(set(names)))
        self.assertTrue(all(row.load.shared == (row.workers == 2) for row in rings.rows()))
        self.assertEqual({row.load.load_cores for row in rings.rows()}, {"1", "0,1"})

    def test_a_line_compares_within_rounds(self):
        one = {"machine_us": 20.0, "user_share": 0.1, "foreign": 0.0, "p50_us": 150, "p99_us": 400}
        base = {"0": one | {"value": 10.0}, "1": one | {"value": 20.0}}
        runs = {"0": one | {"value": 5.0}, "1": one | {"value": 10.0, "foreign": 0.5}}
        text = rings.line(runs, base)
        self.assertIn("0.50 [0.50 0.50] 2/2", text)
        self.assertIn("5.0..10.0", text)
        self.assertIn("(1 disturbed)", text)
        self.assertIn("0.15    0.40", text)


class Pick(unittest.TestCase):
    def test_names_choose_and_a_wrong_one_is_named(self):
        self.assertEqual([w.name for w in run.pick(loads.WORKLOADS, ["ws", "1m"], "workload")], ["1m", "ws"])
        with self.assertRaisesRegex(SystemExit, 'no workload "1g"'):
            run.pick(loads.WORKLOADS, ["1g"], "workload")


class Canaries(unittest.TestCase):
    def test_the_interval_is_that_of_clopper_and_pearson(self):
        for hits, count, low, high in [(0, 40, 0, 0.0881), (1, 40, 0.0006, 0.1316), (40, 40, 0.9119, 1)]:
            found = canary.interval(hits, count)
            self.assertAlmostEqual(found[0], low, 3)
            self.assertAlmostEqual(found[1], high, 3)

    def test_a_client_that_goes_back_or_stays_is_found(self):
        one = canary_account.Round("a", "b", "rollback", 0, 10, 20, 30)

        def problems(*lanes):
            # A second client has the new configuration all the time.
            answers = [canary_account.Answer("x", "x", sent, sent + 1, lane) for sent, lane in lanes]
            return canary_account.judged(answers + [canary_account.Answer("y", "y", 12, 13, "b"), canary_account.Answer("z", "z", 12, 13, "a")], [one])

        self.assertEqual(problems((1, "a"), (2, "b"), (12, "b"), (21, "b"), (22, "a"), (31, "a")), [])
        self.assertIn("b: x went back", problems((1, "b"), (2, "a"))[0])
        self.assertIn("had ['a', 'b'] in one canary", problems((12, "a"), (13, "b"))[0])
        self.assertIn("b instead of a", problems((31, "b"))[0])
        self.assertIn("another configuration", problems((1, "c"))[0])
        self.assertIn("b: x went back", problems((21, "a"), (22, "b"))[0])


if __name__ == "__main__":
    unittest.main()
