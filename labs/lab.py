"""What the runners share: a network of their own, an edge (nginx or weir) on a given file, real origins, and counting.

A runner calls `inside()` first: the script starts itself again in fresh network, mount and process namespaces, so the
published ports can stay as published, limits change for nobody else, ports that rest after one run do not hinder the
next, and nothing outlives the run. Standard library only.
"""

import argparse, json, os, re, shutil, signal, socket, subprocess, sys, tempfile, threading, time
from collections import Counter
from pathlib import Path

LABS = Path(__file__).resolve().parent
ROOT = LABS.parent
START_SECONDS = 10
STOP_SECONDS = 5
LOAD_SECONDS = 600
RESULTS = LABS / 'results'


def inside(chosen, variants=('',)):
    """Starts the script again for each edge and variant, each time in namespaces of its own; there, returns the two."""
    if place := os.environ.get('WEIR_LAB'):
        subprocess.run(['ip', 'link', 'set', 'lo', 'up'], check=True)
        return place.split(':')
    if os.geteuid() != 0 or not shutil.which('unshare'):
        print('skipped: this lab needs root, for namespaces of its own')
        sys.exit(77)
    command = ['unshare', '--net', '--mount', '--pid', '--fork', '--mount-proc', '--kill-child', sys.executable, *sys.argv]
    results = []
    for variant in variants:
        for edge in ('nginx', 'weir') if chosen.only is None else (chosen.only,):
            environment = {**os.environ, 'WEIR_LAB': f'{edge}:{variant}'}
            results.append(subprocess.run(command, env=environment).returncode)
    sys.exit(max(results))


def options(about, scripted=False, tls=False):
    """The options every runner has, and those of one with a load.yml or a configuration with TLS beside it."""
    parser = argparse.ArgumentParser(description=about)
    parser.add_argument('--weir', default=str(ROOT / 'target/release/weir'), help='weir binary')
    parser.add_argument('--nginx', default='/usr/sbin/nginx', help='nginx binary')
    parser.add_argument('--only', choices=['nginx', 'weir'], help='one edge only')
    parser.add_argument('--workers', type=int, help='worker_processes of both, where the file says nothing (nginx 1, weir one per CPU)')
    parser.add_argument('--check', action='store_true', help='exit 1 when what is expected does not hold')
    parser.add_argument('--quick', action='store_true', help='a run of seconds, for CI')
    if scripted:
        parser.add_argument('--load', nargs='?', const='short', choices=['short', 'full'],
                            help="load by `weir load` and the lab's load.yml: short, or as long as reported; --quick is a look")
    if tls:
        parser.add_argument('--tls', action='store_true', help='the published file with TLS and HTTP/2, before Spring Boot')
    chosen = parser.parse_args()
    Edge.globals = f'worker_processes {chosen.workers};' if chosen.workers else ''
    return chosen


class Expectations:
    """What a run has to show; `end` says what did not hold."""

    def __init__(self):
        self.broken = []

    def that(self, holds, what):
        print(f'         {"holds" if holds else "FAILS"}: {what}', flush=True)
        if not holds:
            self.broken.append(what)

    def end(self, check):
        sys.exit(1 if check and self.broken else 0)


def run_quietly(command):
    """Runs a command that says nothing unless it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f'{command[0]}: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}')


def set_kernel(name, value):
    """Sets a kernel parameter of this network namespace."""
    Path('/proc/sys', *name.split('.')).write_text(str(value))


def lay_over(folder):
    """From here on, what is written below the folder is seen in this mount namespace alone; what is there stays."""
    room = tempfile.mkdtemp(prefix='weir-lab-over-')
    subprocess.run(['mount', '-t', 'tmpfs', 'tmpfs', room], check=True)
    for part in ('upper', 'work'):
        os.mkdir(f'{room}/{part}')
    subprocess.run(['mount', '-t', 'overlay', 'overlay', '-o', f'lowerdir={folder},upperdir={room}/upper,workdir={room}/work', folder],
                   check=True)


class Process:
    """A process that ends with its `with` block: told to, then killed, by its id."""

    def __init__(self, command, **more):
        self.child = subprocess.Popen(command, **more)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.child.poll() is None:
            self.child.send_signal(signal.SIGTERM)
            try:
                self.child.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


class Origin(Process):
    """A node application on an address and port: `labs/apps/NAME.mjs`."""

    def __init__(self, app, address='127.0.0.1', port=3000, **more):
        environment = {**os.environ, 'NODE_ENV': 'production', 'HOST': address, 'PORT': str(port), **more}
        super().__init__(['node', str(LABS / 'apps' / f'{app}.mjs')], env=environment)
        wait_for_port(address, port, self.child)


class Edge(Process):
    """nginx or weir on a configuration file. weir runs under the name nginx, with the same arguments."""

    globals = ''

    def __init__(self, name, binary, conf, port=80):
        self.room = Path(tempfile.mkdtemp(prefix=f'weir-lab-{name}-'))
        program = self.room / 'nginx'
        program.symlink_to(os.path.abspath(binary))
        # Both log where Debian's nginx logs; the mount is this namespace's own.
        os.makedirs('/var/log/nginx', exist_ok=True)
        logs = self.room / 'log'
        logs.mkdir(mode=0o777)
        subprocess.run(['mount', '--bind', str(logs), '/var/log/nginx'], check=True)
        self.room.chmod(0o755)
        self.error_log = logs / 'error.log'
        self.output = open(self.room / 'output', 'w+')
        command = [str(program), '-c', str(conf), '-e', str(self.error_log), '-g', f'daemon off; pid {self.room}/pid; {Edge.globals}']
        super().__init__(command, stdout=self.output, stderr=self.output)
        try:
            wait_for_port('127.0.0.1', port, self.child)
        except RuntimeError:
            self.output.seek(0)
            raise RuntimeError(f'{name} does not start on {conf}:\n{self.output.read()}') from None

    def __exit__(self, *_):
        super().__exit__()
        subprocess.run(['umount', '/var/log/nginx'], check=True)
        shutil.rmtree(self.room)

    def cpu_seconds(self):
        """CPU time of all its threads and processes so far."""
        return sum(thread_seconds(pid) for pid in [self.child.pid, *children(self.child.pid)])

    def log_lines(self, pattern):
        """How many lines of its error log match."""
        text = self.error_log.read_text() if self.error_log.exists() else ''
        return len(re.findall(pattern, text))

    def first_log_line(self, pattern):
        """The first matching line of its error log."""
        text = self.error_log.read_text() if self.error_log.exists() else ''
        return next((line for line in text.splitlines() if re.search(pattern, line)), '')


def children(pid):
    """The processes started by a process."""
    found = Path(f'/proc/{pid}/task/{pid}/children').read_text().split()
    return [int(child) for child in found]


def thread_seconds(pid):
    return sum(int(task.read_text().split()[0]) for task in Path(f'/proc/{pid}/task').glob('*/schedstat')) / 1e9


def wait_for_port(address, port, child):
    """Returns once something accepts there."""
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        if child.poll() is not None:
            raise RuntimeError(f'process ended with {child.returncode}')
        try:
            socket.create_connection((address, port), 1).close()
            return
        except OSError:
            time.sleep(0.02)
    raise RuntimeError(f'nothing accepts on {address}:{port}')


def wrk(url, connections, seconds):
    """Loads a URL; the answers by status, and what failed without one."""
    command = ['wrk', '-t1', f'-c{connections}', f'-d{seconds}s', '--timeout', '10s', '-s', str(LABS / 'statuses.lua'), url]
    said = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30)
    line = next((line for line in said.stdout.splitlines() if line.startswith('{')), None)
    if line is None:
        raise RuntimeError(f'wrk: {said.stdout}{said.stderr}')
    return Counter({key: count for key, count in json.loads(line).items() if count})


def weir_load(chosen, script, edge_name):
    """Loads by `weir load SCRIPT`, in the form chosen; its report as JSON, kept with its page in `labs/results/`."""
    form = 'quick' if chosen.quick else chosen.load
    RESULTS.mkdir(exist_ok=True)
    kept = RESULTS / f'{script.parent.name}-{form}-{edge_name}'
    command = [chosen.weir, 'load', str(script), '-o', f'{kept}.json', '--html', f'{kept}.html']
    command += [] if form == 'full' else ['-e', form]
    with open(f'{kept}.txt', 'w') as output:
        code = subprocess.run(command, stdout=output, stderr=subprocess.STDOUT, timeout=LOAD_SECONDS).returncode
    if code not in (0, 1, 21):
        raise RuntimeError(f'{" ".join(command)}: exit code {code}\n{Path(f"{kept}.txt").read_text()[-2000:]}')
    print(f'  {edge_name:6} kept: {kept.relative_to(ROOT)}.json .html .txt', flush=True)
    return json.loads(Path(f'{kept}.json').read_text())


def load_row(edge, report, answered, unit, cpu_seconds):
    """Two lines of a table: what `weir load` counted, both latencies, its own verdict, the edge's CPU per answer."""
    counters, own = report['aggregate']['counters'], report['weir']
    users = ', '.join(f'{counters.get(f"vusers.{what}", 0)} {what}' for what in ('created', 'completed', 'failed'))
    errors = {name: count for name, count in counters.items() if name.startswith('errors.')}
    shown = ', '.join(f'{name} p50 {own[name]["p50"]:.2f} p99 {own[name]["p99"]:.2f} max {own[name]["max"]:.1f}'
                      for name in ('response', 'service'))
    verdict = '; '.join(own['generator']['limits']) or 'the generator was not the limit'
    print(f'  {edge:6} users: {users}; {answered} {unit}; errors: {errors or "none"}; '
          f'CPU of the edge {cpu_seconds / max(answered, 1) * 1e6:.1f} µs each')
    print(f'  {edge:6} ms: {shown}; {verdict} (worker CPU {own["generator"]["worker_cpu_peak"]:.2f})', flush=True)


def row(edge, counts, cpu_seconds):
    """One line of a table: requests, answers by status, CPU per answered request."""
    answered = sum(count for key, count in counts.items() if key.isdigit())
    per_request = f'{cpu_seconds / answered * 1e6:6.1f} µs' if answered else '     -'
    statuses = '  '.join(f'{key}: {count}' for key, count in sorted(counts.items()))
    print(f'  {edge:6} {answered:7} requests   CPU of the edge {per_request}/request   {statuses}', flush=True)


def at_once(count, job, *arguments):
    """Runs `job(index, *arguments)` in so many threads that start together; what they returned."""
    results, gate = [None] * count, threading.Barrier(count)

    def run(index):
        gate.wait()
        results[index] = job(index, *arguments)

    threads = [threading.Thread(target=run, args=(index,)) for index in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def get(address, path='/', host=None, seconds=15):
    """One request on a connection of its own: the status as text, or the kind of failure."""
    try:
        with socket.create_connection((address, 80), seconds) as connection:
            request = f'GET {path} HTTP/1.1\r\nHost: {host or address}\r\nConnection: close\r\n\r\n'
            connection.sendall(request.encode())
            answer = b''
            while chunk := connection.recv(65536):
                answer += chunk
    except OSError as error:
        return type(error).__name__
    return answer[9:12].decode() if answer.startswith(b'HTTP/1.') else 'closed unanswered'
