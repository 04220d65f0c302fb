#!/usr/bin/env python3
"""Compares the words that weir and nginx take: each directive of nginx, in each block, once, twice, and with many values.

    tests/words.py --weir BIN --nginx BIN --source CHECKOUT [--only NAME,NAME] [--kind once,twice,value,count] [--each] [--all]

The directives, their blocks, the functions that read them and the words of their lists come from nginx's source. Each
case is a file, which `nginx -t` and `weir edge -t` read. The verdicts must agree, but for the rows of words/reasons.py;
a row that no case needs is an error too. The program prints the cases that differ and exits with 1 if there are any.
One function reads a directive's arguments in each block of a module, so values and numbers of arguments are tried in the
innermost such block; `--each` tries them in every block. `--verdicts FILE` keeps nginx's verdicts for the next run.
`--all` prints also the directives that no file can test, because nginx refuses the arguments of this program.

nginx binds the addresses of a file that it tests: each process of this program has a port of its own.
"""

import argparse
import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import ports
from words import arguments, reasons

COMMAND = re.compile(r'\{\s*ngx_string\("([a-z0-9_]+)"\),\s*((?:NGX_[A-Z0-9_]+\s*\|?\s*)+),'
                     r"\s*([a-zA-Z0-9_]+),\s*([^,]*),\s*([^,]*(?:\([^)]*\))?),\s*([^}]*?)\s*\}", re.S)
ENUM = re.compile(r"ngx_conf_(?:enum|bitmask)_t\s+(\w+)\[\]\s*=\s*\{(.*?)\n\};", re.S)
WORD = re.compile(r'ngx_string\("([^"]+)"\)')

# A block, the flag of nginx's source, the module's prefix, and the file around the statements.
BLOCKS = {
    "main": ("NGX_MAIN_CONF", "", "{D} events {{}}"),
    "events": ("NGX_EVENT_CONF", "", "events {{ {D} }}"),
    "http": ("NGX_HTTP_MAIN_CONF", "", "events {{}} http {{ {before} {D} server {{ listen 127.0.0.1:{port}; {after} }} }}"),
    "server": ("NGX_HTTP_SRV_CONF", "", "events {{}} http {{ {before} server {{ listen 127.0.0.1:{port}; {D} {after} }} }}"),
    "location": ("NGX_HTTP_LOC_CONF", "", "events {{}} http {{ {before} server {{ listen 127.0.0.1:{port}; location / {{ {D} {after} }} }} }}"),
    "if in server": ("NGX_HTTP_SIF_CONF", "", "events {{}} http {{ {before} server {{ listen 127.0.0.1:{port}; if ($args) {{ {D} }} }} }}"),
    "if": ("NGX_HTTP_LIF_CONF", "", "events {{}} http {{ {before} server {{ listen 127.0.0.1:{port}; location / {{ if ($args) {{ {D} }} }} }} }}"),
    "limit_except": ("NGX_HTTP_LMT_CONF", "", "events {{}} http {{ {before} server {{ listen 127.0.0.1:{port}; location / {{ limit_except GET {{ {D} }} }} }} }}"),
    "upstream": ("NGX_HTTP_UPS_CONF", "", "events {{}} http {{ {before} upstream u {{ {server_first} {D} {server_last} }} server {{ listen 127.0.0.1:{port}; }} }}"),
    "stream": ("NGX_STREAM_MAIN_CONF", "", "events {{}} stream {{ {before} {D} server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:1; }} }}"),
    "stream server": ("NGX_STREAM_SRV_CONF", "", "events {{}} stream {{ {before} server {{ listen 127.0.0.1:{port}; {D} {answer} }} }}"),
    "stream upstream": ("NGX_STREAM_UPS_CONF", "", "events {{}} stream {{ {before} upstream u {{ {server_first} {D} {server_last} }} server {{ listen 127.0.0.1:{port}; proxy_pass 127.0.0.1:1; }} }}"),
}

# Blocks whose directives have the same readers, the innermost last; and blocks that add none to them.
ALIKE = [("http", "server", "location"), ("stream", "stream server")]
REST = ("if in server", "if", "limit_except")

NUMBERS = ["0", "1", "7", "007", "-1", "+1", "1.5", "x", "", "1k", "2147483647", "2147483648", "4294967296",
           "9223372036854775807", "9223372036854775808", "18446744073709551616"]
SIZES = ["0", "1", "1k", "1K", "1m", "1M", "1g", "1G", "1t", "1kb", "k", "-1", "1 k", "x", "", "1.5k", "2147483648", "4g",
         "9223372036854775807", "9223372036854775808", "8589934592g", "9007199254740992k"]
TIMES = ["0", "1", "1s", "1ms", "500ms", "1m", "1M", "1h", "1d", "1w", "1y", "1h30m", "1h 30m", "30m 1h", "1s 1s", "1x", "s",
         "", "-1", "1.5s", "1 s", "1s ", "100y", "99999d", "1071906480m", "2147483648", "292277026596y", "9223372036854775807",
         "9223372036854775808", "9223372036854775s", "9223372036854776s", "9223372036854775807ms"]
VALUES = {
    "ngx_conf_set_flag_slot": ["on", "off", "ON", "Off", "yes", "1", "true", "", "on off"],
    "ngx_conf_set_num_slot": NUMBERS,
    "ngx_conf_set_size_slot": SIZES,
    "ngx_conf_set_off_slot": SIZES,
    "ngx_conf_set_msec_slot": TIMES,
    "ngx_conf_set_sec_slot": TIMES,
    "ngx_conf_set_bufs_slot": ["4 8k", "0 8k", "4 0", "1 1", "x 8k", "4 x", "-1 8k", "4 8kb", "4", "4 8k 1", "99999999999 4k"],
    "ngx_conf_set_access_slot": ["user:rw", "user:rw group:r", "user:rw group:rw all:r", "user:x", "all:rw", "user", "rw",
                                 "user:r", "group:", "user:rwx", "owner:rw"],
}
USUAL = {
    "ngx_conf_set_flag_slot": "on", "ngx_conf_set_num_slot": "1", "ngx_conf_set_size_slot": "32k", "ngx_conf_set_off_slot": "32k",
    "ngx_conf_set_msec_slot": "1s", "ngx_conf_set_sec_slot": "1s", "ngx_conf_set_bufs_slot": "8 8k",
    "ngx_conf_set_access_slot": "user:rw",
}


class Command:
    def __init__(self, module, name, flags, reader, words):
        self.module, self.name, self.flags, self.reader, self.words = module, name, flags, reader, words
        self.is_block = "NGX_CONF_BLOCK" in flags

    def usual(self):
        """Arguments that nginx takes."""
        if self.name in arguments.USUAL:
            return arguments.USUAL[self.name]
        if self.words:
            return self.words[0]
        return USUAL.get(self.reader, "" if "NGX_CONF_NOARGS" in self.flags else "a")

    def values(self):
        """Arguments to compare: of the kind of the directive, and of its own."""
        words = [*self.words, *(word.upper() for word in self.words), "nonsense", " ".join(self.words), "\"\""]
        return [*VALUES.get(self.reader, words if self.words else []), *arguments.VALUES.get(self.name, [])]


def commands(source):
    """The directives of nginx's source that a file can hold."""
    found = []
    for path in sorted(pathlib.Path(source, "src").rglob("*.c")):
        if path.parent.name in ("mail", "perl") or "win32" in str(path):
            continue
        text = path.read_text(errors="replace")
        lists = {name: WORD.findall(body) for name, body in ENUM.findall(text)}
        for name, flags, reader, _, _, post in COMMAND.findall(text):
            module = "stream" if path.parent.name == "stream" else "http" if path.parent.parent.name == "http" or path.parent.name == "http" else "core"
            words = lists.get(post.split(",")[-1].strip("& \n"), []) if reader in ("ngx_conf_set_enum_slot", "ngx_conf_set_bitmask_slot") else []
            found.append(Command(module, name, re.sub(r"\s", "", flags).split("|"), reader, words))
    return found


def blocks(command):
    """The blocks in which the directive may stand, by nginx's source."""
    for block, (flag, _, text) in BLOCKS.items():
        if flag in command.flags and ("NGX_DIRECT_CONF" not in command.flags or block == "main"):
            yield block, text


def of_arguments(command):
    """The blocks in which arguments are tried: of those that one module reads alike, the innermost."""
    found = {}
    for block, _ in blocks(command):
        alike = next((row for row in ALIKE if block in row), (block,))
        if block not in REST:
            found[alike] = block
    return set(found.values())


def statement(command, words):
    tail = f" {{ {arguments.INSIDE.get(command.name, '')} }}" if command.is_block else ";"
    return f"{command.name} {words}{tail}".replace("  ", " ")


def cases(found, kinds, is_each=False):
    """(kind, name, block, words, file)."""
    for command in found:
        if command.name in arguments.LEFT_OUT:
            continue
        tried = of_arguments(command)
        for block, text in blocks(command):
            has_arguments = is_each or block in tried or not tried
            around = arguments.AROUND.get((command.name, block), arguments.AROUND.get(command.name, {}))
            usual = command.usual()
            if isinstance(usual, dict):
                usual = usual.get(block, usual[""])

            def file(statements):
                is_balancer = command.name in arguments.BALANCERS
                parts = {"before": "", "after": "", "answer": "" if command.name in ("return", "proxy_pass", "pass") else "return \"\";",
                         "server_first": "" if is_balancer else "server 127.0.0.1:1;",
                         "server_last": "server 127.0.0.1:2;" if is_balancer else "", **around}
                return lambda port, text=text, parts=parts: text.format(D=statements, port=port, **parts)

            once = statement(command, usual)
            if "once" in kinds:
                yield "once", command.name, block, usual, file(once)
            if "twice" in kinds:
                other = arguments.SECOND.get(command.name, usual)
                yield "twice", command.name, block, f"{usual} | {other}", file(once + " " + statement(command, other))
                if other != usual:
                    yield "twice", command.name, block, f"{usual} | {usual}", file(once + " " + once)
            if "count" in kinds and has_arguments:
                for words in ["", "a b c d e f g h i"]:
                    yield "count", command.name, block, words, file(statement(command, words))
            if "value" in kinds and has_arguments:
                for words in command.values():
                    quoted = words if words and not words.endswith(" ") else f"\"{words}\""
                    yield "value", command.name, block, quoted, file(statement(command, quoted))


class Tester:
    """A program that reads files; `known` has verdicts by text."""

    def __init__(self, binary, flags, root, known=None):
        self.binary, self.flags, self.root, self.known = binary, flags, root, known

    def says(self, text, number, port):
        key = text.replace(str(port), "PORT")
        if self.known is None or key not in self.known:
            told = self.tell(text, number)
            if self.known is None:
                return told
            self.known[key] = told
        return self.known[key]

    def tell(self, text, number):
        path = self.root / f"{number}.conf"
        path.write_text(text)
        command = [self.binary, *self.flags, "-t", "-q", "-p", str(self.root), "-e", str(self.root / f"{number}.log"), "-c", str(path)]
        run = subprocess.run(command, capture_output=True, text=True, timeout=60, errors="replace")
        path.unlink()
        lines = [line for line in run.stderr.splitlines() if "[emerg]" in line]
        return run.returncode == 0, (lines[0].split("[emerg]", 1)[1].strip() if lines else run.stderr.strip()[:200])


def compare(number, rows, nginx, weir, port):
    differ = []
    for kind, name, block, words, file in rows:
        text = file(port)
        its, said = nginx.says(text, number, port)
        ours, told = weir.says(text, number, port)
        differ.append((kind, name, block, words, its, said, ours, told))
        if number == 0 and len(differ) % 100 == 0:
            print(f"{len(differ)} of {len(rows)}", file=sys.stderr)
    return differ


def brief(rows):
    names = {}
    for kind, who, words, name in rows:
        names.setdefault((kind, who, words), set()).add(name)
    for (kind, who, words), which in sorted(names.items()):
        yield f"{kind}: {who} {words!r}: {' '.join(sorted(which))}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weir", required=True)
    parser.add_argument("--nginx", required=True)
    parser.add_argument("--source", required=True)
    parser.add_argument("--only", default="")
    parser.add_argument("--kind", default="once,twice,value,count")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--each", action="store_true", help="values and numbers of arguments in every block")
    parser.add_argument("--verdicts", type=pathlib.Path, help="a file that keeps nginx's verdicts")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--brief", action="store_true", help="one line for each set of words, with the directives that differ")
    args = parser.parse_args()
    found = commands(args.source)
    if args.only:
        found = [command for command in found if command.name in args.only.split(",")]
    rows = list(cases(found, args.kind.split(","), args.each))
    known = json.loads(args.verdicts.read_text()) if args.verdicts and args.verdicts.exists() else {} if args.verdicts else None
    workers = args.jobs
    with tempfile.TemporaryDirectory() as scratch:
        root = pathlib.Path(scratch)
        for folder in ("logs", "html"):
            (root / folder).mkdir()
        arguments.write_files(root)
        nginx, weir = Tester(args.nginx, [], root, known), Tester(args.weir, ["edge"], root)
        free = ports.free_ports(workers)
        with concurrent.futures.ThreadPoolExecutor(workers) as pool:
            parts = [pool.submit(compare, n, rows[n::workers], nginx, weir, free[n]) for n in range(workers)]
            told = [row for part in parts for row in part.result()]
    if args.verdicts:
        args.verdicts.write_text(json.dumps(known))
    needed, wrong, told_wrong = set(), [], []
    for kind, name, block, words, its, said, ours, ours_said in sorted(told, key=lambda row: row[:4]):
        if its == ours:
            if args.all and kind == "once" and not its:
                print(f"untested: {name} in {block}: {words!r}: {said}")
            continue
        reason = reasons.find(kind, name, block, words, its)
        needed.add(reason)
        if reason is None:
            told_wrong.append((kind, "nginx takes" if its else "weir takes", words, name))
            wrong.append(f"{kind}: {name} in {block}: {words!r}: nginx {'takes it' if its else said}, weir {'takes it' if ours else ours_said}")
    print("\n".join(brief(told_wrong) if args.brief else wrong))
    idle = [] if args.only or args.kind != "once,twice,value,count" else [row[4] for row in reasons.ROWS if row[4] not in needed]
    for row in idle:
        print(f"no case needs the reason: {row}")
    print(f"{len(found)} directives, {len(rows)} files, {len(wrong)} differences without a reason")
    sys.exit(1 if wrong or idle else 0)


if __name__ == "__main__":
    main()
