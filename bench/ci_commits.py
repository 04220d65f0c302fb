"""Whether `weir ci ab` finds the commits that make an application slower, and says nothing about the others.

    python3 bench/ci_commits.py --weir target/dist/weir --resume ci.jsonl                # 11 pairs of neighbours, and 20 times the same: 100 minutes
    python3 bench/ci_commits.py --weir target/dist/weir --resume ci.jsonl --minutes 40   # in several sessions
    python3 bench/ci_commits.py --weir target/dist/weir --same 2 --only 3,4,7 --minutes 20

The script makes a repository with 12 commits of an application in Python: a request costs CPU time, and three commits let it cost
5, 10 and 20 % more; the others change names, comments, routes and the configuration. Each pair of neighbours is compared, and
`--same` times a commit with itself. A slower commit has to be found if its size is at least the smallest difference that the run
itself says it could have seen. Nothing else may be called worse or better.

The CPU time of the application for a request decides (`app_cpu`), from 2 % on: a request costs the same CPU time each time, so 20
pairs of blocks of 2 s show about 3 % on a quiet machine. The first comparison measures the rate that the machine bears, and
the others send the same rate, so they need no time for that.

`--minutes` begins no comparison that would end later than that, and `--resume FILE` has a line of JSON for each comparison: what is
in it is not done again. The machine has to be quiet for the figures. Exit 1 if a commit that could have been seen was not found in
more than one of three, or if more than one equal pair was called different; 3 if some comparisons are not done.
"""

import argparse, hashlib, json, subprocess, sys, tempfile, time
from pathlib import Path

CONF = '''worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    upstream app {{ server 127.0.0.1:18593; keepalive {keepalive}; }}
    server {{
        listen 127.0.0.1:18592;
        location / {{ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
'''

APP = '''import http.server, socketserver

# The units of work of a request.
UNITS = {units}


def {name}(units):
    total = 0
    for number in range(units):
        total = (total * 31 + number) % 1000003
    return total


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = 'HTTP/1.1'
    # Head and body leave together: the kernel waits for no acknowledgement between them.
    wbufsize = 65536
    disable_nagle_algorithm = True

    def do_GET(self):
        body = str({name}(UNITS)).encode()
        self.send_response(200)
        self.send_header('Content-Length', str(len(body)))
{more}        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *words):
        pass


class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
    daemon_threads = True
    request_queue_size = 256


Server(('127.0.0.1', 18593), Handler).serve_forever()
'''

HEADER = "        self.send_header('Cache-Control', 'no-store')\n"
# Subject, and what the commit changes. A factor makes a request slower.
COMMITS = [
    ('An application', {}),
    ('Work: a better name', {'name': 'checksum'}),
    ('Readme: how to start it', {'readme': 'python3 app.py\n'}),
    ('Work: five per cent more rounds', {'factor': 1.05}),
    ('Answers are not stored', {'more': HEADER}),
    ('Configuration: more kept connections', {'keepalive': 64}),
    ('Work: ten per cent more rounds', {'factor': 1.10}),
    ('Work: another name', {'name': 'digest'}),
    ('Readme: the port', {'readme': 'python3 app.py, on port 18593\n'}),
    ('Work: twenty per cent more rounds', {'factor': 1.20}),
    ('Configuration: as before', {'keepalive': 32}),
    ('Readme: a licence', {'readme': 'python3 app.py, on port 18593. MIT\n'}),
]


def git(place, *words):
    settings = ['-c', 'user.name=Ann', '-c', 'user.email=ann@example.org', '-c', 'commit.gpgsign=false']
    done = subprocess.run(['git', *settings, *words], cwd=place, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def repository(place, units):
    """Makes the commits; returns for each its name, its subject and how many times as much a request costs as before it."""
    git(place, 'init', '--quiet', '--initial-branch', 'main')
    state = {'units': float(units), 'name': 'work', 'more': '', 'keepalive': 32, 'readme': ''}
    made = []
    for subject, change in COMMITS:
        factor = change.get('factor', 1.0)
        state.update({key: value for key, value in change.items() if key != 'factor'})
        state['units'] *= factor
        app = APP.format(units=round(state['units']), name=state['name'], more=state['more'])
        (place / 'app.py').write_text(app)
        (place / 'nginx.conf').write_text(CONF.format(keepalive=state['keepalive']))
        (place / 'README').write_text(state['readme'])
        git(place, 'add', '--all')
        git(place, 'commit', '--quiet', '--message', subject)
        made.append((git(place, 'rev-parse', 'HEAD'), subject, factor))
    return made


def compared(chosen, place, before, after, rate):
    """The report of one comparison. Without a rate, `weir ci ab` measures one."""
    report = place.parent / 'report.json'
    command = [chosen.weir, 'ci', 'ab', '--conf', 'nginx.conf', '--origin', f'exec {sys.executable} app.py', '--before', before,
               '--after', after, '--budget', chosen.budget, '--pairs', str(chosen.pairs), '--block', chosen.block, '--warmup', '1s',
               '--metric', chosen.metric, '--threshold', str(chosen.threshold), '--edge', chosen.edge, '--json', str(report),
               *(['--rate', str(rate)] if rate else []), *chosen.flags]
    began = time.monotonic()
    done = subprocess.run(command, cwd=place, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not report.exists():
        sys.exit(f'no report: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}')
    found = json.loads(report.read_text())
    found['took_s'] = time.monotonic() - began
    report.unlink()
    return found


def figure(report, key):
    return next((one for one in report['figures'] if one['key'] == key), None)


def seen(report, factor):
    """Whether the run says that it could have seen so large a change, in a figure that the change touches."""
    known = [figure(report, key) for key in ('p50', 'app_cpu') if key in report['deciding']]
    limits = [one['detectable'] for one in known if one and one['detectable'] is not None]
    return any(factor - 1 >= limit for limit in limits)


def line(report, number, subject, factor):
    """One row of the table."""
    def shown(key):
        one = figure(report, key)
        if not one or one['effect'] is None:
            return '–'
        limit = '–' if one['detectable'] is None else f'{one["detectable"] * 100:.1f}'
        return f'{one["effect"] * 100:+.1f} ({limit})'
    planted = f'{(factor - 1) * 100:.0f} %' if factor > 1 else ''
    noise = report['noise'] or {'unused': 0, 'cautioned': 0, 'blocks': 0}
    pairs = max((one['pairs'] for one in report['figures']), default=0)
    return (f'| {number} | {subject} | {planted} | {report["verdict"]["name"]} | {shown("p50")} | {shown("app_cpu")} | {pairs} | '
            f'{noise["unused"]} + {noise["cautioned"]} of {noise["blocks"]} | {report["took_s"] / 60:.1f} |')


HEAD = ('| commit | subject | slower by | outcome | p50, % (detectable) | app_cpu, % (detectable) | pairs | unused + disturbed blocks | min |\n'
        '|---|---|---|---|---|---|---|---|---|')


# The parts of a report that a row and the count need.
KEPT = ('verdict', 'figures', 'deciding', 'noise', 'pace', 'took_s')


def known(file):
    """The rows of earlier runs, by their numbers; the rate; and the last program that made them."""
    lines = [json.loads(one) for one in file.read_text().splitlines() if one.strip()] if file and file.exists() else []
    rows = {one['number']: one for one in lines if 'number' in one}
    rates = [one['report']['pace']['rate'] for one in rows.values() if one['report'].get('pace')]
    programs = [one['binary'] for one in lines if 'binary' in one]
    return rows, (rates or [None])[0], (programs or [None])[-1]


def wanted(chosen, made):
    """The comparisons that are asked for: number, subject, revisions, how many times as much a request costs."""
    only = {int(number) for number in chosen.only.split(',')} if chosen.only else set(range(2, len(COMMITS) + 1))
    for number, ((before, _, _), (after, subject, factor)) in enumerate(zip(made, made[1:]), 2):
        if number in only:
            yield str(number), subject, (before, after), factor
    for number in range(chosen.same):
        commit, subject, _ = made[number % len(made)]
        yield f'same {number + 1}', subject, (commit, commit), 1.0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--weir', default='target/dist/weir')
    parser.add_argument('--edge', default='weir', help='weir, or the path of an nginx')
    parser.add_argument('--minutes', type=float, default=24 * 60, help='no comparison is begun that would end after these')
    parser.add_argument('--resume', type=Path, help='a line of JSON for each comparison; what is in it is not done again')
    parser.add_argument('--budget', default='6m', help='of each comparison, at most')
    parser.add_argument('--pairs', type=int, default=20)
    parser.add_argument('--block', default='2s')
    parser.add_argument('--metric', default='app_cpu', help='the figure that decides')
    parser.add_argument('--threshold', type=float, default=2, help='the smallest difference of it that matters, per cent')
    parser.add_argument('--units', type=int, default=40_000, help='the work of a request: about 50 ns each')
    parser.add_argument('--same', type=int, default=20, help='comparisons of a commit with itself')
    parser.add_argument('--only', help='only these commits, as 3,4,7')
    parser.add_argument('--keep', type=Path, help='a directory for the reports')
    parser.add_argument('flags', nargs='*', help='after --: further flags of weir ci ab')
    chosen = parser.parse_args()
    chosen.weir = str(Path(chosen.weir).resolve())
    began, longest, left = time.monotonic(), 0.0, 0
    rows, rate, program = known(chosen.resume)
    own = hashlib.sha256(Path(chosen.weir).read_bytes()).hexdigest()[:12]
    if program not in (None, own):
        print(f'the binary changed: the last rows of {chosen.resume} are of {program}, those that come are of {own}')

    def keep(entry):
        if chosen.resume:
            with chosen.resume.open('a') as out:
                out.write(json.dumps(entry) + '\n')

    if program != own:
        keep({'binary': own})
    with tempfile.TemporaryDirectory(prefix='weir-commits-') as directory:
        place = Path(directory) / 'repository'
        place.mkdir()
        made = repository(place, chosen.units)
        print(HEAD, flush=True)
        asked = list(wanted(chosen, made))
        for number, subject, (before, after), factor in asked:
            if number not in rows:
                if (time.monotonic() - began + longest) > chosen.minutes * 60:
                    left += 1
                    continue
                report = compared(chosen, place, before, after, rate)
                longest = max(longest, report['took_s'])
                rate = rate or (report['pace'] or {}).get('rate')
                if chosen.keep:
                    chosen.keep.mkdir(parents=True, exist_ok=True)
                    (chosen.keep / f'{number}.json'.replace(' ', '-')).write_text(json.dumps(report))
                rows[number] = {'number': number, 'subject': subject, 'factor': factor, 'report': {key: report[key] for key in KEPT}}
                keep(rows[number])
            print(line(rows[number]['report'], number, subject, factor), flush=True)
    done = [rows[number] for number, *_ in asked if number in rows]
    slower = [row for row in done if row['factor'] > 1 and seen(row['report'], row['factor'])]
    missed = [row['number'] for row in slower if row['report']['verdict']['name'] != 'worse']
    equal = [row for row in done if row['factor'] == 1]
    cried = [row['number'] for row in equal if row['report']['verdict']['name'] in ('worse', 'better')]
    cried += [row['number'] for row in done if row['factor'] > 1 and row['report']['verdict']['name'] == 'better']
    limits = [one['detectable'] for row in done if (one := figure(row['report'], chosen.metric)) and one['detectable'] is not None]
    print(f'\n{len(done)} of {len(asked)} comparisons done, {(time.monotonic() - began) / 60:.0f} min; {left} left for --resume')
    if limits:
        limits.sort()
        print(f'{chosen.metric}: smallest detectable difference {limits[len(limits) // 2] * 100:.1f} % in the middle, {limits[-1] * 100:.1f} % at most')
    print(f'{len(slower)} slower commits could have been seen; missed: {missed or "none"}')
    print(f'{len(equal)} equal pairs; called better or worse: {cried or "none"}')
    if len(missed) > len(slower) // 3 or len(cried) > 1:
        sys.exit(1)
    sys.exit(3 if left else 0)


if __name__ == '__main__':
    main()
