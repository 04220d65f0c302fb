"""Vulnerabilities of the resolver: replies of a hostile name server."""
import struct
import threading
import time

import wire
from row import Row
from target import need

SERVER = """resolver <dns>; resolver_timeout 1s;
server { listen 127.0.0.1:<port>; <alive>
    location / { set $name victim.test; proxy_pass http://$name:<port>/alive; } }"""


def ask(target, times=3):
    """Requests that make the server resolve a name."""
    for _ in range(times):
        answer = target.get("/", patience=4)
        need(answer.status in (204, 502, 503, 504), f"status {answer.status}")


def far_pointer(question, _):
    """A CNAME whose name is a pointer beyond byte 255."""
    pointer = b"\xc1\x10"
    short = wire.reply(question, (wire.CNAME, pointer))
    return [short + bytes(0x110 - len(short)) + b"\x01a\0" + b"z" * 200]


def pointer_to_end(question, _):
    """CNAMEs whose last label is followed by a pointer to the root, so that a dot has no room."""
    end = wire.after_question(question) - 5
    root = struct.pack("!H", 0xc000 | end)
    return [wire.reply(question, (wire.CNAME, bytes([length]) + b"a" * length + root)) for length in (7, 15, 23, 31, 63)]


def format_error(question, _):
    """FORMERR for a question that nobody asked, and then for the one that was asked."""
    foreign = bytes([question[0] ^ 0x55, question[1] ^ 0x55]) + question[2:]
    return [wire.reply(foreign, code=1), wire.reply(question, code=1)]


def half_cname(question, _):
    """A CNAME for the first name, and silence for the second."""
    return [wire.reply(question, (wire.CNAME, wire.name("second.test"), 1))] if wire.asked(question)[0] == "victim.test" else []


def many_at_once(target):
    """Several requests wait for one name; some clients leave while they wait, and the name expires."""

    def one(patience):
        try:
            target.get("/", patience=patience)
        except OSError:
            pass

    for all_of_them in ((4, 4, 4), (0.2, 4, 0.3, 4, 4)):
        waiting = [threading.Thread(target=one, args=(patience,)) for patience in all_of_them]
        for thread in waiting:
            thread.start()
            time.sleep(0.05)
        for thread in waiting:
            thread.join()
        # The names expire after a second.
        time.sleep(2.1)


def endless(question, target):
    """Each name is another name for the next one."""
    count = len(target.noted("dns"))
    return [wire.reply(question, (wire.CNAME, wire.name(f"n{count}.test")))]


def count_questions(target):
    ask(target, 1)
    count = len(target.noted("dns"))
    need(count < 250, f"one request made {count} questions")


def same_name(target):
    """The parts of one page resolve the same name at the same time."""
    for _ in range(5):
        answer = target.get("/page", patience=6)
        need(answer.status == 200, f"status {answer.status}")


def slow(question, _):
    time.sleep(0.15)
    return [wire.reply(question, (wire.A, bytes([127, 0, 0, 1]), 1)) if wire.asked(question)[1] == wire.A else wire.reply(question)]


def page(target):
    target.write("files/page", "<!--#include virtual='/'-->" * 8 + "<!--#include virtual='/other'-->" * 8)


WEIR = "a reader of DNS in safe Rust with bounds on pointers, names and CNAMEs"
ROWS = [
    Row("2011-4315", "resolver: buffer overflow by a pointer beyond byte 255", "0.6.18-1.1.7", WEIR, ask, http=SERVER, dns=far_pointer, release="1.1.7"),
    Row("2016-0742", "resolver: invalid pointer after a format error", "0.6.18-1.9.9", WEIR, ask, http=SERVER, dns=format_error, release="1.9.9"),
    Row("2016-0746", "resolver: use of freed memory after a CNAME", "0.6.18-1.9.9", WEIR, many_at_once, http=SERVER, dns=half_cname, release="1.9.9"),
    Row("2016-0747", "resolver: endless CNAMEs", "0.6.18-1.9.9", "a chain of CNAMEs has a bound", count_questions, http=SERVER, dns=endless, release="1.9.9", asan=False),
    Row("2021-23017", "resolver: a dot is written past a name", "0.6.18-1.20.0", WEIR, ask, http=SERVER, dns=pointer_to_end, release="1.20.0"),
    Row("2026-123634", "resolver: use of freed memory if parts of a page resolve one name", "0.6.18-1.31.8", "answers are shared by count", same_name, near=True,
        dns=slow, prepare=page, http="""resolver <dns>; resolver_timeout 2s;
server { listen 127.0.0.1:<port>; <alive> set $name victim.test;
    location = /page { root <dir>/files; ssi on; default_type text/html; }
    location / { proxy_pass http://$name:<port>/alive; } location /other { proxy_pass http://$name:<port>/alive; } }"""),
]
