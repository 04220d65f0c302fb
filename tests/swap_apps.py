#!/usr/bin/env python3
"""`weir swap` on five real applications: forty planted differences, and runs without any.

    tests/swap_apps.py run --weir BIN [--nginx BIN] [--sides nginx|weir|switch] [--only APP[/KIND[/NAME]]]
    tests/swap_apps.py aa --weir BIN [--nginx BIN] [--sides nginx|weir|switch] [--count 100]

The applications are Express, Spring Boot from Maven, WordPress of Debian with PHP-FPM and MariaDB, Django on gunicorn, and a JSON API of
Node. Each is started once. A's file is in swap_apps/conf, each B differs from it by a row of swap_apps/plants.py. The traffic is an
access log of visitors with cookies, which this program makes through A. `run` asks of each report: the planted part is there, the planted
line is named, and no other part is. `aa` compares A with itself: times, random ids, tokens, counters and the order of names are noise.

--sides is the program that serves A and B; with switch, nginx serves A and weir serves B. --traffic combined leaves the fields of requests out of the log, and --traffic recording takes a
recording that weir makes with A's file, instead of a log. Needs node, npm's Express in tests/apps,
java, mvn, wordpress, wordpress-theme-twentytwentythree, mariadb-server, php-fpm, php-mysql, php-gd, nginx-common.
"""
import argparse
import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE / "swap_apps"), str(HERE / "real")]
import crawl  # noqa: E402
import parts  # noqa: E402
from apps import APPS  # noqa: E402
from plants import PLANTS  # noqa: E402
from ports import free_port  # noqa: E402

# Seconds for one run of swap.
LIMIT_S = 300


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("run", "aa"))
    parser.add_argument("--weir", type=Path, required=True)
    parser.add_argument("--nginx", type=Path, default=Path("/usr/sbin/nginx"))
    parser.add_argument("--sides", choices=("nginx", "weir", "switch"), default="nginx")
    parser.add_argument("--traffic", choices=("fields", "combined", "recording"), default="fields")
    parser.add_argument("--only", default="")
    parser.add_argument("--count", type=int, default=100, help="runs of A against A over all applications")
    parser.add_argument("--keep", type=Path, help="a folder for the files and reports of each run")
    options = parser.parse_args()
    chosen = [app for app in APPS if not options.only or options.only.split("/")[0] == app.name]
    good = bad = 0
    for number, app in enumerate(chosen):
        with parts.Room("A", options.nginx) as room:
            stage = Stage(options, app(), room)
            if options.verb == "run":
                held = [stage.plant(plant) for plant in PLANTS if f"{plant.app}/{plant.kind}/{plant.name}".startswith(options.only) and plant.app == app.name]
            else:
                share = options.count // len(chosen) + (number < options.count % len(chosen))
                held = [stage.silent(run) for run in range(share)]
        good, bad = good + sum(held), bad + len(held) - sum(held)
    print(f"{good} passed, {bad} failed")
    raise SystemExit(1 if bad or not good else 0)


class Stage:
    """An application that runs, its traffic, and A's file."""

    def __init__(self, options, app, room):
        self.options, self.app, self.room = options, app, room
        port = free_port()
        # Workers of nginx run as nobody.
        room.dir.chmod(0o755)
        shutil.copy("/etc/nginx/mime.types", room.dir)
        (room.dir / "logs").mkdir()
        app.files(room)
        words = app.start(room)
        self.text = app.configuration(room, port, words)
        (room.dir / "A.conf").write_text(self.text)
        self.edge(port, lambda: app.prepare(room, port))
        if not all(room.checks):
            raise SystemExit(f"{app.name}: not prepared")
        traffic = crawl.Traffic(port, app.host)
        self.edge(port, lambda: app.visits(traffic), is_recorded=options.traffic == "recording")
        self.traffic = self.written(traffic)
        print(f"{app.name}: {len(traffic.lines)} requests of {traffic.visitors} visitors, statuses {dict(sorted(traffic.statuses.items()))}", flush=True)

    def written(self, traffic):
        """The flags that name the traffic."""
        if self.options.traffic == "recording":
            return ["--traffic", "traffic.rec"]
        is_long = self.options.traffic == "fields"
        (self.room.dir / "traffic.log").write_text("\n".join(traffic.lines if is_long else traffic.combined) + "\n")
        return ["--traffic", "traffic.log", "--format", crawl.FORMAT if is_long else crawl.COMBINED]

    def edge(self, port, use, is_recorded=False):
        """Runs A's file while `use` runs, and leaves no cache behind."""
        flags = ["-p", self.room.dir, "-g", "daemon off;"]
        called = [self.room.binary, *flags, "-c", "A.conf"]
        if is_recorded:
            (self.room.dir / "recorded.conf").write_text(self.text.replace("http {\n", f"http {{\n    record {self.room.dir}/traffic.rec;\n", 1))
            called = [self.options.weir.resolve(), "edge", *flags, "-c", "recorded.conf"]
        process = self.room.start("edge", called, lambda: parts.accepts(port))
        try:
            use()
        finally:
            self.room.stop(process)
        for name in ("cache", "pages"):
            shutil.rmtree(self.room.dir / name, ignore_errors=True)

    def swap(self, b):
        """The report of A against a file, the seconds, and what swap said beside it."""
        nginx, weir = self.options.nginx.resolve(), self.options.weir.resolve()
        by_a, by_b = {"nginx": (nginx, nginx), "weir": (weir, weir), "switch": (nginx, weir)}[self.options.sides]
        called = [weir, "swap", "A.conf", b, "--binary-a", by_a, "--binary-b", by_b, *self.traffic, "--json", "report.json"]
        started = time.monotonic()
        done = subprocess.run([str(word) for word in called], cwd=self.room.dir, capture_output=True, text=True, errors="replace", timeout=LIMIT_S, check=False)
        path = self.room.dir / "report.json"
        report = json.loads(path.read_text()) if path.exists() else {}
        path.unlink(missing_ok=True)
        return report, done, time.monotonic() - started

    def plant(self, plant):
        """Plants one difference; whether swap found it, and nothing else."""
        (self.room.dir / "B.conf").write_text(plant.file(self.text))
        report, done, seconds = self.swap("B.conf")
        found = report.get("differences", [])
        wrong = []
        if done.returncode != 1 or report.get("verdict") != "differs":
            wrong.append(f"exit {done.returncode}, verdict {report.get('verdict')}: {(done.stderr or done.stdout).strip()[-300:]}")
        shown = [one for one in found if plant.shows(one["part"])]
        if not shown:
            wrong.append("not found")
        elif not any(one.get("request", {}).get("target") for one in shown):
            wrong.append("no request")
        named = {(cause["side"], cause["line"]) for one in shown for cause in one.get("causes", [])}
        if shown and not named & plant.lines(self.text):
            wrong.append(f"line not named: {sorted(named)}, planted {sorted(plant.lines(self.text))}, {sorted({str(one.get('cause_note')) for one in shown})}")
        others = sorted({one["part"] for one in found if not plant.moves(one["part"])})
        if others:
            wrong.append(f"also reported: {', '.join(others)}")
        self.keep(f"{plant.app}-{plant.kind}-{plant.name}", report, done)
        print(f"{'FAILED' if wrong else 'found '} {plant.app:9} {plant.kind:11} {plant.name:12} {seconds:6.1f} s, {len(found)} differences{''.join('; ' + one for one in wrong)}", flush=True)
        return not wrong

    def silent(self, number):
        """A against itself; whether swap says so."""
        shutil.copy(self.room.dir / "A.conf", self.room.dir / "B.conf")
        report, done, seconds = self.swap("B.conf")
        is_silent = done.returncode == 0 and report.get("verdict") == "same" and not report.get("differences")
        told = "" if is_silent else f"; exit {done.returncode}: " + ", ".join(f"{one['part']} at {one['request']['target']}: {one['a']!r} / {one['b']!r}" for one in report.get("differences", []))[:900]
        if not is_silent:
            told += (done.stderr or "").strip()[-300:] if not report else ""
            self.keep(f"{self.app.name}-aa-{number}", report, done)
        print(f"{'silent' if is_silent else 'NOISY '} {self.app.name:9} {number:3} {seconds:6.1f} s{told}", flush=True)
        return is_silent

    def keep(self, name, report, done):
        if self.options.keep:
            folder = self.options.keep / name.replace(" ", "_")
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "report.json").write_text(json.dumps(report, indent=1, ensure_ascii=False))
            (folder / "said").write_text(done.stdout + "\n--- stderr\n" + done.stderr)
            for file in ("A.conf", "B.conf", *self.room.dir.glob("traffic.*")):
                shutil.copy(self.room.dir / file, folder)


if __name__ == "__main__":
    main()
