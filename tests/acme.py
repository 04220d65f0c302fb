#!/usr/bin/env python3
"""Certificates from a real authority: weir and Let's Encrypt's pebble (`pebble` of Debian, or
`go install github.com/letsencrypt/pebble/v2/cmd/pebble@v2.10.1`).

    tests/acme.py --weir BIN --pebble BIN [NAME…]

Each case has a directory, a DNS server and ports of its own. `ari` needs a pebble of 2.8 or later, `dns_persist_01` one of
2.10; with an older one they are reported as skipped, and the exit code is 77 if they were asked for by name. `shared` needs a
redis-server."""

import argparse, base64, hmac, json, os, shutil, signal, socket, ssl, struct, subprocess, sys, tempfile, threading, time, urllib.request
from pathlib import Path

from ports import free_port

ROOT = Path(__file__).resolve().parent.parent
PATIENCE_S = 40
# Per cent of good nonces that pebble refuses: weir tries a request four times, and four refusals in a row must stay rare.
NONCE_REJECT = '5'

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--weir', default=str(ROOT / 'target/debug/weir'))
parser.add_argument('--pebble', default=shutil.which('pebble') or 'pebble')
parser.add_argument('--keep', action='store_true', help='keep the directories')
parser.add_argument('names', nargs='*', metavar='NAME')
chosen = parser.parse_args()


def within(what, seconds, test):
    """Waits until `test` holds; returns its value."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        value = test()
        if value:
            return value
        time.sleep(0.1)
    raise AssertionError(f'not within {seconds} s: {what}')


class Room:
    """The directory of a case, with everything that was started in it."""

    def __init__(self, name):
        self.path = Path(tempfile.mkdtemp(prefix=f'weir-acme-{name}-'))
        self.path.chmod(0o755)
        self.children, self.plain, self.tls, self.dns = [], free_port(), free_port(), free_port()
        (self.path / 'records').write_text(''.join(
            f'{host} A 127.0.0.1\n' for host in ('a.test', 'b.test', 'c.test', 'www.a.test')))
        self.start('dns', [sys.executable, ROOT / 'tests/support/dns.py', f'127.0.0.1:{self.dns}', 'records', 'dns.log'])
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-keyout',
                        'ca.key', '-out', 'ca.crt', '-subj', '/CN=127.0.0.1', '-addext', 'subjectAltName=IP:127.0.0.1'],
                       cwd=self.path, check=True, capture_output=True)

    def start(self, name, command, **more):
        out = open(self.path / f'{name}.out', 'ab')
        child = subprocess.Popen([str(word) for word in command], cwd=self.path, stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=out, **more)
        self.children.append(child)
        return child

    def end(self):
        for child in self.children:
            if child.poll() is None:
                child.kill()
            child.wait()
        if not chosen.keep:
            shutil.rmtree(self.path, ignore_errors=True)

    def text(self, name):
        try:
            return (self.path / name).read_text(errors='replace')
        except FileNotFoundError:
            return ''


class Pebble:
    def __init__(self, room, name='pebble', validity=3600, rejects=NONCE_REJECT, dns=None):
        self.dns = dns or room.dns
        self.room, self.name, self.port, self.management, self.rejects = room, name, free_port(), free_port(), rejects
        (room.path / f'{name}.json').write_text(json.dumps({'pebble': {
            'listenAddress': f'127.0.0.1:{self.port}', 'managementListenAddress': f'127.0.0.1:{self.management}',
            'certificate': 'ca.crt', 'privateKey': 'ca.key', 'httpPort': room.plain, 'tlsPort': room.tls,
            'certificateValidityPeriod': validity, 'ocspResponderURL': '', 'caaIdentities': ['ca.test'],
            'profiles': {'default': {'description': 'x', 'validityPeriod': validity}}}}))
        self.start()

    def start(self):
        environment = {**os.environ, 'PEBBLE_VA_NOSLEEP': '1', 'PEBBLE_WFE_NONCEREJECT': self.rejects}
        self.child = self.room.start(self.name, [chosen.pebble, '-config', f'{self.name}.json', '-dnsserver',
                                                 f'127.0.0.1:{self.dns}'], env=environment)
        within('pebble listens', 10, self.listens)

    def listens(self):
        with socket.socket() as probe:
            return probe.connect_ex(('127.0.0.1', self.port)) == 0

    def stop(self):
        self.child.kill()
        self.child.wait()

    def orders(self):
        return self.room.text(f'{self.name}.out').count('Added order')

    def tell(self, path, body):
        request = urllib.request.Request(f'https://127.0.0.1:{self.management}{path}', json.dumps(body).encode())
        return urllib.request.urlopen(request, context=ssl._create_unverified_context()).status


class Relay:
    """Stands between weir and pebble, and ends weir at one of its requests: before the request or after the answer."""

    def __init__(self, target):
        self.target, self.count, self.at, self.after, self.victim = target, 0, None, False, None
        self.socket = socket.create_server(('127.0.0.1', 0))
        self.port = self.socket.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.socket.accept()
            self.count += 1
            threading.Thread(target=self.serve, args=(client, self.count), daemon=True).start()

    def serve(self, client, number):
        if number == self.at and not self.after:
            self.victim.kill()
            return client.close()
        server = socket.create_connection(('127.0.0.1', self.target))

        def back():
            while True:
                try:
                    piece = server.recv(65536)
                except OSError:
                    piece = b''
                try:
                    client.sendall(piece) if piece else client.shutdown(socket.SHUT_WR)
                except OSError:
                    pass
                if not piece:
                    break
            if number == self.at and self.after:
                self.victim.kill()
            client.close()

        threading.Thread(target=back, daemon=True).start()
        while True:
            try:
                piece = client.recv(65536)
                if not piece:
                    break
                server.sendall(piece)
            except OSError:
                break
        try:
            server.shutdown(socket.SHUT_WR)
        except OSError:
            pass


class Zone:
    """A DNS server for TXT records, which takes updates (RFC 2136) that are signed with its key (RFC 8945)."""

    def __init__(self, key=None):
        self.key, self.texts, self.refused = key, {}, 0
        # pebble asks over TCP, weir's updates come over UDP.
        self.tcp = socket.create_server(('127.0.0.1', 0))
        self.port = self.tcp.getsockname()[1]
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(('127.0.0.1', self.port))
        for serve in self.serve_udp, self.serve_tcp:
            threading.Thread(target=serve, daemon=True).start()

    @staticmethod
    def name(message, at):
        labels = []
        while message[at]:
            labels.append(message[at + 1:at + 1 + message[at]].decode().lower())
            at += 1 + message[at]
        return '.'.join(labels), at + 1

    def serve_udp(self):
        while True:
            message, client = self.udp.recvfrom(4096)
            self.udp.sendto(self.answer(message), client)

    def serve_tcp(self):
        while True:
            client = self.tcp.accept()[0]
            with client, client.makefile('rb') as stream:
                while length := stream.read(2):
                    answer = self.answer(stream.read(int.from_bytes(length, 'big')))
                    client.sendall(len(answer).to_bytes(2, 'big') + answer)

    def answer(self, message):
        number, flags, questions, answers, changes, more = struct.unpack('!6H', message[:12])
        name, at = self.name(message, 12)
        if flags & 0x7800 == 0x2800:
            return struct.pack('!6H', number, 0xa800 | self.update(message, at + 4, changes, more), 0, 0, 0, 0)
        kind = struct.unpack('!H', message[at:at + 2])[0]
        found = sorted(self.texts.get(name, ())) if kind == 16 else []
        out = struct.pack('!6H', number, 0x8400, 1, len(found), 0, 0) + message[12:at + 4]
        for text in found:
            out += struct.pack('!3HIHB', 0xc00c, 16, 1, 1, len(text) + 1, len(text)) + text.encode()
        return out

    def update(self, message, at, changes, more):
        """Checks the signature before anything changes; the code of the response."""
        todo, end = [], at
        for _ in range(changes):
            name, end = self.name(message, end)
            kind, kin, ttl, length = struct.unpack('!2HIH', message[end:end + 10])
            todo.append((name, kin, message[end + 11:end + 10 + length].decode()))
            end += 10 + length
        if self.key:
            if more != 1:
                self.refused += 1
                return 5
            key_name, at = self.name(message, end)
            data = message[at + 10:]
            algorithm, start = self.name(data, 0)
            moment, fudge, length = data[start:start + 6], data[start + 6:start + 8], struct.unpack('!H', data[start + 8:start + 10])[0]
            mac = data[start + 10:start + 10 + length]
            plain = message[:10] + b'\0\0' + message[12:end]
            wire = lambda text: b''.join(bytes([len(label)]) + label.encode() for label in text.split('.')) + b'\0'
            signed = plain + wire(key_name) + b'\0\xff\0\0\0\0' + wire(algorithm) + moment + fudge + b'\0\0\0\0'
            wanted_name, secret = self.key
            own = hmac.digest(secret, signed, algorithm.removeprefix('hmac-'))
            is_now = abs(int.from_bytes(moment, 'big') - time.time()) < 300
            if key_name != wanted_name or not hmac.compare_digest(own, mac) or not is_now:
                self.refused += 1
                return 9
        for name, kin, text in todo:
            texts = self.texts.setdefault(name, set())
            texts.add(text) if kin == 1 else texts.discard(text)
        return 0


class Weir:
    def __init__(self, room, issuers, servers):
        self.room = room
        (room.path / 'nginx.conf').write_text(f'''
daemon off; user root; worker_processes 2; pid weir.pid; error_log error.log info;
events {{ }}
http {{
    access_log off; client_body_temp_path body; proxy_temp_path proxy;
    resolver 127.0.0.1:{room.dns};
{issuers}
    server {{ listen 127.0.0.1:{room.plain}; return 301 https://$host$request_uri; }}
{servers}
}}
''')
        self.start()

    def start(self):
        self.child = self.room.start('weir', [chosen.weir, 'edge', '-p', self.room.path, '-c', 'nginx.conf', '-e', 'error.log'])

    def kill(self):
        self.child.send_signal(signal.SIGKILL)
        self.child.wait()

    def reload(self):
        self.child.send_signal(signal.SIGHUP)

    def quit(self):
        self.child.send_signal(signal.SIGQUIT)
        assert self.child.wait(timeout=10) == 0

    def log(self):
        return self.room.text('error.log')

    def certificate(self, host):
        """The certificate that weir shows for a host, or None."""
        context = ssl._create_unverified_context()
        try:
            with socket.create_connection(('127.0.0.1', self.room.tls), timeout=5) as raw:
                with context.wrap_socket(raw, server_hostname=host) as tls:
                    return tls.getpeercert(binary_form=True)
        except OSError:
            return None

    def gets(self, host, other_than=None, seconds=PATIENCE_S):
        def one():
            shown = self.certificate(host)
            return shown if shown and shown != other_than else None
        return within(f'a certificate for {host}', seconds, one)


def issuer(name, port, more=''):
    return f'''    acme_issuer {name} {{
        uri https://127.0.0.1:{port}/dir; ssl_trusted_certificate ca.crt; state_path {name}; accept_terms_of_service; {more}
    }}
'''


def server(room, names, issuer, more=''):
    return f'''    server {{
        listen 127.0.0.1:{room.tls} ssl; server_name {names};
        acme_certificate {issuer} {more};
        ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;
        return 200 hello;
    }}
'''


def names(der):
    pem = ssl.DER_cert_to_PEM_cert(der)
    out = subprocess.run(['openssl', 'x509', '-noout', '-ext', 'subjectAltName'], input=pem, text=True, capture_output=True)
    return sorted(word.strip() for line in out.stdout.splitlines()[1:] for word in line.split(','))


def http_01(room):
    pebble = Pebble(room)
    weir = Weir(room, issuer('one', pebble.port), server(room, '.a.test', 'one', 'key=ecdsa:384') + server(room, 'b.test', 'one', 'key=rsa'))
    first, second = weir.gets('a.test'), weir.gets('b.test')
    assert names(first) == ['DNS:a.test', 'DNS:www.a.test'] and names(second) == ['DNS:b.test'], names(first)
    # No reload was needed, and every worker has it: 20 connections reach both.
    assert all(weir.certificate('a.test') == first for _ in range(20))
    assert 'reconfiguring' not in weir.log()
    # A restart serves it before the authority is asked: the authority is away.
    weir.quit()
    pebble.stop()
    weir.start()
    assert weir.gets('a.test', seconds=5) == first and weir.gets('b.test', seconds=5) == second
    mode = (room.path / 'one').stat().st_mode & 0o777
    files = {path.name: path.stat().st_mode & 0o777 for path in (room.path / 'one').iterdir()}
    assert mode == 0o700 and all(mode == 0o600 for mode in files.values()), files
    assert not any(name.endswith('.order') for name in files), files


def tls_alpn_01(room):
    pebble = Pebble(room)
    weir = Weir(room, issuer('one', pebble.port, 'challenge tls-alpn-01;'), server(room, 'a.test 127.0.0.1', 'one'))
    assert names(weir.gets('a.test')) == ['DNS:a.test', 'IP Address:127.0.0.1']


def several_issuers(room):
    pebbles = [Pebble(room, name) for name in ('first', 'second')]
    dead = free_port()
    weir = Weir(room, issuer('first', pebbles[0].port) + issuer('second', pebbles[1].port) + issuer('third', dead),
                server(room, 'a.test', 'first') + server(room, 'b.test', 'second') + server(room, 'c.test', 'third'))
    weir.gets('a.test')
    weir.gets('b.test')
    orders = [pebble.orders() for pebble in pebbles]
    assert orders == [1, 1], orders
    within('the third issuer is reported', 10, lambda: 'while creating account, acme issuer "third"' in weir.log())
    assert weir.certificate('c.test') is None
    within('the handshake is reported', 5, lambda: 'no certificate of acme issuer "third" yet' in weir.log())


def down(room):
    """The authority is away when the renewal is due: the old certificate is served, and the next try has it."""
    pebble = Pebble(room, validity=24)
    weir = Weir(room, issuer('one', pebble.port), server(room, 'a.test', 'one'))
    first = weir.gets('a.test')
    pebble.stop()
    tries = lambda: weir.log().count('while creating account, acme issuer "one"')
    within('weir notices', 30, lambda: tries() == 1)
    time.sleep(3)
    assert tries() == 1, 'the next try comes after a minute'
    assert weir.certificate('a.test') == first
    # This pebble knows neither the account nor the order any more.
    pebble.start()
    weir.reload()
    second = weir.gets('a.test', other_than=first)
    assert 'account "' in weir.log().split('reconfiguring')[-1], weir.log()
    # And the certificates after it come by themselves.
    weir.gets('a.test', other_than=second)


def kill_9(room):
    """Ends weir at every request of an order, before the request and after its answer: the same order is finished."""
    pebble = Pebble(room, rejects='0')
    relay = Relay(pebble.port)
    weir = Weir(room, issuer('one', relay.port), server(room, 'a.test b.test', 'one'))
    weir.gets('a.test')
    requests = relay.count
    assert requests >= 8, requests
    lost = dead = 0
    for number in range(1, requests + 1):
        for after in (False, True):
            weir.kill()
            shutil.rmtree(room.path / 'one')
            before = pebble.orders()
            relay.count, relay.at, relay.after = 0, number, after
            (room.path / 'error.log').write_text('')
            weir.start()
            relay.victim = weir
            weir.child.wait(timeout=30)
            assert weir.child.returncode == -signal.SIGKILL
            is_kept = any(name.endswith('.order') for name in os.listdir(room.path / 'one'))
            placed = pebble.orders() - before
            relay.at = None
            weir.start()
            weir.gets('a.test')
            orders = pebble.orders() - before
            # One request cannot be recovered: the order was placed, and weir had not read its URL.
            # And pebble ends an order if it looks at a challenge while weir is dead.
            was_dead = 'the order cannot be continued (unexpected order status invalid)' in weir.log()
            lost, dead = lost + (orders == 2 and not was_dead), dead + was_dead
            assert orders == 1 + was_dead or (orders == 2 and placed == 1 and not is_kept), \
                f'{orders} orders, ended at request {number}, after={after}'
    assert lost <= 1, f'{lost} orders were placed twice'
    print(f'    ended at each of {requests} requests, before and after: {lost} order lost on its way, {dead} ended by pebble, which '
          'looked at a challenge while weir was dead')


def ari(room):
    """The authority asks for an early renewal (RFC 9773): the next question, at a restart, replaces the certificate."""
    pebble = Pebble(room)
    weir = Weir(room, issuer('one', pebble.port), server(room, 'a.test', 'one'))
    first = weir.gets('a.test')
    moment = lambda ago: time.strftime('%Y-%m-%dT%H:%M:%SZ', time.gmtime(time.time() - ago))
    answer = json.dumps({'suggestedWindow': {'start': moment(60), 'end': moment(1)}, 'explanationURL': 'https://a.test/why'})
    try:
        status = pebble.tell('/set-renewal-info/', {'Certificate': ssl.DER_cert_to_PEM_cert(first), 'ARIResponse': answer})
    except OSError:
        return 'this pebble cannot set renewal information'
    assert status == 200
    weir.quit()
    weir.start()
    second = weir.gets('a.test', other_than=first)
    assert 'see https://a.test/why for details' in weir.log()
    assert second != first and pebble.orders() == 2


WILD = ['DNS:*.a.test', 'DNS:a.test']


def dns_01_responder(room):
    """weir answers the question of the authority itself, for a wildcard and its domain."""
    own = free_port()
    pebble = Pebble(room, dns=own)
    weir = Weir(room, f'    acme_dns_port 127.0.0.1:{own}; acme_dns_ttl 5s;\n' + issuer('one', pebble.port, 'challenge dns-01;'),
                server(room, '*.a.test a.test', 'one'))
    first = weir.gets('x.a.test')
    assert names(first) == WILD, names(first)
    # A reload keeps the socket.
    weir.reload()
    within('the reload', 5, lambda: 'reconfiguring' in weir.log())
    (room.path / 'nginx.conf').write_text((room.path / 'nginx.conf').read_text().replace('*.a.test a.test', '*.b.test'))
    weir.reload()
    assert names(weir.gets('x.b.test', other_than=first)) == ['DNS:*.b.test']
    assert 'bind()' not in weir.log()


def dns_01_update(room):
    """A server takes the records by signed updates, and refuses another key."""
    secret = b'a secret of thirty-two bytes....'
    zone = Zone(('weir-key', secret))
    pebble = Pebble(room, dns=zone.port)
    (room.path / 'secret').write_text(base64.b64encode(secret).decode() + '\n')
    update = f'dns_update 127.0.0.1:{zone.port} zone=a.test key=weir-key secret=file:secret;'
    wrong = f'dns_update 127.0.0.1:{zone.port} zone=b.test key=weir-key secret=d3Jvbmc=;'
    weir = Weir(room, issuer('one', pebble.port, 'challenge dns-01; ' + update) + issuer('two', pebble.port, 'challenge dns; ' + wrong),
                server(room, '*.a.test a.test', 'one') + server(room, 'b.test', 'two'))
    assert names(weir.gets('x.a.test')) == WILD
    within('the other key is refused', 20, lambda: 'failed (9: not authoritative for the zone, or the key is not accepted)' in weir.log())
    within('the records are removed', 5, lambda: not any(zone.texts.values()))
    assert zone.refused >= 1


def dns_01_hook(room):
    """A program writes the records."""
    zone = Zone()
    pebble = Pebble(room, dns=zone.port)
    hook = room.path / 'hook'
    hook.write_text(f'#!/bin/sh\necho "$@" >> {room.path}/hook.log\n')
    hook.chmod(0o755)
    seen = 0

    def follow():
        nonlocal seen
        lines = room.text('hook.log').splitlines()
        for verb, name, text in (line.split() for line in lines[seen:]):
            texts = zone.texts.setdefault(name.rstrip('.'), set())
            texts.add(text) if verb == 'present' else texts.discard(text)
        seen = len(lines)
    is_over = threading.Event()
    follower = threading.Thread(target=lambda: [follow() for _ in iter(lambda: is_over.wait(0.05), True)], daemon=True)
    follower.start()
    weir = Weir(room, issuer('one', pebble.port, 'challenge dns-01; dns_hook hook; dns_delay 1s;'), server(room, '*.a.test', 'one'))
    assert names(weir.gets('x.a.test')) == ['DNS:*.a.test']
    lines = room.text('hook.log').splitlines()
    assert [line.split()[0] for line in lines] == ['present', 'cleanup'], lines
    is_over.set()


def dns_persist_01(room):
    """The record that stays: weir serves it, or says which one the authority looks for."""
    own = free_port()
    pebble = Pebble(room, dns=own)
    weir = Weir(room, f'    acme_dns_port 127.0.0.1:{own};\n' + issuer('one', pebble.port, 'challenge dns-persist-01;'),
                server(room, '*.a.test a.test', 'one'))

    def got():
        return 'no supported challenges' in weir.log() or weir.certificate('x.a.test')
    shown = within('a certificate', PATIENCE_S, got)
    if shown is True:
        return 'this pebble has no dns-persist-01'
    assert names(shown) == WILD
    weir.quit()
    # Without a way into DNS, the log has the record.
    (room.path / 'nginx.conf').write_text((room.path / 'nginx.conf').read_text().replace(f'acme_dns_port 127.0.0.1:{own};', ''))
    shutil.rmtree(room.path / 'one')
    weir.start()
    # Which of the two hosts comes first is up to the authority.
    within('the record is told', 20, lambda: '_validation-persist.a.test. TXT "ca.test; accounturi=https://' in weir.log())

def shared(room):
    rooms = [Room('shared-2'), Room('shared-3'), room]
    try:
        redis_port = free_port()
        redis = room.start('redis', ['redis-server', '--port', redis_port, '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'])
        within('redis listens', 10, lambda: socket.socket().connect_ex(('127.0.0.1', redis_port)) == 0)
        pebble = Pebble(room)
        weirs = []
        # The authority asks the last edge. One of the three makes the order.
        for each in rooms:
            each.dns = room.dns
            shutil.copy(room.path / 'ca.crt', each.path / 'ca.crt') if each is not room else None
            weirs.append(Weir(each, f'    acme_share redis://127.0.0.1:{redis_port} prefix=t timeout=500ms lease=1m;\n'
                              + issuer('one', pebble.port), server(each, 'a.test', 'one')))
        shown = [weir.gets('a.test') for weir in weirs]
        assert shown[0] == shown[1] == shown[2]
        assert pebble.orders() == 1, pebble.orders()
        assert len({(each.path / 'one/account.key').read_text() for each in rooms}) == 1
        taken = [weir.log().count('certificate taken over from another edge') for weir in weirs]
        assert sorted(taken) == [0, 1, 1], taken
        # Redis hangs. Every edge serves, over a reload and a restart too.
        redis.send_signal(signal.SIGSTOP)
        weirs[0].reload()
        weirs[1].quit()
        weirs[1].start()
        for weir in weirs:
            within('the log names Redis', 10, lambda: 'this edge goes on by itself' in weir.log())
            assert weir.gets('a.test', seconds=5) == shown[0]
        # Without a certificate, an edge gets one without the others.
        weirs[2].quit()
        shutil.rmtree(room.path / 'one')
        weirs[2].start()
        assert weirs[2].gets('a.test') != shown[0]
        assert pebble.orders() == 2, pebble.orders()
        redis.send_signal(signal.SIGCONT)
        within('Redis is back', 10, lambda: 'weir is connected again' in weirs[0].log())
    except AssertionError:
        for each in rooms[:2]:
            print(each.text('error.log')[-2000:])
        raise
    finally:
        for each in rooms[:2]:
            each.end()


CASES = [dns_01_responder, dns_01_update, dns_01_hook, dns_persist_01, http_01, tls_alpn_01, several_issuers, shared, down, kill_9, ari]


def main():
    asked = [case for case in CASES if not chosen.names or case.__name__ in chosen.names]
    failed = skipped = 0
    for case in asked:
        room, begun = Room(case.__name__), time.monotonic()
        try:
            why = case(room)
            skipped += bool(why)
            print(f'{case.__name__}: {"skipped: " + why if why else "ok"} ({time.monotonic() - begun:.0f} s)', flush=True)
        except Exception as error:
            failed += 1
            print(f'{case.__name__}: FAILED: {error!r}\n{chr(10).join(line for line in room.text("error.log").splitlines() if "no certificate of" not in line)[-3000:]}', flush=True)
        finally:
            room.end()
    print(f'{len(asked) - failed - skipped} of {len(asked)} cases hold')
    sys.exit(1 if failed else 77 if skipped and chosen.names else 0)


main()
