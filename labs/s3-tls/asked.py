"""Asks the edge what report S3's file says, by curl and Chromium; prints what holds. argv: a directory of its own."""

import collections, hashlib, json, os, subprocess, sys
from pathlib import Path

HOST = 'gyural.shop'
LIVE = Path('/etc/letsencrypt/live', HOST)
VERSIONS = {'--http1.1': '1.1', '--http2': '2'}
MIB = 1 << 20
# Smaller than the file's client_max_body_size, which is nginx's own: 1m.
POSTED = b'0123456789abcdef' * 60_000
CHROMIUM = ['chromium', '--headless', '--no-sandbox', '--disable-gpu', '--disable-quic', '--no-first-run', '--disable-sync',
            '--disable-background-networking', '--disable-component-update', '--ignore-certificate-errors',
            f'--host-resolver-rules=MAP {HOST} 127.0.0.1', '--dump-dom']
room = Path(sys.argv[1])


def curl(*arguments, url=f'https://{HOST}/'):
    """One request by curl: its own words for the answer, and the body."""
    body = room / 'body'
    body.write_bytes(b'')
    said = subprocess.run(['curl', '-s', '--max-time', '30', '--cacert', str(LIVE / 'fullchain.pem'), '-o', str(body), '-w',
                           '%{json}', *arguments, url], capture_output=True, text=True)
    return json.loads(said.stdout), body.read_bytes()


def pointed():
    """Port 80 sends everybody to https, certbot too: `return` beside the location answers first."""
    for path in ('/a?b', '/.well-known/acme-challenge/token'):
        said, _ = curl(url=f'http://{HOST}{path}')
        if (said['http_code'], said['redirect_url']) != (301, f'https://{HOST}{path}'):
            return False
    said, body = curl('-L', url=f'http://{HOST}/.well-known/acme-challenge/token')
    return (said['http_code'], body) == (200, b'the answer to the challenge')


def turns():
    """The client's choice of version, a checked certificate, three servers in turn."""
    def found(asked):
        seen = collections.Counter()
        for _ in range(9):
            said, body = curl(asked)
            seen[said['http_version'], said['http_code'], said['ssl_verify_result'], json.loads(body)['from']] += 1
        return seen
    return all(found(asked) == {(spoken, 200, 0, f'127.0.0.{last}'): 3 for last in (2, 3, 4)} for asked, spoken in VERSIONS.items())


def bodies():
    """Bodies both ways."""
    (room / 'sent').write_bytes(POSTED)
    expected = {'length': len(POSTED), 'sha256': hashlib.sha256(POSTED).hexdigest()}
    for asked in VERSIONS:
        said, body = curl(asked, '--data-binary', f'@{room}/sent', url=f'https://{HOST}/digest')
        if said['http_code'] != 200 or json.loads(body) != expected:
            return False
        said, body = curl(asked, url=f'https://{HOST}/bytes?count={MIB}')
        if said['http_code'] != 200 or body != b'x' * MIB:
            return False
    return True


def large():
    """A body that is too large."""
    (room / 'large').write_bytes(bytes(MIB + 1))
    asked = (curl(version, '--data-binary', f'@{room}/large', url=f'https://{HOST}/digest')[0] for version in VERSIONS)
    return all(said['http_code'] == 413 for said in asked)


def session():
    """A session's cookie."""
    def known(version):
        jar = room / f'cookies{version}'
        curl(version, '-c', str(jar), '-d', 'user=reader', url=f'https://{HOST}/login')
        return json.loads(curl(version, '-b', str(jar), url=f'https://{HOST}/me')[1])
    return all(known(version) == {'user': 'reader'} for version in VERSIONS)


def chromium():
    """Chromium shows what the application said, and the access log says over which version."""
    said = subprocess.run([*CHROMIUM, f'--user-data-dir={room}/profile', f'https://{HOST}/'], capture_output=True, text=True,
                          timeout=120, env={**os.environ, 'HOME': str(room)})
    asked = [line for line in Path('/var/log/nginx/access.log').read_text().splitlines() if 'Chrome' in line]
    return '"hello":"world"' in said.stdout and bool(asked) and all('HTTP/2.0' in line for line in asked)


print(json.dumps({check.__name__: check() for check in (pointed, turns, bodies, large, session, chromium)}))
