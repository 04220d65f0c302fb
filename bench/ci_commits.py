"""Whether `weir ci ab` finds the commits that make an application slower, and says nothing about the others.

    python3 bench/ci_commits.py --weir target/dist/weir                    # 11 pairs of neighbours, and 20 times the same: 4 hours at most
    python3 bench/ci_commits.py --weir target/dist/weir --same 2 --only 3,4,7 --budget 3m

The script makes a repository with 12 commits of an application in Python: a request costs CPU time, and three commits let it cost
5, 10 and 20 % more; the others change names, comments, routes and the configuration. Each pair of neighbours is compared, and
`--same` times a commit with itself. A slower commit has to be found if its size is at least the smallest difference that the run
itself says it could have seen (for the median latency or for the application's CPU time). Nothing else may be called worse or better.

The machine has to be quiet for the figures. Exit 1 if a commit that could have been seen was not found in more than one of three,
or if more than one equal pair was called different.
"""

import argparse, json, subprocess, sys, tempfile, time
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


def compared(chosen, place, before, after):
    """The report of one comparison."""
    report = place.parent / 'report.json'
    command = [chosen.weir, 'ci', 'ab', '--conf', 'nginx.conf', '--origin', f'exec {sys.executable} app.py', '--before', before,
               '--after', after, '--budget', chosen.budget, '--edge', chosen.edge, '--json', str(report), *chosen.flags]
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
    known = [figure(report, key) for key in ('p50', 'app_cpu')]
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--weir', default='target/dist/weir')
    parser.add_argument('--edge', default='weir', help='weir, or the path of an nginx')
    parser.add_argument('--budget', default='8m', help='of each comparison')
    parser.add_argument('--units', type=int, default=20_000, help='the work of a request: about 50 ns each')
    parser.add_argument('--same', type=int, default=20, help='comparisons of a commit with itself')
    parser.add_argument('--only', help='only these commits, as 3,4,7')
    parser.add_argument('--keep', type=Path, help='a directory for the reports')
    parser.add_argument('flags', nargs='*', help='after --: further flags of weir ci ab')
    chosen = parser.parse_args()
    chosen.weir = str(Path(chosen.weir).resolve())
    wanted = {int(number) for number in chosen.only.split(',')} if chosen.only else set(range(2, len(COMMITS) + 1))
    missed, could, cried, equal = [], 0, [], 0
    with tempfile.TemporaryDirectory(prefix='weir-commits-') as directory:
        place = Path(directory) / 'repository'
        place.mkdir()
        made = repository(place, chosen.units)
        print(HEAD, flush=True)

        def tell(report, number, subject, factor):
            print(line(report, number, subject, factor), flush=True)
            if chosen.keep:
                chosen.keep.mkdir(parents=True, exist_ok=True)
                name = f'{number}.json'.replace(' ', '-')
                (chosen.keep / name).write_text(json.dumps(report))

        for number, ((before, _, _), (after, subject, factor)) in enumerate(zip(made, made[1:]), 2):
            if number not in wanted:
                continue
            report = compared(chosen, place, before, after)
            tell(report, number, subject, factor)
            outcome = report['verdict']['name']
            if factor > 1:
                could += seen(report, factor)
                if outcome != 'worse' and seen(report, factor):
                    missed.append(number)
                if outcome == 'better':
                    cried.append(number)
            else:
                equal += 1
                if outcome in ('worse', 'better'):
                    cried.append(number)
        for number in range(chosen.same):
            commit = made[number % len(made)][0]
            report = compared(chosen, place, commit, commit)
            tell(report, f'same {number + 1}', made[number % len(made)][1], 1.0)
            equal += 1
            if report['verdict']['name'] in ('worse', 'better'):
                cried.append(f'same {number + 1}')
    print(f'\n{could} slower commits could have been seen; missed: {missed or "none"}')
    print(f'{equal} equal pairs; called better or worse: {cried or "none"}')
    sys.exit(0 if len(missed) <= could // 3 and len(cried) <= 1 else 1)


if __name__ == '__main__':
    main()
