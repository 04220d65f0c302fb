#!/usr/bin/env python3
"""Every fix of `weir doctor` on real trees, beside the nginx that reads them.

    tests/fixes.py --weir BIN --nginx BIN [--trees DIR] [NAME…]

Each tree is laid over this machine's files in namespaces of its own (needs root). The trees are the labs' files, those of
tests/fixes/, and each `CASE/root` below --trees, over `_std`. A tree that nginx refuses is left out.

For the default `--fix --write`, and then for each rule alone, the program checks that nginx still accepts the tree, that no
finding is new, and that `--undo` restores every byte. A nginx that reads the tree then answers probes as before: a page, the
same page again (a cache), a WebSocket, a stream, HTTP/2 and gRPC, at each location, from an origin that shows what it got."""

import argparse
import collections
import hashlib
import http.server
import itertools
import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MAIN = '/etc/nginx/nginx.conf'
# Findings that a fix may bring: crates/doctor/src/fixes.rs has the reasons.
MAY_COME = {('cache_stampede', 'cache_lock_polling'), ('connection_table', 'headroom'), ('websocket_upgrade', 'websocket_timeout')}
LEVELS = ['wrong', 'risk', 'note']
LOCATIONS_MAX, TREES_SECONDS = 8, 900
SANDBOX = r'''
tree=$1; std=$2; shift 2
ip link set lo up
ip route add local 0.0.0.0/0 dev lo
sysctl -qw net.ipv4.ip_nonlocal_bind=1 net.ipv6.ip_nonlocal_bind=1 net.ipv4.ip_unprivileged_port_start=0 2>/dev/null
mount --make-rprivate /
t=$(mktemp -d); mount -t tmpfs tmpfs "$t"; mkdir "$t/up" "$t/work" "$t/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$t/up,workdir=$t/work" "$t/root" || exit 99
r=$t/root
rm -rf "$r/etc/nginx"; mkdir -p "$r/etc/nginx"
[ -z "$std" ] || cp -a "$std/etc/nginx/." "$r/etc/nginx/"
cp -a "$tree/." "$r/"
mount --bind /dev "$r/dev"; mount -t proc proc "$r/proc"; mount -t tmpfs tmpfs "$r/tmp"
for bin in "$FIXES_WEIR" "$FIXES_NGINX"; do mkdir -p "$r/opt/judged"; cp "$bin" "$r/opt/judged/"; done
chroot "$r" "$@"; rc=$?
umount -l "$r/dev" "$r/proc" "$r/tmp"; umount -l "$r"; umount -l "$t"; rmdir "$t"
exit $rc
'''


def trees(given):
    """The name of each tree, the folder that is laid over the root, and the folder below it."""
    found = []
    labs = {path for folder in ('labs', 'tests/fixes') for path in (ROOT / folder).rglob('*.conf')}
    for conf in sorted(labs):
        found.append((str(conf.relative_to(ROOT)), conf, ''))
    if given:
        for case in sorted(Path(given).glob('*+*/*')):
            found.append((f'{case.parent.name}/{case.name}', case / 'root', str(Path(given, '_std'))))
    return found


def outer(args):
    total, broken, left_out = collections.Counter(), [], []
    with tempfile.TemporaryDirectory() as folder:
        pair(Path(folder))
        for name, tree, std in trees(args.trees):
            if args.names and not any(part in name for part in args.names):
                continue
            with tempfile.TemporaryDirectory() as copy:
                lay(tree, Path(copy), folder)
                command = ['unshare', '-m', '-n', '--pid', '--fork', 'bash', '-c', SANDBOX, '_', copy, std,
                           sys.executable, os.path.abspath(__file__), '--inside', name]
                environment = {**os.environ, 'FIXES_WEIR': os.path.abspath(args.weir), 'FIXES_NGINX': os.path.abspath(args.nginx), 'PAIR': folder}
                done = subprocess.run(command, env=environment, capture_output=True, text=True, errors='replace', timeout=TREES_SECONDS)
            try:
                told = json.loads(done.stdout.splitlines()[-1])
            except (IndexError, ValueError):
                broken.append(f'{name}: no result: {done.stdout[-500:]}{done.stderr[-2000:]}')
                print(f'BROKEN {broken[-1]}', flush=True)
                continue
            if told['refused']:
                left_out.append(f'{name}: {told["refused"]}')
                continue
            total['trees'] += 1
            total.update(told['counts'])
            for one in told['broken']:
                broken.append(f'{name}: {one}')
                print(f'BROKEN {broken[-1]}', flush=True)
            if args.verbose:
                print(f'{name}: {told["counts"]}', flush=True)
                for one in told['dropped']:
                    print(f'    {one}')
    if args.verbose:
        print('\n'.join(left_out))
    print(f'{total["trees"]} trees ({len(left_out)} that nginx refuses left out), {total["runs"]} runs of fixes, {total["written"]} wrote, '
          f'{total["dropped"]} fixes dropped; {total["probes"]} probes compared; {len(broken)} broken')
    sys.exit(1 if broken or not total['written'] else 0)


def pair(folder):
    subprocess.run(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', '-subj', '/CN=localhost',
                    '-keyout', folder / 'key.pem', '-out', folder / 'cert.pem'], check=True, capture_output=True)


def lay(tree, copy, keys):
    """A copy of a tree, with a certificate where it has the words @CERT@ and @KEY@."""
    if tree.is_file():
        (copy / 'etc/nginx').mkdir(parents=True)
        shutil.copy(tree, copy / MAIN[1:])
        shutil.copytree(ROOT / 'package/lists', copy / 'etc/nginx', dirs_exist_ok=True)
        return
    shutil.copytree(tree, copy, dirs_exist_ok=True, symlinks=True)
    for path in (one for one in copy.rglob('*') if one.is_file()):
        text = path.read_bytes()
        if text.startswith((b'@CERT@', b'@KEY@')):
            parts = [Path(keys, name).read_bytes() for word, name in ((b'@CERT@', 'cert.pem'), (b'@KEY@', 'key.pem')) if word in text]
            path.write_bytes(b''.join(parts))


# Inside of the namespaces.

class Origin(http.server.BaseHTTPRequestHandler):
    """Shows whether a WebSocket handshake arrives, streams, and counts."""
    protocol_version = 'HTTP/1.1'
    count = itertools.count()
    got = {}

    def do_GET(self):
        number = next(Origin.count)
        if self.headers.get('Upgrade', '').lower() == 'websocket' and 'upgrade' in self.headers.get('Connection', '').lower():
            self.send_response(101)
            self.send_header('Upgrade', 'websocket')
            self.send_header('Connection', 'upgrade')
            self.end_headers()
            self.close_connection = True
        elif self.headers.get('X-Probe') == 'stream':
            self.stream(self.headers.get('X-Probe-Id', ''))
        else:
            body = f'{number}\n'.encode()
            self.send_response(200)
            self.send_header('Content-Type', 'text/plain')
            self.send_header('Content-Length', str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    do_POST = do_HEAD = do_GET

    def stream(self, name):
        """The second piece comes when the client has the first, or after a moment."""
        event = Origin.got.setdefault(name, threading.Event())
        self.send_response(200)
        self.send_header('Content-Type', 'text/event-stream')
        self.send_header('Connection', 'close')
        self.end_headers()
        self.wfile.write(b'data: first\n\n')
        self.wfile.flush()
        told = 'streamed' if event.wait(0.7) else 'buffered'
        self.wfile.write(f'data: {told}\n\n'.encode())
        self.close_connection = True

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 128

    def handle_error(self, *_):
        pass


class Tree:
    def __init__(self):
        self.nginx, self.weir = self.binary('FIXES_NGINX'), self.binary('FIXES_WEIR')
        self.counts, self.broken, self.dropped = collections.Counter(), [], []
        self.environment = {**os.environ, 'XDG_STATE_HOME': '/tmp/state', 'LC_ALL': 'C.UTF-8', 'WEIR_LANG': 'en'}
        self.edge = None

    @staticmethod
    def binary(name):
        return f'/opt/judged/{Path(os.environ[name]).name}'

    def accepts(self):
        done = subprocess.run([self.nginx, '-t', '-q', '-c', MAIN], capture_output=True, text=True, errors='replace')
        lines = [line for line in done.stderr.splitlines() if 'emerg' in line] or done.stderr.splitlines() or ['no word']
        return '' if done.returncode == 0 else lines[0]

    def doctor(self, *words):
        done = subprocess.run([self.weir, 'doctor', *words], env=self.environment, capture_output=True, text=True, errors='replace')
        return done.returncode, done.stdout, done.stderr

    def findings(self):
        code, out, said = self.doctor(MAIN, '--nginx', self.nginx, '--json')
        if code == 2:
            raise SystemExit(f'the doctor cannot read the tree: {said}')
        return json.loads(out)['findings']

    def files(self):
        kept = {}
        for top in ('/etc/nginx', '/etc/letsencrypt', '/opt/site'):
            for path in Path(top).rglob('*'):
                if path.is_file():
                    kept[str(path)] = hashlib.sha256(path.read_bytes()).hexdigest()
        return kept

    def run(self):
        self.name_hosts()
        if refused := self.accepts():
            return {'refused': refused}
        self.parse()
        self.origins()
        self.start()
        before, answers, files = self.findings(), self.probes(), self.files()
        rules = sorted({one['rule'] for one in before if one['can_fix']})
        for words in [[], *(['--only', rule] for rule in rules)]:
            self.fix(words, before, answers, files)
        self.stop()
        return {'refused': '', 'counts': self.counts, 'broken': self.broken, 'dropped': self.dropped}

    def fix(self, words, before, answers, files):
        said = ' '.join(words) or 'all'
        self.counts['runs'] += 1
        code, out, told = self.doctor(MAIN, '--nginx', self.nginx, '--fix', '--write', *words)
        dropped = [line for line in told.splitlines() if ' is not fixed: ' in line]
        self.counts['dropped'] += len(dropped)
        self.dropped += [f'{said}: {line}' for line in dropped]
        if code == 2:
            self.broken.append(f'{said}: {told}')
        if self.files() == files:
            return
        self.counts['written'] += 1
        if refused := self.accepts():
            self.broken.append(f'{said}: nginx refuses the tree: {refused}\n{out}')
        else:
            self.reload()
            self.compare(said, answers, self.probes(), out)
        after = self.findings()
        fixed = set(words[1:]) or {one['rule'] for one in before}
        for (rule, level), number in self.at_least(after).items():
            come = any((fix, rule) in MAY_COME for fix in fixed)
            if number > self.at_least(before).get((rule, level), 0) and not come:
                self.broken.append(f'{said}: new finding: {level} {rule}\n{out}')
        if set(self.files()) - set(files):
            self.broken.append(f'{said}: new files beside the configuration: {set(self.files()) - set(files)}')
        code, _, told = self.doctor('--undo')
        if code or self.files() != files:
            self.broken.append(f'{said}: the undo does not restore the tree: {told}')

    @staticmethod
    def at_least(findings):
        """How many findings each rule has that are at least as grave as a level."""
        counts = collections.Counter()
        for one in findings:
            for level in LEVELS[LEVELS.index(one['level']):]:
                counts[one['rule'], level] += 1
        return counts

    # The configuration, as nginx's own dump has it.

    def name_hosts(self):
        """Names of origins that nothing else resolves."""
        text = '\n'.join(path.read_text(errors='replace') for path in Path('/etc/nginx').rglob('*') if path.is_file())
        names = set(re.findall(r'\bserver\s+([A-Za-z][\w.-]*?)(?::\d+)?(?:\s[^;{]*)?;', text))
        names |= set(re.findall(r'_pass\s+(?:\w+://)?([A-Za-z][\w.-]*?)(?::\d+)?(?:/[^;]*)?;', text))
        defined = set(re.findall(r'upstream\s+([\w.-]+)\s*{', text))
        with open('/etc/hosts', 'a') as hosts:
            for number, name in enumerate(sorted(names - defined - {'unix', 'localhost'}), 1):
                if name not in Path('/etc/hosts').read_text().split():
                    hosts.write(f'10.77.0.{number} {name}\n')

    def parse(self):
        done = subprocess.run([self.weir, 'edge', '-t', '--crossplane', '-c', MAIN], capture_output=True, text=True)
        config = json.loads(done.stdout)['config']
        parsed = {file['file']: file['parsed'] for file in config}
        order = [file['file'] for file in config]

        def inside(block):
            for one in block:
                if one['directive'] == 'include':
                    for index in one.get('includes', []):
                        yield from inside(parsed[order[index]])
                else:
                    yield one

        self.servers, self.ports = [], set()
        for block in inside(parsed[order[0]]):
            if block['directive'] != 'http':
                continue
            for server in (one for one in inside(block['block']) if one['directive'] == 'server'):
                own = list(inside(server['block']))
                listens = [one['args'] for one in own if one['directive'] == 'listen'] or [['80']]
                names = [name for one in own if one['directive'] == 'server_name' for name in one['args']]
                uris = [uri for one in own if one['directive'] == 'location' and (uri := self.uri(one['args']))]
                self.servers.append((listens, names, list(dict.fromkeys(['/', *uris]))[:LOCATIONS_MAX]))
        dump = subprocess.run([self.nginx, '-T', '-q', '-c', MAIN], capture_output=True, text=True, errors='replace').stdout
        origins = re.findall(r'\bserver\s+[\w.\[\]:-]*?:(\d+)\b|_pass\s+\w+://[\w.\[\]-]+:(\d+)\b', dump)
        self.grpc_ports = {int(port) for port in re.findall(r'\bgrpc_pass\s+[^;]*:(\d+);', dump)}
        self.ports = {int(port) for pair in origins for port in pair if port} - self.grpc_ports | {80, 443}

    @staticmethod
    def uri(words):
        """A path that the location matches, if it is easily found."""
        if words[0] in ('=', '^~'):
            return words[1]
        if words[0] in ('~', '~*'):
            plain = re.sub(r'[\\^$]', '', words[1])
            return plain if re.fullmatch(r'/[\w./-]*', plain) else ''
        return words[0] if words[0].startswith('/') else ''

    def listens(self):
        for listens, names, uris in self.servers:
            name = next((name for name in names if re.fullmatch(r'[\w.-]+', name) and name != '_'), 'localhost')
            for words in listens:
                if words[0].startswith('unix:') or 'quic' in words:
                    continue
                port = re.search(r'(\d+)$', words[0]) if re.search(r'(^|:)\d+$', words[0]) else None
                yield name, int(port.group(1)) if port else 80, 'ssl' in words, uris

    def origins(self):
        own = {port for _, port, _, _ in self.listens()}
        for port in self.ports - own:
            try:
                server = Server(('0.0.0.0', port), Origin)
            except OSError:
                continue
            threading.Thread(target=server.serve_forever, daemon=True).start()
        if self.grpc_ports - own:
            self.grpc_origin(self.grpc_ports - own)

    @staticmethod
    def grpc_origin(ports):
        """An origin of gRPC, by the same nginx: it says how it was asked."""
        folder = Path(tempfile.mkdtemp(prefix='grpc-'))
        listens = ' '.join(f'listen 0.0.0.0:{port} http2;' for port in ports)
        (folder / 'nginx.conf').write_text(
            f'pid {folder}/pid; error_log {folder}/error.log; events {{ }} http {{ access_log off; server {{ {listens} '
            'location / { default_type application/grpc; add_header grpc-status 0; return 200 $server_protocol; } } }')
        subprocess.run([Tree.binary('FIXES_NGINX'), '-c', folder / 'nginx.conf'], check=True, stderr=subprocess.DEVNULL)

    # nginx.

    def start(self):
        self.edge = subprocess.Popen([self.nginx, '-c', MAIN, '-g', 'daemon off;'], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.await_port()

    def await_port(self):
        for _, port, _, _ in self.listens():
            for _ in range(200):
                try:
                    socket.create_connection(('127.0.0.1', port), 1).close()
                    break
                except OSError:
                    time.sleep(0.02)
            return

    def stop(self):
        if self.edge:
            self.edge.terminate()
            self.edge.wait(20)

    def reload(self):
        """A new nginx: the old one keeps nothing."""
        self.stop()
        for path in ('/var/cache', '/tmp/cache'):
            for found in Path(path).glob('nginx*'):
                shutil.rmtree(found, ignore_errors=True)
        self.start()

    # Probes.

    def probes(self):
        told = {}
        for name, port, is_tls, uris in self.listens():
            for uri in uris:
                place = f'{name}:{port}{uri}'
                first, again = (self.ask(name, port, is_tls, uri) for _ in range(2))
                told[place] = {
                    'page': first[0],
                    'kept': first[0] == 200 and first == again,
                    'websocket': self.ask(name, port, is_tls, uri, {'Connection': 'Upgrade', 'Upgrade': 'websocket',
                                          'Sec-WebSocket-Version': '13', 'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ=='})[0],
                    'stream': self.stream(name, port, is_tls, uri),
                }
                if self.grpc_ports:
                    told[place]['grpc'] = self.grpc(name, port, is_tls, uri)
            if is_tls:
                told[f'{name}:{port}'] = {'alpn': self.alpn(name, port)}
        return told

    @staticmethod
    def grpc(name, port, is_tls, uri):
        url = f'http{"s" if is_tls else ""}://127.0.0.1:{port}{uri}'
        version = '--http2' if is_tls else '--http2-prior-knowledge'
        done = subprocess.run(['curl', '-sk', version, '-m', '5', '-H', f'Host: {name}', '-H', 'Content-Type: application/grpc', '-H', 'TE: trailers',
                               '--data-binary', '', '-w', ' %{http_code} %{http_version}', url], capture_output=True, text=True, errors='replace')
        status, http = done.stdout.split()[-2:]
        # A page or a redirect of nginx itself: for a client of gRPC, no service is there.
        return [done.returncode, 'no service' if status[0] in '34' else status, http]

    def connect(self, name, port, is_tls, protocols=('http/1.1',)):
        plain = socket.create_connection(('127.0.0.1', port), 5)
        if not is_tls:
            return plain
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.set_alpn_protocols(list(protocols))
        return context.wrap_socket(plain, server_hostname=name)

    def alpn(self, name, port):
        try:
            with self.connect(name, port, True, ('h2', 'http/1.1')) as stream:
                return stream.selected_alpn_protocol()
        except OSError as error:
            return type(error).__name__

    def send(self, stream, name, uri, fields):
        head = ''.join(f'{field}: {value}\r\n' for field, value in {'Host': name, **fields}.items())
        if 'Connection' not in fields:
            head += 'Connection: close\r\n'
        stream.sendall(f'GET {uri} HTTP/1.1\r\n{head}\r\n'.encode())

    def ask(self, name, port, is_tls, uri, fields={}):
        """The status and the body."""
        try:
            with self.connect(name, port, is_tls) as stream:
                self.send(stream, name, uri, fields)
                got = b''
                while piece := stream.recv(65536):
                    got += piece
                    if got.startswith(b'HTTP/1.1 101') or len(got) > 1 << 20:
                        break
        except OSError as error:
            return type(error).__name__, b''
        status = re.match(rb'HTTP/1.\d (\d+)', got)
        return int(status.group(1)) if status else 'none', got.partition(b'\r\n\r\n')[2]

    def stream(self, name, port, is_tls, uri):
        mark = f'{uri}-{time.monotonic_ns()}'
        event = Origin.got.setdefault(mark, threading.Event())
        try:
            with self.connect(name, port, is_tls) as stream:
                self.send(stream, name, uri, {'Accept': 'text/event-stream', 'X-Probe': 'stream', 'X-Probe-Id': mark})
                got = b''
                while piece := stream.recv(65536):
                    got += piece
                    if b'data: first' in got:
                        event.set()
        except OSError as error:
            return type(error).__name__
        finally:
            Origin.got.pop(mark, None)
        return 'streamed' if b'streamed' in got else 'buffered' if b'buffered' in got else 'none'

    def compare(self, said, before, after, diff):
        for place, old in before.items():
            new = after.get(place, {})
            self.counts['probes'] += len(old)
            # A WebSocket that comes through now, and did not before, is what its rule is for.
            better = {'websocket'} if old.get('websocket') != 101 and new.get('websocket') == 101 else set()
            # A location that a `return` of the server hid answers now.
            if said == 'all' or said.endswith(' unreachable_location'):
                better.add('page')
            old, new = ({key: value for key, value in one.items() if key not in better} for one in (old, new))
            if old != new:
                self.broken.append(f'{said}: {place}: {old} became {new}\n{diff}')


def inside():
    tree = Tree()
    try:
        told = tree.run()
    finally:
        tree.stop()
    print(json.dumps(told))


if __name__ == '__main__':
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME', help='trees whose name has one of these words')
    parser.add_argument('--weir', default=str(ROOT / 'target/release/weir'))
    parser.add_argument('--nginx', default='/usr/sbin/nginx')
    parser.add_argument('--trees', help='a folder of GROUP+NAME/CASE/root, and _std')
    parser.add_argument('--inside', help=argparse.SUPPRESS)
    parser.add_argument('-v', '--verbose', action='store_true')
    chosen = parser.parse_args()
    inside() if chosen.inside else outer(chosen)
