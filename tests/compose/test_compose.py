"""The composer's own tests: `python3 -m unittest discover tests/compose`. They need neither an edge nor a package."""
import dataclasses
import random
import sys
import unittest
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "answers")]

import answers
import compare
import draw
import families
import grammar
import judge
import pools
import reduce
import rules
from ask import Ask
from compare import Difference
from grammar import Statement
from trial import Case


def dice(seed=1):
    return grammar.Dice(random.Random(seed), pools.POOLS | {"animal": ["cat", "{dog|cow}"]})


class Grammar(unittest.TestCase):
    def test_a_template_gives_each_of_its_parts(self):
        one = dice()
        self.assertEqual({one.text("a {x|y{1|2}} <animal>") for _ in range(300)}, {f"a {part} {animal}" for part in ("x", "y1", "y2") for animal in ("cat", "dog", "cow")})

    def test_a_weight_makes_a_part_frequent(self):
        one = dice()
        self.assertGreater([one.text("{a*9|b}") for _ in range(200)].count("a"), 150)

    def test_the_name_of_a_group_in_a_regular_expression_is_no_pool(self):
        self.assertEqual(dice().text("~^/q/(?<nm>x)"), "~^/q/(?<nm>x)")

    def test_the_prefix_stands_only_at_the_beginning_of_a_word(self):
        self.assertEqual(dice().text("P_cache P_zone $P_x XP_y", "fastcgi"), "fastcgi_cache fastcgi_zone $P_x XP_y")

    def test_a_sheet_has_shares_and_blocks(self):
        lines = grammar.sheet("a 1 ~30\nb :\n    c\n    d ~5\ne")
        self.assertEqual([(line.template, line.share) for line in lines], [("a 1", 30), ("b", 100), ("e", 100)])
        self.assertEqual([(line.template, line.share) for line in lines[1].block], [("c", 100), ("d", 5)])

    def test_an_indentation_that_fits_nowhere_is_an_error(self):
        with self.assertRaises(ValueError):
            grammar.sheet("    a\n  b")

    def test_a_written_line_knows_its_statement(self):
        tree = (Statement("a"), Statement("b", (Statement("c"), Statement("d", ()))))
        lines = list(grammar.written(tree))
        self.assertEqual([line.strip() for line, _ in lines], ["a;", "b {", "c;", "d {", "}", "}"])
        for line, place in lines:
            if line.strip() != "}":
                self.assertEqual(grammar.at(tree, place).text, line.strip().rstrip(";{ "))

    def test_statements_are_left_out_and_replaced_by_their_place(self):
        tree = (Statement("a"), Statement("b", (Statement("c"), Statement("d"))))
        self.assertEqual(grammar.text(grammar.without(tree, {(0,), (1, 1)})), "b {\n    c;\n}\n")
        self.assertEqual(grammar.text(grammar.replaced(tree, (1, 0), Statement("x"))), "a;\nb {\n    x;\n    d;\n}\n")
        self.assertEqual(grammar.text(grammar.only(tree, lambda one: one.name != "d")), "a;\nb {\n    c;\n}\n")


class Drawing(unittest.TestCase):
    def test_a_seed_gives_the_same_case_and_another_seed_another(self):
        self.assertEqual(draw.draw(7), draw.draw(7))
        self.assertEqual(len({grammar.text(draw.draw(seed)[0]) for seed in range(30)}), 30)

    def test_every_family_is_drawn_and_may_stand_somewhere(self):
        seen = set()
        for seed in range(150):
            seen |= {family.name for family in draw.Composer(seed).families}
        self.assertEqual(seen, {family.name for family in families.ALL})
        for family in families.ALL:
            self.assertLessEqual(set(family.at.split()), {"http", "server", "location", "if"}, family.name)

    def test_every_handler_and_every_way_is_drawn(self):
        words, ways = set(), set()
        for seed in range(150):
            tree, asks = draw.draw(seed)
            words |= {statement.name for statement in grammar.walk(tree)}
            ways |= {ask.way for ask in asks}
        self.assertLessEqual({"proxy_pass", "fastcgi_pass", "uwsgi_pass", "scgi_pass", "grpc_pass", "memcached_pass", "mp4", "flv", "dav_methods", "mirror", "auth_request", "limit_req", "slice", "ssi", "userid_name", "stream"}, words)
        self.assertEqual(ways, {"plain", "h2c", "tls", "h2", "h3", "proxied"})

    def test_a_request_takes_only_a_way_that_the_file_has(self):
        for seed in range(60):
            tree, asks = draw.draw(seed)
            self.assertLessEqual({ask.way for ask in asks}, set(draw.ways(grammar.text(tree))))

    def test_the_kit_keeps_only_what_is_used(self):
        kit = dice().statements(grammar.sheet("map $a $b :\n    default $c\nmap $x $c :\n    default 1\nmap $x $d :\n    default 1\nupstream u :\n    server s\nproxy_cache_path p keys_zone=z:1m"))
        self.assertEqual([one.text for one in draw.used(kit, "return 200 $b;")], ["map $a $b", "map $x $c"])
        self.assertEqual([one.text for one in draw.used(kit, "proxy_pass http://u; proxy_cache z;")], ["upstream u", "proxy_cache_path p keys_zone=z:1m"])

    def test_a_request_survives_its_file(self):
        for ask in draw.draw(3)[1]:
            self.assertEqual(Ask.load(ask.dump()), ask)


class Origin(unittest.TestCase):
    def test_a_request_chooses_its_answer(self):
        self.assertEqual(answers.answer("GET", "/p?o=404", {}, b"")[0], "404 Not Found")
        self.assertEqual(answers.answer("GET", "/p", {"x-o": "503"}, b"")[0], "503 Service Unavailable")
        self.assertEqual(answers.answer("GET", "/auth?o=404", {"x-a": "403"}, b"")[0], "403 Forbidden")
        self.assertEqual(answers.answer("GET", "/auth", {}, b"")[0], "204 No Content")

    def test_every_name_of_the_pools_is_an_answer(self):
        self.assertLessEqual({*pools.ORDINARY, *pools.RARE}, set(answers.ANSWERS))

    def test_a_range_is_a_part_of_the_whole(self):
        status, fields, body, _ = answers.answer("GET", "/p?o=range", {"range": "bytes=5-8"}, b"")
        self.assertEqual((status, body), ("206 Partial Content", answers.BIG[5:9]))
        self.assertIn(("Content-Range", f"bytes 5-8/{len(answers.BIG)}"), fields)


def said(**more):
    """What one side says of a case with one request."""
    answer = {"status": "HTTP/1.1 200 OK", "headers": [("Content-Type", "text/plain")], "body": b"hello", "before": [], "trailers": "", "end": "kept", "pieces": ""} | more.pop("answer", {})
    seen = {"at": "one", "line": "GET / HTTP/1.1", "headers": [("Host", "x")], "body": ""} | more.pop("seen", {})
    line = {"status": "200", "uri": "/"} | more.pop("line", {})
    return {"answers": [answer], "seen": {"0": [seen]}, "log": {"0": [line]}, "errors": {"levels": {}, "broken": [], "lines": []}, "files": {"kept": [], "cached": [], "sessions": []}, "died": False, "streams": []} | more


class Judge(unittest.TestCase):
    def kinds(self, nginx=None, weir=None, ask=None, text=""):
        return [one.kind for one in judge.compared(text, [ask or Ask()], nginx or said(), weir or said()) if one.rule is None]

    def test_equal_sides_have_no_difference(self):
        self.assertEqual(self.kinds(), [])

    def test_each_part_of_an_answer_can_differ(self):
        for change, kind in (({"status": "HTTP/1.1 404 Not Found"}, "status: 200 -> 404"), ({"headers": []}, "field content-type: x -> -"), ({"body": b"other"}, "body"), ({"trailers": "X: 1"}, "trailers: - -> x"),
                             ({"end": "cut short"}, "end: kept -> cut short"), ({"before": ["HTTP/1.1 103 Early Hints"]}, "interim answers: [] -> 103")):
            self.assertEqual(self.kinds(weir=said(answer=change)), [kind])
        body = {"body": b"first piece of one"}
        self.assertEqual(self.kinds(said(answer=body), said(answer={**body, "pieces": "all pieces at the end"})), ["pieces:  -> all pieces at the end"])

    def test_pieces_of_a_copy_are_not_compared(self):
        self.assertEqual(self.kinds(weir=said(answer={"pieces": "all pieces at the end"})), [])

    def test_the_lengths_of_another_body_have_its_reason(self):
        page, cut = b"shor", b"short"
        nginx, weir = (said(answer={"body": body, "headers": [("Content-Length", str(len(body)))]}, line={"body_bytes_sent": str(len(body)), "uri": "/"}, seen={"line": "GET /?o=short HTTP/1.1"}) for body in (page, cut))
        self.assertEqual(self.kinds(nginx, weir), [])
        weir["answers"][0]["headers"] = [("Content-Length", "99")]
        self.assertEqual(self.kinds(nginx, weir), ["field content-length: x -> x"])

    def test_each_part_of_a_request_at_the_origin_can_differ(self):
        for change, kind in (({"line": "GET /x HTTP/1.1"}, "origin: request line"), ({"at": "two"}, "origin: request line"), ({"headers": []}, "origin: field host: x -> -"), ({"body": "b"}, "origin: body")):
            self.assertEqual(self.kinds(weir=said(seen=change)), [kind])
        fewer = said()
        fewer["seen"] = {}
        self.assertEqual(self.kinds(weir=fewer), ["number of requests at origins: fewer from weir"])
        self.assertEqual(self.kinds(nginx=fewer), ["number of requests at origins: more from weir"])

    def test_log_files_and_process_can_differ(self):
        self.assertEqual(self.kinds(weir=said(line={"status": "000"})), ["log: status: 200 -> 000"])
        self.assertEqual(self.kinds(weir=said(line={"uri": ""})), ["log: uri: x -> -"])
        self.assertEqual(self.kinds(weir=said(log={})), ["log: number of lines: x -> -"])
        self.assertEqual(self.kinds(weir=said(died=True)), ["died: False -> True"])
        self.assertEqual(self.kinds(weir=said(errors={"levels": {"alert": 1}, "broken": [], "lines": ["[alert] x"]})), ["error log: alert: - -> x"])
        self.assertEqual(self.kinds(weir=said(errors={"levels": {}, "broken": ["panicked"], "lines": []})), ["error log: broken: - -> x"])
        self.assertEqual(self.kinds(weir=said(files={"kept": [("dav/a", "x", "0o600")], "cached": [], "sessions": []})), ["files: kept"])
        self.assertEqual(self.kinds(weir=said(files={"kept": [], "cached": ["0" * 32], "sessions": []})), ["files: cached"])

    def test_variants_of_a_cache_may_have_other_names(self):
        self.assertEqual(self.kinds(nginx=said(files={"kept": [], "cached": ["1" * 32], "sessions": []}), weir=said(files={"kept": [], "cached": ["0" * 32], "sessions": []})), [])

    def test_the_verdict_is_named_without_its_place(self):
        found = judge.verdict(None, 'nginx: [emerg] "x" directive is duplicate in /tmp/a/nginx.conf:3\n   3 | x;')
        self.assertEqual((found.nginx, found.weir), ("taken", '"x" directive is duplicate'))

    def test_only_the_first_requests_that_differ_are_shown(self):
        found = [judge.Found(number, Difference("body", "a", "b"), None) for number in (1, 1, 4, 5, 9)] + [judge.Found(None, Difference("died", "a", "b"), None), judge.Found(0, Difference("body", "a", "b"), "rule")]
        self.assertEqual([one.number for one in judge.unexplained(found)], [1, 1, 4, 5, None])


class Rules(unittest.TestCase):
    def explained(self, difference, ask=None, nginx=None, weir=None, text=""):
        left, right = (judge.records(one or said(), 0, text) for one in (nginx, weir))
        return rules.rule(ask or Ask(), difference, left, right)

    def test_every_rule_has_its_own_name_and_a_reason(self):
        self.assertEqual(len({name for name, *_ in rules.RULES}), len(rules.RULES))
        self.assertTrue(all(len(reason) > 20 for _, reason, *_ in rules.RULES))

    def test_a_difference_without_a_reason_has_no_rule(self):
        for where in ("status", "body", "field x", "end", "log: status", "origin: body", "origin: request line", "number of requests at origins", "files: kept", "died", "verdict"):
            self.assertIsNone(self.explained(Difference(where, "1", "2")), where)

    def test_the_length_of_a_page_may_differ_by_the_name_alone(self):
        self.assertEqual(self.explained(Difference("log: body_bytes_sent", "151", "150")), "length of a page in the log")
        self.assertIsNone(self.explained(Difference("log: body_bytes_sent", "151", "140")))
        self.assertIsNone(self.explained(Difference("log: body_bytes_sent", "150", "151")))

    def test_only_the_framing_of_the_origin_may_add_bytes(self):
        where = "log: upstream_response_length"
        self.assertEqual(self.explained(Difference(where, "54, 9", "36, 9")), "length from the origin")
        for left, right in (("36", "54"), ("54", "36, 1"), ("-", "36")):
            self.assertIsNone(self.explained(Difference(where, left, right)))

    def test_an_answer_without_an_end_has_any_length(self):
        silent = said(answer={"status": "silence"})
        sent = Difference("log: body_bytes_sent", "9000", "5")
        self.assertEqual(self.explained(sent, None, silent, silent), "bytes before silence")
        self.assertIsNone(self.explained(sent, None, silent))

    def test_nginx_may_end_a_connection_of_http3_before_its_request(self):
        stuck = Difference("status", "silence", "HTTP/3 200")
        silent, answered = said(answer={"status": "silence"}), said(answer={"status": "HTTP/3 200"})
        for ask, text, name in (
            (Ask(way="h3"), "keepalive_timeout 0;", "no wait over QUIC"),
            (Ask(way="h3"), "keepalive_timeout 5s;", None),
            (Ask(way="h2"), "keepalive_timeout 0;", None),
        ):
            self.assertEqual(self.explained(stuck, ask, silent, answered, text=text), name)
        self.assertIsNone(self.explained(stuck, Ask(way="h3"), silent, silent, text="keepalive_timeout 0;"))

    def test_nginx_counts_a_request_while_it_lingers(self):
        page, text = said(answer={"status": "HTTP/1.1 503 X"}), "limit_conn one 1;"
        for before, name in ((Ask(body=b"a"), "limit while lingering"), (Ask(), None)):
            left, right = ({**judge.records(one, 0, text), "earlier": (before,)} for one in (page, said()))
            self.assertEqual(rules.rule(Ask(), Difference("status", "HTTP/1.1 503 X", "HTTP/1.1 200 OK"), left, right), name)

    def test_a_copy_may_come_with_the_next_request(self):
        lines = ("one: HEAD /m?o=302 HTTP/1.1", "one: GET /m?b=1 HTTP/1.1")
        for conf, earlier, name in (("mirror /m;", Ask(target="/?b=1"), "copy given up"), ("mirror /m;", Ask(target="/?b=2"), None), ("", Ask(target="/?b=1"), None)):
            left, right = ({**judge.records(said(seen={"line": line}), 0, conf), "earlier": (earlier,)} for line in lines)
            self.assertEqual(rules.rule(Ask(method="HEAD", target="/?o=302"), Difference("origin: request line", *lines), left, right), name)

    def test_a_rule_needs_its_condition(self):
        cached = "proxy_cache one;"
        hit = said(line={"upstream_cache_status": "HIT"})
        for where, values, text, ask, nginx, name in (
            ("log: sent_http_etag", ("", "x"), "set $a $sent_http_etag;", Ask(), said(), "first value"),
            ("log: sent_http_etag", ("", "x"), "", Ask(), said(), None),
            ("status", ("HTTP/1.1 200 OK", "HTTP/1.1 401 X"), "mirror /c;", Ask(), said(), None),
            ("field content-length", ("[]", "['5']"), cached, Ask(), hit, "length of a stored answer"),
            ("field content-length", ("[]", "['5']"), "", Ask(), said(), None),
            ("field accept-ranges", ("['bytes']", "[]"), "", Ask(method="POST"), said(), "range of a method"),
            ("field accept-ranges", ("['bytes']", "[]"), "", Ask(), said(), None),
            ("log: body_bytes_sent", ("171", "146"), "", Ask(expects=True), said(), "interim answer counted"),
            ("log: body_bytes_sent", ("171", "146"), "", Ask(), said(), None),
            ("origin: request line", ("one: GET /a b HTTP/1.1", "one: GET /a%20b HTTP/1.1"), "", Ask(), said(), "escaped target"),
            ("origin: request line", ("one: GET /a HTTP/1.1", "one: GET /b HTTP/1.1"), "", Ask(), said(), None),
            ("interim answers", ("[]", "['HTTP/2 :status: 103']"), "server {\n        early_hints $skip;\n}", Ask(way="h2"), said(), "hints"),
            ("interim answers", ("[]", "['HTTP/2 :status: 103']"), "server {\n    early_hints $skip;\n}", Ask(way="h2"), said(), None),
            ("field vary", ("['accept-encoding']", "['Accept-Encoding']"), "", Ask(way="h3"), said(), "Vary of the static table"),
            ("field vary", ("['accept-encoding', 'Accept-Encoding']", "['Accept-Encoding']"), "", Ask(way="h3"), said(), "Vary of the static table"),
            ("field vary", ("['accept-encoding', 'X-U']", "['Accept-Encoding']"), "", Ask(way="h3"), said(answer={"headers": [("Vary", "X-U")]}), None),
            ("end", ("reset", "ended"), "post_action /p; limit_req_status 444;", Ask(way="h3"), said(), "log after post_action"),
            ("end", ("reset", "ended"), "post_action /p;", Ask(way="h3"), said(), None),
            ("status", ("closed", "HTTP/3 502"), "access_log off; # garbage", Ask(way="h3"), said(answer={"status": "closed"}, log={"0": []}), "no HTTP"),
            ("status", ("closed", "HTTP/3 502"), "# garbage", Ask(way="h3"), said(answer={"status": "closed"}), None),
            ("field set-cookie", ("['c=a']", "[]"), "sticky cookie c;", Ask(), said(answer={"status": "HTTP/1.1 502 X"}, line={"upstream_status": "502"}), "cookie without an answer"),
            ("field set-cookie", ("['c=a']", "[]"), "sticky cookie c;", Ask(), said(), None),
            ("status", ("closed", "HTTP/3 200"), "", Ask(way="h3"), said(answer={"status": "closed", "malformed": "Header b'a' value ends with whitespace"}), "whitespace around a value"),
            ("status", ("closed", "HTTP/3 200"), "", Ask(way="h3"), said(answer={"status": "closed"}), None),
            ("log: body_bytes_sent", ("240", "233"), "", Ask(way="h3"), said(), "framing"),
            ("log: body_bytes_sent", ("240", "233"), "", Ask(way="h2"), said(), None),
            ("log: body_bytes_sent", ("233", "240"), "", Ask(way="h3"), said(), None),
            ("origin: body", ("", "a=1"), "set $a $request_body;", Ask(body=b"a=1"), said(), "body in a text"),
            ("origin: body", ("", "a=2"), "set $a $request_body;", Ask(body=b"a=1"), said(), None),
            ("origin: request line", ("one: GET / HTTP/1.1", "two: GET / HTTP/1.1"), "hash $request_body;", Ask(body=b"a=1"), said(), "body in a text"),
            ("origin: request line", ("one: GET / HTTP/1.1", "two: GET / HTTP/1.1"), "hash $request_body;", Ask(), said(), None),
            ("pieces", ("all pieces at the end", "each piece by itself"), "", Ask(), said(), "earlier piece"),
            ("pieces", ("each piece by itself", "all pieces at the end"), "", Ask(), said(), None),
            ("trailers", ("X-T1: 103", "X-T1: 200"), "add_trailer X-T1 $upstream_status;", Ask(), said(), "interim status"),
            ("trailers", ("X-T1: 103", "X-T1: 204"), "add_trailer X-T1 $upstream_status;", Ask(), said(), None),
            ("trailers", ("X-T1: 1st", "X-T1: 200"), "mirror /c; set $one 1st; add_trailer X-T1 $one;", Ask(), said(), "variable of a copy"),
            ("trailers", ("X-T1: 1st", "X-T1: 200"), "set $one 1st; add_trailer X-T1 $one;", Ask(), said(), None),
            ("field x-h3", ("['x1st']", "['x204']"), "mirror /c; set $one 1st; add_header X-H3 x$one;", Ask(), said(), "variable of a copy"),
            ("field x-h3", ("['x1st']", "['y204']"), "mirror /c; set $one 1st; add_header X-H3 x$one;", Ask(), said(), None),
            ("log: number of lines", ("['/a']", "[]"), "if ($request_body ~ a) { } proxy_cache z;", Ask(body=b"a=1"), said(), "body in a text"),
            ("log: number of lines", ("['/a']", "[]"), "if ($request_body ~ a) { } proxy_cache z;", Ask(), said(), None),
            ("field expires", ("['13:29:00']", "['13:28:58']"), "", Ask(), said(), "moment"),
            ("field expires", ("['13:29:00']", "['13:24:00']"), "", Ask(), said(), None),
            ("origin: body", ("", "a=1"), "mp4;\nerror_page 404 /c;", Ask(body=b"a=1"), said(), "body before a film"),
            ("origin: body", ("", "a=1"), "mp4;\nerror_page 404 /c;", Ask(method="POST", body=b"a=1"), said(), None),
            ("log: upstream_status", ("502 : 504", "502, 502 : 504"), "", Ask(), said(line={"upstream_addr": "backed : 127.0.0.1:9003"}), "last resort"),
            ("log: upstream_status", ("502 : 504", "502, 502 : 504"), "", Ask(), said(line={"upstream_addr": "127.0.0.1:9001 : 127.0.0.1:9003"}), None),
            ("origin: field x-v", ("[' ']", "['']"), "", Ask(), said(), None),
            ("log: remote_addr", ("127.0.0.1", "10.1.1.9"), "set $a $remote_addr; set_real_ip_from all;", Ask(), said(), "first value"),
            ("log: remote_addr", ("127.0.0.1", "10.1.1.9"), "set_real_ip_from all;", Ask(), said(), None),
            ("log: upstream_response_length", ("0", "1024"), "slice 1k;", Ask(method="HEAD"), said(), "part of a HEAD"),
            ("log: upstream_response_length", ("0", "1024"), "slice 1k;", Ask(), said(), None),
            ("log: request_completion", ("", "OK"), "limit_rate 9;", Ask(), said(), "end of a slow answer"),
            ("log: request_completion", ("", "OK"), "", Ask(), said(), None),
            ("log: request_completion", ("OK", ""), "limit_rate 9;", Ask(), said(), None),
            ("origin: field transfer-encoding", ("[]", "['chunked']"), "", Ask(body=b"a", is_chunked=True), said(), "length of a body that comes"),
            ("origin: field transfer-encoding", ("[]", "['chunked']"), "", Ask(body=b"a"), said(), None),
            ("log: status", ("009", "502"), "log_subrequest on; # garbage", Ask(), said(), "no HTTP"),
            ("log: status", ("009", "502"), "# garbage", Ask(), said(), None),
            ("body", ("a", "b"), "mirror /c; if ($invalid_referer) { } if ($invalid_referer) { }", Ask(), said(), "variable of a copy"),
            ("body", ("a", "b"), "mirror /c; if ($invalid_referer) { }", Ask(), said(), None),
            ("origin: request line", ("one: GET /c HTTP/1.1", "two: GET /auth HTTP/1.1"), "mirror /auth; mirror_request_body off; client_max_body_size 1k;", Ask(body=b"a"), said(), "body of a subrequest"),
            ("origin: request line", ("one: GET /c HTTP/1.1", "two: GET /auth HTTP/1.1"), "mirror /auth; client_max_body_size 1k;", Ask(body=b"a"), said(), None),
            ("log: status", ("000", "404"), "auth_request /a; scgi_cache z;", Ask(target="/?o=short"), said(), "cut check"),
            ("log: status", ("000", "404"), "auth_request /a;", Ask(target="/?o=short"), said(), None),
            ("origin: body", ("-ax", "x" * 300 + "… 303"), 'proxy_set_body "$request_body-ax";', Ask(body=b"x" * 300), said(), "body in a text"),
            ("origin: body", ("-ax", "x" * 300 + "… 310"), 'proxy_set_body "$request_body-ax";', Ask(body=b"x" * 300), said(), None),
            ("trailers", ("X-T2: 404-", "X-T2: -"), "add_before_body /p; add_trailer X-T2 $two-$http2;", Ask(target="/?a=404"), said(), "moment of a trailer"),
            ("trailers", ("X-T2: 404-", "X-T2: -"), "add_before_body /p; add_trailer X-T2 $two-$http2;", Ask(target="/?a=5"), said(), None),
        ):
            self.assertEqual(self.explained(Difference(where, *values), ask, nginx, text=text), name, (where, values, text))

    def test_a_rule_compares_the_bodies(self):
        slices = {"headers": [("Range", "bytes=0-9")]}
        for where, values, text, nginx, weir, name in (
            ("log: status", ("200", "206"), "error_page 404 =200 /a;", {"status": "HTTP/1.1 206 X"}, {"status": "HTTP/1.1 206 X"}, "status in the log"),
            ("log: status", ("200", "206"), "error_page 404 =200 /a;", {"status": "HTTP/1.1 200 X"}, {"status": "HTTP/1.1 206 X"}, None),
            ("body", ("\xd4 foo", "? foo"), "source_charset koi8-r; charset_map koi8-r utf-8 {", {"body": b"\xd4 foo"}, {"body": b"? foo"}, "unmapped characters"),
            ("body", ("\xd4 foo", "? bar"), "source_charset koi8-r; charset_map koi8-r utf-8 {", {"body": b"\xd4 foo"}, {"body": b"? bar"}, None),
            ("end", ("kept", "cut short"), "fastcgi_keep_conn on;", {}, {"end": "cut short"}, None),
            ("end", ("closed", "cut short"), "lingering_close off;", {"end": "closed"}, {"end": "cut short"}, None),
            ("body", ("", "one"), 'return 200 "$proxy_host";', {"body": b""}, {"body": b"one"}, None),
        ):
            self.assertEqual(self.explained(Difference(where, *values), Ask(), said(answer=nginx), said(answer=weir, seen=slices), text), name, (where, values, text))

    def test_a_part_of_an_answer_is_a_part_of_it(self):
        big = "".join(f"{number:06} line\n" for number in range(300)).encode()
        part, whole = {"status": "HTTP/1.1 206 Partial Content"}, {}
        ask = Ask(fields=(("Host", "x"), ("Range", "bytes=-7")))
        for kind, theirs, ours, text, name in (
            (whole, big[:1024] + big[-7:], big, "slice 1k;", "slice without ranges"),
            (whole, big[:1024] + b"another", big, "slice 1k;", None),
            (part, big[:900], big[:2000], "slice 1k; add_trailer X a;", "slices and trailers"),
            (part, big[:900], big[:2000], "slice 1k;", None),
            (part, big[9:900], big[:2000], "slice 1k; add_trailer X a;", None),
        ):
            difference = Difference("body", "", "")
            self.assertEqual(self.explained(difference, ask, said(answer={"body": theirs, **kind}), said(answer={"body": ours, **kind}), text), name, (kind, text))

    def test_a_failed_subrequest_is_no_answer_of_the_location(self):
        page = {"status": "HTTP/1.1 500 X", "body": b"<h1>500 Internal Server Error</h1>"}
        difference = Difference("field connection", "['close']", "['keep-alive']")
        text = "auth_request /a; client_max_body_size 9;"
        ask = Ask(method="POST", body=b"x" * 99)
        self.assertEqual(self.explained(difference, ask, said(answer=page) | {"seen": {}}, said(), text), "body of a subrequest")
        self.assertIsNone(self.explained(difference, ask, said(answer=page), said(), text))
        self.assertIsNone(self.explained(difference, Ask(), said(answer=page) | {"seen": {}}, said(), text))
        left = Difference("body", "", "")
        bad = said(answer={"body": b"one <h1>502 Bad Gateway</h1>"}, errors={"told": ["no live upstreams"], "levels": {}, "broken": [], "lines": []})
        self.assertEqual(self.explained(left, Ask(), bad, said(), "ssi on;"), "last resort")
        self.assertIsNone(self.explained(left, Ask(), said(answer={"body": b"one <h1>502 Bad Gateway</h1>"}), said(), "ssi on;"))

    def test_a_reason_in_the_same_request_is_the_reason_of_the_state(self):
        # Another status explains another number of requests, and from then on the turns of a group differ.
        text = "slice 4k; upstream u {\n}\n"
        asks = [Ask(method="PUT", fields=(("Host", "x"), ("Range", "bytes=0-9"))), Ask()]
        def side(status, lines, peer):
            one, two = ({"at": at, "line": line, "headers": [], "body": ""} for at, line in (("one", "PUT / HTTP/1.1"), (peer, "GET / HTTP/1.1")))
            base = said(answer={"status": status})
            return {**base, "answers": [base["answers"][0], said()["answers"][0]], "seen": {"0": [one] * lines, "1": [two]}, "log": {"0": base["log"]["0"], "1": base["log"]["0"]}}
        nginx, weir = side("HTTP/1.1 206 X", 1, "two"), side("HTTP/1.1 200 OK", 3, "one")
        self.assertEqual({(one.number, one.rule) for one in judge.compared(text, asks, nginx, weir)}, {(0, "range of a method"), (1, "other turn")})
        self.assertIn((1, None), {(one.number, one.rule) for one in judge.compared(text, [Ask(), Ask()], nginx, weir)})

    def test_a_rule_about_a_cache_needs_its_proof(self):
        def of(difference, ask=None, text="proxy_cache one;", nginx=None, weir=None, **more):
            left, right = (judge.records(one or said(), 0, text, [ask or Ask()]) | more for one in (nginx, weir))
            return rules.rule(ask or Ask(), difference, left, right)
        hit, miss = said(line={"upstream_cache_status": "HIT"}), said(line={"upstream_cache_status": "MISS"})
        status = Difference("log: upstream_cache_status", "HIT", "MISS")
        before = [Ask(method="POST", target="/a?b=1")]
        self.assertEqual(of(status, Ask(target="/a"), nginx=hit, weir=miss, earlier=before), "unsafe method")
        self.assertIsNone(of(status, Ask(target="/other"), nginx=hit, weir=miss, earlier=before))
        self.assertIsNone(of(status, Ask(target="/a"), nginx=hit, weir=miss, earlier=[Ask(target="/a")]))
        files = Difference("files: cached", "['k/a', 'k/b']", "['0']")
        self.assertEqual(of(files, asks=before), "unsafe method")
        self.assertIsNone(of(Difference("files: cached", "['k/c']", "[]"), asks=before))
        used = Difference("log: upstream_cache_status", "", "MISS")
        self.assertEqual(of(used, weir=miss, told=["is not enough for cache key"]), "small buffer")
        self.assertIsNone(of(used, weir=miss))
        part = {"status": "HTTP/1.1 206 Partial Content"}
        kept = [said(answer=part, line={"upstream_cache_status": state}) for state in ("HIT", "MISS")]
        self.assertEqual(of(status, nginx=kept[0], weir=kept[1]), "part kept")
        self.assertIsNone(of(status, nginx=hit, weir=miss))
        stuck = Difference("status", "silence", "HTTP/1.1 200 OK")
        silent = said(answer={"status": "silence"})
        self.assertEqual(of(stuck, text="slice 4k; add_before_body /a;", nginx=silent, told=["http finalize non-active request"]), "slice with a subrequest")
        self.assertIsNone(of(stuck, text="slice 4k; add_before_body /a;", nginx=silent))
        self.assertEqual(of(Difference("status", "HTTP/1.1 304 X", "HTTP/1.1 200 OK"), Ask(method="POST")), "condition of a method")
        self.assertIsNone(of(Difference("status", "HTTP/1.1 304 X", "HTTP/1.1 200 OK")))
        page = said(line={"uri": "/err"})
        refusal = "satisfy any; error_page 500 /err;"
        self.assertEqual(of(Difference("status", "HTTP/1.1 403 X", "HTTP/1.1 404 X"), text=refusal, nginx=page), "earlier refusal")
        # A client that only weir lets in is a difference.
        self.assertIsNone(of(Difference("status", "HTTP/1.1 403 X", "HTTP/1.1 200 OK"), text=refusal, nginx=page))
        method = Difference("origin: field REQUEST_METHOD", "['POST']", "['GET']")
        self.assertEqual(of(method, Ask(method="POST"), text="mirror /c;"), "method of a copy")
        self.assertIsNone(of(method, Ask(method="PUT"), text="mirror /c;"))
        self.assertIsNone(of(method, Ask(method="POST"), text=""))
        tag = Difference("field etag", "['\"6b0b930e-4e20\"']", "['\"6b0b930b-4e20\"']")
        put = [Ask(method="PUT")]
        self.assertEqual(of(tag, text="dav_methods PUT;", earlier=put), "moment of a file")
        self.assertIsNone(of(Difference("field etag", "['\"6b0b930e-4e20\"']", "['\"6b0b930b-1\"']"), text="dav_methods PUT;", earlier=put))

        asked = Ask(method="POST", body=b"a=1")
        keyed = "proxy_request_buffering off; proxy_cache one; proxy_cache_key $request_body;"
        answered = Difference("field x-from", "['o']", "[]")
        self.assertEqual(of(answered, asked, keyed, hit, miss), "key of an unread body")
        self.assertIsNone(of(answered, Ask(), keyed, hit, miss))
        self.assertIsNone(of(answered, asked, keyed, miss, hit))
        limited = Difference("log: limit_req_status", "PASSED", "REJECTED")
        self.assertEqual(of(limited, text="limit_req zone=a;", is_other_limit=True), "other limit")
        self.assertIsNone(of(limited, text="limit_req zone=a;"))
        users = ["differ between users, so weir no longer shares them"]
        self.assertEqual(of(Difference("files: cached", "['k/a']", "[]"), told=users), "answers of users")
        self.assertIsNone(of(Difference("files: cached", "['k/a']", "[]")))
        large = Difference("status", "HTTP/1.1 413 X", "HTTP/1.1 200 OK")
        self.assertEqual(of(large, Ask(target="/a?o=accel", body=b"x" * 99), "client_max_body_size 9;", weir=said(seen={"body": "x"})), "page of a large body")
        self.assertIsNone(of(large, Ask(target="/a", body=b"x" * 99), "client_max_body_size 9;", weir=said(seen={"body": "x"})))

    def test_a_file_that_no_difference_explains_is_a_difference(self):
        def found(nginx, weir, text, told=()):
            files = lambda names, keys: {"kept": [], "cached": names, "keys": keys, "sessions": []}  # noqa: E731
            one = said(files=files(*nginx), errors={"told": list(told), "levels": {}, "broken": [], "lines": []})
            return [(one.difference.nginx, one.rule) for one in judge.compared(text, [Ask()], one, said(files=files(*weir)))]
        self.assertEqual(found((["1"], {"1": "k/a"}), ([], {}), "proxy_cache one;"), [("['k/a']", None)])
        self.assertEqual(found(([], {}), (["1"], {}), "proxy_cache one;"), [("[]", None)])
        self.assertEqual(found(([], {}), (["1"], {}), "proxy_cache one;", ["is not enough for cache key"]), [("[]", "small buffer")])

    def test_a_moment_of_the_origin_is_compared_as_it_came(self):
        answers = [said(answer={"headers": [("Date", f"Sat, 28 Nov 2026 22:00:0{second} GMT"), ("Expires", moment)]}) for second, moment in ((0, "Tue, 14 Nov 2028 22:13:20 GMT"), (9, "Tue, 14 Nov 2028 22:13:20 GMT"), (9, "Tue, 14 Nov 2028 22:14:20 GMT"))]
        self.assertEqual(judge.compared("", [Ask()], answers[0], answers[1]), [])
        self.assertEqual([one.kind for one in judge.compared("", [Ask()], answers[0], answers[2])], ["field expires: x -> x"])

    def test_a_later_request_may_find_another_state_only_after_a_reason(self):
        hit = said(line={"upstream_cache_status": "HIT"})
        left, right = judge.records(hit, 0, "proxy_cache one;", [Ask()]), judge.records(said(), 0, "proxy_cache one;", [Ask()])
        difference = Difference("status", "HTTP/1.1 200 OK", "HTTP/1.1 404 X")
        self.assertIsNone(rules.rule(Ask(), difference, left, right))
        self.assertEqual(rules.rule(Ask(), difference, {**left, "is_other_state": True}, right), "other state")
        # Caches that keep the same answers are in the same state.
        for one in (left, right):
            one["answer"] = {**one["answer"], "stored": [["a", 1]]}
        self.assertIsNone(rules.rule(Ask(), difference, {**left, "is_other_state": True}, right))
        right["answer"]["stored"] = [["a", 2]]
        self.assertEqual(rules.rule(Ask(), difference, {**left, "is_other_state": True}, right), "other state")

    def test_the_number_of_a_client_is_not_compared(self):
        self.assertEqual(compare.headers({"headers": [("Set-Cookie", "uid=CgACBl9ZXjgnYwXaAwMEAg==; path=/")], "body": b""})["set-cookie"], ["uid=CLIENT; path=/"])


class Reduction(unittest.TestCase):
    """The minimiser with a difference that is made up: it needs statements and requests, and nothing else."""

    TREE = (Statement("a"), Statement("b one two three"), Statement("server", (Statement("c"), Statement("location /", (Statement("d"), Statement("e"))), Statement("f"))), Statement("g", (Statement("h"),)))

    def reduced(self, holds, asks, number=None, tries=400):
        reducer = reduce.Reducer(holds, tries)
        return reducer.reduced(Case(self.TREE, asks), number), reducer

    def test_only_what_the_difference_needs_is_left(self):
        asks = tuple(Ask(target=f"/{number}", method="POST", body=b"long body", fields=(("Host", "x"), ("X-A", "1")), way="h2") for number in range(9))

        def holds(case):
            text = grammar.text(case.tree)
            return "d;" in text and "b " in text and "two" in text and [ask.target for ask in case.asks if ask.target in ("/2", "/7")] == ["/2", "/7"] and case.asks[-1].method == "POST"
        small, _ = self.reduced(holds, asks, 7)
        self.assertEqual(grammar.text(small.tree), "b two;\nserver {\n    location / {\n        d;\n    }\n}\n")
        self.assertEqual([(ask.target, ask.method, ask.body, ask.way, ask.fields) for ask in small.asks], [("/2", "GET", None, "plain", (("Host", "x"),)), ("/7", "POST", None, "plain", (("Host", "x"),))])

    def test_a_difference_that_needs_everything_stays_whole(self):
        asks = (Ask(target="/1"), Ask(target="/2"))
        whole = Case(self.TREE, asks)
        small, _ = self.reduced(lambda case: case == whole, asks, 1)
        self.assertEqual(small, whole)

    def test_the_tries_have_an_end(self):
        count = []
        _, reducer = self.reduced(lambda case: bool(count.append(1)), tuple(Ask(target=f"/{number}") for number in range(9)), 8, tries=10)
        self.assertEqual((len(count), reducer.left), (10, 0))

    def test_the_first_requests_can_be_the_needed_ones(self):
        asks = tuple(Ask(target=f"/{number}") for number in range(9))
        small, _ = self.reduced(lambda case: any(ask.target == "/0" for ask in case.asks) and any(ask.target == "/8" for ask in case.asks), asks, 8)
        self.assertEqual([ask.target for ask in small.asks], ["/0", "/8"])


class Wire(unittest.TestCase):
    def test_a_case_is_compared_with_its_own_kind_only(self):
        one = judge.Found(0, Difference("status", "HTTP/1.1 200 OK", "HTTP/1.1 500 X"), None)
        self.assertEqual(one.kind, "status: 200 -> 500")
        self.assertNotEqual(one.kind, dataclasses.replace(one, difference=Difference("status", "HTTP/1.1 200 OK", "HTTP/1.1 502 X")).kind)


if __name__ == "__main__":
    unittest.main()
