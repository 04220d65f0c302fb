"""Report S3 as published: TLS and HTTP/2 to clients, Spring Boot behind; asked by curl, h2load and Chromium."""

import collections, hashlib, json, os, re, shutil, signal, subprocess, sys, tempfile, threading, time
from contextlib import ExitStack
from pathlib import Path

import lab
import spring

HERE = Path(__file__).resolve().parent
HOST = 'gyural.shop'
LIVE = Path('/etc/letsencrypt/live', HOST)
CHALLENGE = Path('/var/www/certbot/.well-known/acme-challenge/token')
PROGRAMS = ('openssl', 'curl', 'h2load', 'chromium')
VERSIONS = {'--http1.1': '1.1', '--http2': '2'}
MIB = 1 << 20
# Requests while the edge reloads three times.
RELOADED = 600
# Smaller than the file's client_max_body_size, which is nginx's own: 1m.
POSTED = b'0123456789abcdef' * 60_000
CHROMIUM = ['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
            '--disable-background-networking', '--disable-component-update', '--ignore-certificate-errors',
            f'--host-resolver-rules=MAP {HOST} 127.0.0.1', '--dump-dom']


def run(chosen):
    """The lab, in namespaces of its own for each edge; ends the process."""
    if absent := spring.missing() + [program for program in PROGRAMS if not shutil.which(program)]:
        print(f'skipped: not installed here: {", ".join(absent)}')
        sys.exit(77)
    # Before the namespaces: inside there is no way to Maven Central.
    file = spring.jar()
    edge_name, _ = lab.inside(chosen)
    expect = lab.Expectations()
    print('S3 as published: TLS, HTTP/2, Spring Boot')
    furnish()
    with ExitStack() as stack:
        stack.enter_context(spring.Spring(file))
        edge = stack.enter_context(lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'published.conf'))
        room = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        for check in (redirects, versions, bodies, browser):
            check(expect, room)
        load(edge_name, edge, 2 if chosen.quick else 8)
        reload(expect, edge, room)
        expect.that(not edge.log_lines(r'\[(crit|alert|emerg)\]'), 'the error log has nothing worse than an error')
    expect.end(chosen.check)


def furnish():
    """The machine that the file expects, for this namespace alone: certificate, challenge, the name of the first server."""
    for folder in ('/etc', '/var'):
        lab.lay_over(folder)
    LIVE.mkdir(parents=True)
    lab.run_quietly(['openssl', 'req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '30', '-subj', f'/CN={HOST}', '-addext',
                     f'subjectAltName=DNS:{HOST}', '-keyout', str(LIVE / 'privkey.pem'), '-out', str(LIVE / 'fullchain.pem')])
    CHALLENGE.parent.mkdir(parents=True)
    CHALLENGE.write_text('the answer to the challenge')
    with open('/etc/hosts', 'a') as hosts:
        hosts.write(f'127.0.0.2 honorsParking-master\n127.0.0.1 {HOST}\n')


def curl(*arguments, room, url=f'https://{HOST}/'):
    """One request by curl: its own words for the answer, and the body."""
    body = room / 'body'
    body.write_bytes(b'')
    said = subprocess.run(['curl', '-s', '--max-time', '30', '--cacert', str(LIVE / 'fullchain.pem'), '-o', str(body), '-w',
                           '%{json}', *arguments, url], capture_output=True, text=True)
    return json.loads(said.stdout), body.read_bytes()


def redirects(expect, room):
    """Port 80 sends everybody to https, certbot too: `return` beside the location answers first."""
    for path in ('/a?b', '/.well-known/acme-challenge/token'):
        said, _ = curl(room=room, url=f'http://{HOST}{path}')
        expect.that((said['http_code'], said['redirect_url']) == (301, f'https://{HOST}{path}'), f'port 80 points {path} to https')
    said, body = curl('-L', room=room, url=f'http://{HOST}/.well-known/acme-challenge/token')
    expect.that((said['http_code'], body) == (200, CHALLENGE.read_bytes()), 'an ACME challenge is answered where that points')


def versions(expect, room):
    """The client's choice of version, a checked certificate, three servers in turn."""
    for asked, spoken in VERSIONS.items():
        found = collections.Counter()
        for _ in range(9):
            said, body = curl(asked, room=room)
            found[said['http_version'], said['http_code'], said['ssl_verify_result'], json.loads(body)['from']] += 1
        expected = {(spoken, 200, 0, f'127.0.0.{last}'): 3 for last in (2, 3, 4)}
        expect.that(found == expected, f'curl {asked}: HTTP/{spoken}, certificate verified, three servers in turn')
        if found != expected:
            print(f'         found: {dict(found)}')


def bodies(expect, room):
    """Bodies both ways, a body that is too large, a session's cookie."""
    sent = room / 'sent'
    sent.write_bytes(POSTED)
    expected = {'length': len(POSTED), 'sha256': hashlib.sha256(POSTED).hexdigest()}
    large = room / 'large'
    large.write_bytes(bytes(MIB + 1))
    for asked, spoken in VERSIONS.items():
        said, body = curl(asked, '--data-binary', f'@{sent}', room=room, url=f'https://{HOST}/digest')
        expect.that(said['http_code'] == 200 and json.loads(body) == expected, f'HTTP/{spoken}: {len(POSTED)} bytes arrive as sent')
        said, body = curl(asked, room=room, url=f'https://{HOST}/bytes?count={MIB}')
        expect.that(said['http_code'] == 200 and body == b'x' * MIB, f'HTTP/{spoken}: an answer of 1 MiB comes whole')
        said, _ = curl(asked, '--data-binary', f'@{large}', room=room, url=f'https://{HOST}/digest')
        expect.that(said['http_code'] == 413, f'HTTP/{spoken}: more than client_max_body_size is 413')
        jar = room / f'cookies{spoken}'
        curl(asked, '-c', str(jar), '-d', 'user=reader', room=room, url=f'https://{HOST}/login')
        _, body = curl(asked, '-b', str(jar), room=room, url=f'https://{HOST}/me')
        expect.that(json.loads(body) == {'user': 'reader'}, f'HTTP/{spoken}: a session is known again by its cookie')


def browser(expect, room):
    """Chromium shows what the application said, and the access log says over which version."""
    before = len(access_log())
    said = subprocess.run([*CHROMIUM, f'--user-data-dir={room}/profile', f'https://{HOST}/'], capture_output=True, text=True,
                          timeout=120, env={**os.environ, 'HOME': str(room)})
    asked = [line for line in access_log()[before:] if 'Chrome' in line]
    expect.that('"hello":"world"' in said.stdout, "Chromium shows the application's answer")
    expect.that(asked and all('HTTP/2.0' in line for line in asked), f'Chromium spoke HTTP/2 ({len(asked)} requests)')
    if not asked:
        print(said.stdout[-500:], said.stderr[-1000:])


def access_log():
    """The lines of the edge's access log, which the file leaves at its default."""
    file = Path('/var/log/nginx/access.log')
    return file.read_text().splitlines() if file.exists() else []


def load(edge_name, edge, seconds):
    """Two rows of a table; no figure is expected of them."""
    rows = {'HTTP/2, 16 x 32': (h2load, '-c16', '-m32', f'-D{seconds}'), 'HTTP/1.1, 64': (wrk, seconds)}
    for name, (tool, *arguments) in rows.items():
        before = edge.cpu_seconds()
        found = tool(*arguments)
        each = (edge.cpu_seconds() - before) / max(found.get('2xx', 0), 1) * 1e6
        print(f'  {edge_name:6} {name:16} {dict(found)}, {each:.1f} µs of the edge each', flush=True)


def wrk(seconds):
    """The same page over HTTP/1.1, by wrk: h2load 1.52 takes none of these answers for a success, nginx's neither."""
    found = lab.wrk(f'https://{HOST}/', 64, seconds)
    return {'2xx' if key == '200' else key: count for key, count in found.items()}


def h2load(*arguments):
    """h2load on the application's first page: answers by class of status, and streams that had none."""
    said = subprocess.run(['h2load', *arguments, f'https://{HOST}/'], capture_output=True, text=True, timeout=120).stdout
    lines = dict(re.findall(r'^(requests|status codes): (.*)$', said, re.MULTILINE))
    if len(lines) < 2:
        raise RuntimeError(f'h2load says nothing of requests:\n{said}')
    counts = re.findall(r'(\d+) (\dxx|errored)', lines['status codes'] + lines['requests'])
    return {name: int(count) for count, name in counts if int(count)}


def reload(expect, edge, room):
    """Three reloads under load: curl, which follows GOAWAY to a new connection, has an answer for every request.

    h2load does not follow it: it ends with its connection's first GOAWAY and counts what it could not begin as errored, with
    either edge.
    """
    loaded = {}
    loading = threading.Thread(target=lambda: loaded.update(h2load('-c4', '-m8', '-D4')))
    loading.start()
    time.sleep(1)
    command = ['curl', '-s', '-Z', '--parallel-max', '16', '--http2', '--cacert', str(LIVE / 'fullchain.pem'), '-o', '/dev/null',
               '-d', 'user=reader', '-w', '%{http_code} %{http_version}\\n', f'https://{HOST}/login?[1-{RELOADED}]']
    with open(room / 'reloaded', 'w+') as said:
        asking = subprocess.Popen(command, stdout=said, stderr=subprocess.DEVNULL)
        for _ in range(3):
            time.sleep(0.3)
            edge.child.send_signal(signal.SIGHUP)
        asking.wait(60)
        loading.join()
        said.seek(0)
        found = collections.Counter(said.read().splitlines())
    expect.that(found == {'200 2': RELOADED}, f'three reloads under load: {RELOADED} of {RELOADED} answered over HTTP/2')
    if found != {'200 2': RELOADED}:
        print(f'         found: {dict(found)}')
    expect.that(loaded.get('2xx') and set(loaded) <= {'2xx', 'errored'}, "of h2load's answers none has another status")
