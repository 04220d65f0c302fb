#!/usr/bin/env python3
"""What one proxied exchange costs in user instructions: weir, nginx and the floor relay under callgrind.

    python3 bench/instructions.py --weir target/dist/weir [--only weir-tuned,floor] [--path /1k]
    python3 bench/instructions.py --weir target/dist/weir --cached      # a hit instead: the answer is in the peer's cache
    python3 bench/instructions.py --weir target/dist/weir --fastcgi     # "Hello, world" of PHP-FPM behind FastCGI
    python3 bench/instructions.py --weir target/dist/weir --tls         # clients speak TLS; valgrind has no AVX-512
    python3 bench/instructions.py --weir target/dist/weir --only weir --workers 1,2,4,8,16 [--atomics] [--servers 2]
    python3 bench/instructions.py --weir target/dist/weir --only weir --code

Time on a shared machine is noise; instructions are not. Each peer serves a short and a long run of wrk under
callgrind (Debian's `valgrind`); the difference of what they executed, divided by the difference of requests, is
one exchange, with starting, accepting and stopping taken off. The kernel's part is not in it: see `run.py` for that.

--atomics counts the instructions that lock memory, by function: memory that several workers write needs them. It does not
count how often such memory really goes from one core to another.

--code counts the memory of the peer's own code that an exchange runs, in lines of 64 bytes and pages of 4 KiB: a worker runs
most of it once in an exchange, the processor's first cache holds 32 KiB, and the kernel's code is there too.

--caches counts the lines that the processor's first caches would not have, of code and of data, by callgrind's simulation of
caches (--sizes). The kernel's code and data are not in it, so a real processor misses more.
"""

import argparse
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import loads
import peers
import protocols
from ports import free_ports

READY_SECONDS = 60          # valgrind starts a binary with debug information in seconds
CONNECTIONS = 64
LEAST_SHOWN = 0.01          # executions in an exchange
USUAL = 0.5                 # executions in an exchange: an instruction that is part of each
# Bytes, ways and bytes of a line, as callgrind wants them: code, data, the next cache for both. A Xeon of 2023.
SIZES = "32768,8,64 49152,12,64 2097152,16,64"


def main():
    args = arguments()
    for tool in ("valgrind", "wrk"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is needed: apt install {tool}")
    if args.fastcgi and not protocols.php_fpm():
        sys.exit("php-fpm is needed: apt install php-fpm")
    usual = ["floor", "nginx-tuned", "weir"] if args.cached else ["nginx", "weir"] if args.tls or args.fastcgi else ["floor", "nginx-tuned", "weir-tuned"]
    wanted = args.only.split(",") if args.only else usual
    what = "hit" if args.cached else "exchange over TLS" if args.tls else "exchange"
    print(f"user instructions of one {what}: {'PHP behind FastCGI' if args.fastcgi else f'GET {args.path}'}, {args.connections} connections kept, "
          f"a run of {args.short} s taken from one of {args.long} s")
    floor = None
    with tempfile.TemporaryDirectory(prefix="weir-instructions-") as work:
        for peer in [peer for peer in peers.all_peers(args.weir, None, args.nginx) if peer.name in wanted]:
            for workers in args.workers if peer.name != "floor" else [1]:
                events, counts = exchange(peer, args, Path(args.keep or work), workers)
                cost = events["Ir"]
                floor = cost if peer.name == "floor" else floor
                ratio = f"  {cost / floor:.2f} of the floor" if floor else ""
                many = f"  {workers} workers" if len(args.workers) > 1 else ""
                print(f"{peer.name:12} {cost:8.0f}{ratio}{many}", flush=True)
                if args.atomics:
                    show_atomics(counts, atomic_addresses(peer.program))
                if args.code:
                    show_code(counts)
                if args.caches:
                    show_caches(events)


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", help="the binary; left out without it")
    parser.add_argument("--nginx", help="the binary, for example of a checkout; else the one in PATH")
    parser.add_argument("--only", help="some peers, by run.py's names, separated by commas")
    parser.add_argument("--cached", action="store_true", help="out of the peer's cache, as run.py's hit-1k")
    parser.add_argument("--fastcgi", action="store_true", help="the origin is PHP-FPM, as protocols.py's php")
    parser.add_argument("--tls", action="store_true", help="clients speak TLS, as run.py's tls-1k")
    parser.add_argument("--header", action="append", default=[], help="a field of the request, such as 'Accept-Encoding: gzip'")
    parser.add_argument("--path", default="/1k", help="of floor's origin: /1k, /64k, /1m; /app has an application's fields")
    parser.add_argument("--connections", type=int, help=f"{CONNECTIONS}; with --fastcgi {protocols.CHILDREN}, one for each child")
    parser.add_argument("--workers", type=lambda text: [int(count) for count in text.split(",")], default=[1],
                        help="numbers of workers, such as 1,2,4,8,16: what grows with it, grows with the cores")
    parser.add_argument("--servers", type=int, default=1, help="lines `server` in the peer's group")
    parser.add_argument("--atomics", action="store_true", help="count the instructions that lock memory, too")
    parser.add_argument("--code", action="store_true", help="count the memory of the code that an exchange runs, too")
    parser.add_argument("--caches", action="store_true", help="count the misses of simulated caches, too")
    parser.add_argument("--sizes", default=SIZES, help="of the simulated caches: code, data, the next for both")
    parser.add_argument("--short", type=int, default=1, help="seconds of the short run")
    parser.add_argument("--long", type=int, default=4, help="seconds of the long run")
    parser.add_argument("--keep", help="a directory in which callgrind's files are left, for callgrind_annotate")
    args = parser.parse_args()
    args.connections = args.connections or (protocols.CHILDREN if args.fastcgi else CONNECTIONS)
    return args


def exchange(peer, args, work, workers):
    """Events of one exchange by callgrind's names, and how often it runs each instruction, by function and address: the long
    run's without the short one's."""
    (short, few, short_counts), (long, many, long_counts) = (
        run(peer, args, work / f"{peer.name}-{workers}-{seconds}", seconds, workers) for seconds in (args.short, args.long))
    return tuple({of: (count - less[of]) / (many - few) for of, count in more.items()}
                 for less, more in ((short, long), (short_counts, long_counts)))


def run(peer, args, work, seconds, workers):
    """All events of a peer, its children included, from start to stop; the requests it answered; the counts of each instruction."""
    shutil.rmtree(work, ignore_errors=True)
    (work / "logs").mkdir(parents=True)
    for directory in (work, work.parent):
        directory.chmod(0o777)      # nginx's worker is nobody, and writes a file of its own
    listen, origin = (f"127.0.0.1:{port}" for port in free_ports(2))
    with protocols.Php(work) if args.fastcgi else peers.start_origin(origin, work):
        process = start(peer, args, work, listen, origin, workers)
        try:
            await_listener(listen, process)
            requests = load(listen, args.path, seconds, args.connections, args.header, args.tls)
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(READY_SECONDS)
    texts = [file.read_text(errors="replace") for file in work.glob("callgrind.out.*")]
    counts, events = Counter(), Counter()
    for text in texts:
        events.update(parse_callgrind(text))
        if is_exact(args):
            counts.update(executed(text, peer.program))
    return events, requests, counts


def is_exact(args):
    return args.atomics or args.code


def start(peer, args, work, listen, origin, workers):
    source, peer_argv = peer.set_up(args.cached, args.tls)
    if args.fastcgi:
        conf = protocols.written(work, work, {name: listen.rpartition(":")[2] if name == "http" else port for name, port in protocols.PORTS.items()})
    else:
        conf = peers.written(source, work, listen, origin, work, servers=args.servers) if source else None
    if conf:
        conf.write_text(conf.read_text().replace("worker_processes 1;", f"worker_processes {workers};"))
    values = dict(program=peer.program, conf=conf, prefix=f"{work}/", listen=listen, origin=origin)
    # valgrind makes system calls of its own, which the keeper's restrictions of its server refuse.
    alone = peers.ALONE if peer.name.startswith("weir") else ()
    argv = [part.format(**values) for part in (*peer_argv, *alone)]
    with open(work / "output.log", "ab") as log:
        more = ["--dump-instr=yes", "--compress-pos=no", "--compress-strings=no"] if is_exact(args) else []
        if args.caches:
            more += ["--cache-sim=yes", *(f"--{name}={size}" for name, size in zip(("I1", "D1", "LL"), args.sizes.split(), strict=True))]
        return subprocess.Popen(
            ["valgrind", "--tool=callgrind", "--vgdb=no", "--trace-children=yes", *more,
             f"--callgrind-out-file={work}/callgrind.out.%p", *argv],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log)


def await_listener(listen, process):
    host, port = listen.split(":")
    give_up = time.monotonic() + READY_SECONDS
    while time.monotonic() < give_up and process.poll() is None:
        try:
            socket.create_connection((host, int(port)), timeout=1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise peers.PeerFailed(f"{process.args} did not start")


def load(listen, path, seconds, connections=CONNECTIONS, headers=(), is_secure=False):
    """Keeps the peer full; how many requests it answered."""
    fields = [part for header in headers for part in ("-H", header)]
    done = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}", *fields,
                           f"{'https' if is_secure else 'http'}://{listen}{path}"],
                          capture_output=True, text=True)
    counted = loads.parse_wrk(done.stdout)
    if not counted["requests"] or counted["errors"]:
        hint = "" if counted["requests"] else "valgrind is slow, on a busy machine above all: try --short 8 --long 16\n"
        raise peers.PeerFailed(f"{hint}wrk: {done.stdout}{done.stderr}")
    return counted["requests"]


def parse_callgrind(text):
    """The events of one output file by name, `Ir` for instructions; none in one that was cut short."""
    names = re.search(r"^events: (.+)$", text, re.M)
    found = re.search(r"^(?:totals|summary): ([\d ]+)$", text, re.M)
    return dict(zip(names[1].split(), map(int, found[1].split()))) if names and found else {}


def atomic_addresses(program):
    """Where in a binary the instructions are that lock memory: those with the prefix, and xchg with memory, which has none."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", program], capture_output=True, text=True, check=True).stdout
    found = re.findall(r"^ *([0-9a-f]+):\t(?:lock |xchg .*\()", listing, re.M)
    return {int(address, 16) for address in found}


def executed(text, program):
    """How often a program executed each of its own instructions, by function and address, from callgrind's file."""
    counts, function, is_own, is_call = Counter(), "", False, False
    for line in text.splitlines():
        if line.startswith("ob="):
            is_own = Path(line[3:]).name == Path(program).name
        elif line.startswith("fn="):
            function = line[3:]
        elif line.startswith("calls="):
            is_call = True      # the next line is the cost of what was called
        elif line.startswith("0x"):
            address, _, count = line.split()[:3]
            if is_own and not is_call:
                counts[function, int(address, 16)] += int(count)
            is_call = False
    return counts


def show_atomics(counts, addresses):
    locks = Counter()
    for (function, address), count in counts.items():
        if address in addresses:
            locks[function] += count
    for function, count in sorted(locks.items(), key=lambda item: -item[1]):
        if count >= LEAST_SHOWN:
            print(f"{'':12} {count:8.2f} atomic in {function}")
    print(f"{'':12} {sum(locks.values()):8.2f} atomic in all", flush=True)


def show_code(counts):
    usual = {address for (_, address), count in counts.items() if count > USUAL}
    lines, pages = ({address // size for address in usual} for size in (64, 4096))
    print(f"{'':12} {len(usual):8} different instructions in {len(lines)} lines ({len(lines) * 64 / 1024:.0f} KiB) "
          f"and {len(pages)} pages", flush=True)


def show_caches(events):
    code, data, code_next, data_next = (sum(events[name] for name in names)
                                        for names in (["I1mr"], ["D1mr", "D1mw"], ["ILmr"], ["DLmr", "DLmw"]))
    print(f"{'':12} {code:8.0f} lines of code and {data:.0f} of data are not in the first caches, "
          f"{code_next:.0f} and {data_next:.0f} not in the next one", flush=True)


if __name__ == "__main__":
    main()
