#!/usr/bin/env python3
"""An evening of a newcomer with weir's packages, on a site as certbot leaves it, in a Debian 12 that boots.

    tests/evening2.py               # all parts
    tests/evening2.py fixes switch  # some of them

The site is nginx 1.22.1 with a certificate, a cache, two services of Express and Socket.IO, and an Artillery script (tests/evening2/). The newcomer
lets the doctor mend it, adopts it, puts weir in nginx's place and back, and looks at it, in English and in Korean. Nothing that weir writes, says
or switches on may hurt the site. The parts are the functions in PARTS; each begins with the same files.

Needs root, the packages of `cargo xtask package`, node, `npm ci --prefix tests/apps`, the packages of tests/lasting/python.txt in target/python, and
the programs of tests/machine.py."""

import argparse, glob, json, re, shutil, subprocess, sys, time
from pathlib import Path

import machine as debian
from machine import ROOT, output

FILES = ROOT / 'tests/evening2'
APPS = ROOT / 'tests/apps/node_modules'
CONF = '/etc/nginx/nginx.conf'
SITE = 'https://shop.example.kr'
# A note that a fix may bring (`MAY_COME` in crates/doctor/src/fixes.rs).
MAY_COME = ['cache_lock_polling']
# Sentences of a Korean page that no Korean engineer would write, and English left in one.
NOT_KOREAN = ['시작 못 한', '예정된 시작부터', '요청을 보낸 때부터', '두 번, weir에 한 번 묻습니다', '물음', '건 중 0건이 다릅니다', '닿지 않습니다', '부하를 보낼 수 없습니다',
              'doctor, risk', 'bytes a second', 'for all answers together', '(으)로 실행됩니다', '끝의 ', 'worker 0', 'unit drop-in', '(API of ']

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('parts', nargs='*', help='parts to run [default: all]')
parser.add_argument('--packages', type=Path, default=ROOT / 'target/package', help='the folder of the packages')
parser.add_argument('--room', type=Path, default=Path('/tmp/weir-package'), help='where the root of the machine is kept')
parser.add_argument('--modules', type=Path, default=APPS, help='the folder of the packages of npm')
parser.add_argument('--python', type=Path, default=ROOT / 'target/python', help='the environment of Python with the package h2')
chosen = parser.parse_args()

told = {True: 0, False: 0}


def holds(what, is_so, seen=''):
    told[bool(is_so)] += 1
    print(f'{"holds" if is_so else "FAILS"}  {what}' + ('' if is_so else '\n       ' + str(seen).strip()[-3000:].replace('\n', '\n       ')), flush=True)
    return bool(is_so)


class Evening(debian.Machine):
    """The machine with its site."""

    def does(self, command, what=None):
        code, said = self.run(command)
        holds(what or command, code == 0, said)
        return said

    def settle(self):
        """Installs nginx and the site."""
        self.copy()
        self.does('apt-get install --yes nginx ./weir.deb', 'apt-get install nginx weir')
        self.does('mkdir -p /etc/letsencrypt/live/shop.example.kr /var/www/shop /var/cache/nginx && cd /etc/letsencrypt/live/shop.example.kr && '
                  'openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 60 -subj /CN=shop.example.kr -addext subjectAltName=DNS:shop.example.kr '
                  '-keyout privkey.pem -out fullchain.pem 2>/dev/null && cp /opt/shop/options-ssl-nginx.conf /etc/letsencrypt/ && '
                  'echo 127.0.0.1 shop.example.kr >> /etc/hosts && rm /etc/nginx/sites-enabled/default && cp /opt/shop/shop /etc/nginx/sites-available/ && '
                  'ln -s ../sites-available/shop /etc/nginx/sites-enabled/shop && cp /opt/shop/app.service /etc/systemd/system/shop@.service && '
                  'systemctl daemon-reload && systemctl start shop@3000 shop@3001 && nginx -t && systemctl restart nginx', 'the site is set up')
        self.run('tar -cf /root/before.tar /etc/nginx /etc/letsencrypt')
        for _ in range(100):
            if self.status(f'{SITE}/health') == '200':
                break
            time.sleep(0.1)
        holds('the site answers', self.status(f'{SITE}/health') == '200', self.says('systemctl status nginx shop@3000'))

    def copy(self):
        shop = self.top / 'opt/shop'
        shop.mkdir(parents=True)
        for file in FILES.iterdir():
            shutil.copy(file, shop / file.name)
        shutil.copytree(chosen.modules.resolve(), shop / 'node_modules', symlinks=True)
        shutil.copy(shutil.which('node'), self.top / 'opt/node')
        shutil.copytree(ROOT / 'tests/lasting', self.top / 'opt/lasting')
        for packages in glob.glob(str(chosen.python / 'lib/python*/site-packages')):
            for name in ('h2', 'hpack', 'hyperframe'):
                shutil.copytree(Path(packages) / name, self.top / f'opt/lasting/{name}')

    def again(self):
        """The files and the server of the beginning."""
        self.run('if dpkg -s weir-nginx > /dev/null 2>&1; then apt-get remove --yes weir-nginx; fi')
        self.run('rm -rf /etc/nginx /etc/letsencrypt /var/cache/nginx/shop /var/backups/weir && tar -xf /root/before.tar -C / && : > /var/log/nginx/error.log && systemctl reset-failed nginx; systemctl restart nginx')

    def doctor(self, words='', file=CONF):
        """The findings, each as (rule, file, level)."""
        said = self.says(f'weir doctor {file} --json {words}')
        page = json.loads(said[said.index('{'):])
        return {(one['rule'], one.get('file', ''), one['level']) for one in page['findings']}

    def chat(self, transport):
        return self.says(f'cd /opt/shop && /opt/node chat.mjs {SITE} {transport}')

    def is_well(self, when):
        """Nobody notices anything: the site, its cache, its WebSocket, a reload and a restart."""
        holds(f'{when}: nginx -t, reload, restart', self.run('nginx -t && systemctl reload nginx && systemctl reset-failed nginx; systemctl restart nginx')[0] == 0, self.says('nginx -t; systemctl status nginx'))
        statuses = [self.status(f'{SITE}{path}') for path in ('/', '/health', '/api/orders/1')] + [self.status('http://shop.example.kr/')]
        holds(f'{when}: pages {" ".join(statuses)}', statuses == ['200', '200', '200', '301'])
        for transport in ('websocket', 'polling'):
            said = self.chat(transport)
            holds(f'{when}: Socket.IO over {transport} says {said}', said == 'hello')


def one_fix(one):
    """The fix of one rule, as the guide has it: the undo file is in no folder that nginx includes."""
    said = one.does(f'weir doctor {CONF} --only upstream_without_keepalive --fix --write')
    holds('it has changed the site', one.run('cmp -s /opt/shop/shop /etc/nginx/sites-available/shop')[0] != 0, said)
    listing = one.says('ls -A /etc/nginx/sites-enabled /etc/nginx/conf.d')
    holds('no file is beside the site', listing.split() == ['/etc/nginx/conf.d:', '/etc/nginx/sites-enabled:', 'shop'], listing)
    one.is_well('after one fix')
    one.does('weir doctor --undo')
    holds('--undo gives the files back', one.run('cmp /opt/shop/shop /etc/nginx/sites-available/shop')[0] == 0)


def all_fixes(one):
    """The fixes of all rules at once: no new finding, no file of certbot, no note, and WebSockets go on."""
    before, marks = one.doctor(), one.says("grep -h 'managed by Certbot' /etc/nginx/sites-available/shop; md5sum /etc/letsencrypt/options-ssl-nginx.conf")
    one.does(f'weir doctor {CONF} --fix --write')
    after = one.doctor()
    new = {one for one in after - before if one[0] not in MAY_COME}
    holds(f'of {len(before)} findings {len(before - after)} are gone, none is new', not new and before - after, after - before)
    holds('the lines and files of certbot are as before', one.says("grep -h 'managed by Certbot' /etc/nginx/sites-available/shop; md5sum /etc/letsencrypt/options-ssl-nginx.conf") == marks)
    holds('lines without an effect stay', one.run("grep -q 'tcp_nodelay on' /etc/nginx/sites-available/shop && grep -q 'proxy_read_timeout 60s' /etc/nginx/sites-available/shop")[0] == 0)
    one.is_well('after all fixes')
    again = one.doctor()
    one.does(f'weir doctor {CONF} --fix --write', 'the same once more')
    holds('the second run finds nothing more to change', one.doctor() == again)


def ports(one):
    """1000 local ports, an origin on loopback, no keepalive: 150 requests a second succeed, so nothing says that 16 are the most."""
    output('nsenter', '-t', one.leader, '-n', 'sysctl', '-qw', 'net.ipv4.ip_local_port_range=20000 20999')
    said = one.says(f'weir doctor {CONF} --only upstream_without_keepalive')
    most = [int(number.replace(',', '')) for number in re.findall(r'(?:Above|enough for) ([\d,]+) requests', said)]
    run = json.loads(one.says(f'weir load {SITE}/api/orders/1 -k -R 150 -d 10s -o /tmp/run.json > /dev/null; cat /tmp/run.json'))['aggregate']['counters']
    output('nsenter', '-t', one.leader, '-n', 'sysctl', '-qw', 'net.ipv4.ip_local_port_range=32768 60999')
    holds(f'{run.get("http.codes.200")} of {run.get("http.requests")} requests succeed', run.get('http.codes.200') == run.get('http.requests') and run.get('http.requests', 0) >= 1490, run)
    holds(f'the doctor names {most} requests a second at most', most and min(most) >= 1000, said)


def personal(one):
    """What the doctor says of a cache fits this file, which has no proxy_ignore_headers."""
    said = one.says(f'weir doctor {CONF} --only cache_personal_content') + one.says(f'WEIR_LANG=ko weir doctor {CONF} --only cache_personal_content')
    holds('no remedy about a line that is not there', 'from proxy_ignore_headers' not in said and 'proxy_ignore_headers에서' not in said, said)


def limits(one):
    """A limit of open files: nothing is written without --write, and there is one remedy."""
    for language in ('en', 'ko'):
        said = one.says(f'WEIR_LANG={language} weir doctor --pid $(cat /run/nginx.pid) --fix --host')
        holds(f'{language}: nothing is written, and the page says how to write', '--write' in said and one.run('ls /etc/systemd/system/nginx.service.d')[0] != 0, said)
        wanted = set(re.findall(r'(?:LimitNOFILE=|worker_rlimit_nofile )(\d+)', said))
        holds(f'{language}: one figure for one cause: {", ".join(sorted(wanted)) or "none"}', len(wanted) <= 1, said)


def adopt(one):
    """`weir adopt` tells what matters most: kept connections, a cold cache; it compares with the nginx that runs here."""
    for number in range(30):
        one.run(f'curl -sk {SITE}/api/orders/{number} {SITE}/ -o /dev/null -o /dev/null')
    said = one.does('weir adopt')
    holds('connections to origins and the cache come first', 0 <= said.find('HTTP/1.1') and 'cache' in said.lower(), said)
    holds('it compares with nginx 1.22.1, whose upstreams keep no connection', 'nginx: 32' not in said, said)


def switch(one):
    """weir in nginx's place and back, under HTTP/1, HTTP/2, WebSockets, gRPC and TCP: nothing is lost."""
    one.does('cp /opt/shop/lasting.conf /etc/nginx/conf.d/ && nginx -t && systemctl reload nginx', 'the load has its servers')
    for way, command in (('to weir', 'apt-get install --yes ./weir-nginx.deb'), ('back to nginx', 'apt-get remove --yes weir-nginx')):
        with Load(one) as load:
            said = one.does(command)
        holds(f'{way}: {load.said}', load.is_whole, load.why)
        holds(f'{way}: no restart was needed', 'failed' not in said, said)
    one.run('rm -f /etc/nginx/conf.d/lasting.conf')


def in_place(one):
    """weir in nginx's place: one edge, whose dashboard is one line away and stops nothing; an old cache is no critical event."""
    for number in range(20):
        one.run(f'curl -sk {SITE}/{number} -o /dev/null')
    said = one.does('apt-get install --yes ./weir-nginx.deb')
    holds('the installation says how to see the site', 'dashboard on;' in said, said)
    holds('no second edge is left', one.says('systemctl is-active weir') == 'inactive', one.says('systemctl status weir'))
    holds('the program of nginx.service is weir', one.server() == '/usr/bin/weir', one.server())
    log = one.says('cat /var/log/nginx/error.log')
    holds('the log has no critical event', not re.search(r'\[(crit|alert|emerg)\]', log), log)
    listing = one.says('weir top --list')
    holds('weir top --list has the edge, without a dashboard', re.search(rf'pid {one.says("cat /run/nginx.pid")}\b.*no dashboard', listing), listing)
    one.does(f"sed -i '1i dashboard on;' {CONF}", 'dashboard on; is written')
    one.is_well('with a dashboard')
    listing = one.says('weir top --list')
    found = re.search(r'127\.0\.0\.1:(\d+)', listing)
    if holds('weir top --list has its address', found, listing):
        address = found.group(0)
        one.does(f'weir top {address} --once', f'weir top {address} --once')
        one.does(f'weir status {address}', f'weir status {address}')
        ages = [float(one.says(f'now=$(date +%s.%N); curl -s http://{address}/doc.json > /tmp/doc; python3 -c "import json; d = json.load(open(\'/tmp/doc\')); print($now - d[\'at\'] / (1000 if d[\'at\'] > 1e11 else 1))"')) for _ in range(3)]
        holds(f'the document is {max(ages):.2f} s old at most', max(ages) < 2, ages)
    # Another program has the first port of a dashboard.
    one.run('systemctl stop nginx; (python3 -m http.server 9144 --bind 127.0.0.1 < /dev/null > /dev/null 2>&1 & echo $! > /tmp/other); sleep 1')
    one.does('systemctl start nginx', 'beside another program at 127.0.0.1:9144, nginx.service starts')
    holds('and serves', one.status(f'{SITE}/health') == '200')
    one.run('kill $(cat /tmp/other)')
    said = one.run('apt-get remove --yes weir-nginx')
    holds('a removal with a dashboard is refused, with the reason', said[0] != 0 and 'dashboard' in said[1], said[1])
    one.does(f"sed -i '/^dashboard on;/d' {CONF} && apt-get remove --yes weir-nginx", 'without the line it is removed')
    holds('weir.service is back', one.says('systemctl is-active weir') == 'active', one.says('systemctl status weir'))
    holds('nginx serves', (one.server(), one.status(f'{SITE}/health')) == ('/usr/sbin/nginx', '200'), one.server())


def reloads(one):
    """40 reloads beside two loops of new HTTP/2 connections: no request fails."""
    loop = (f'(n=0; f=0; while [ -e /tmp/loop ]; do n=$((n+1)); curl -sk --http2 -o /dev/null {SITE}/health || f=$((f+1)); done; echo "$n $f" >> /tmp/loops) < /dev/null > /dev/null 2>&1 &')
    for name in ('nginx', 'weir'):
        if name == 'weir':
            one.does('apt-get install --yes ./weir-nginx.deb')
        one.run(f'rm -f /tmp/loops; touch /tmp/loop; {loop} {loop} for i in $(seq 40); do nginx -s reload; sleep 0.2; done; rm /tmp/loop; sleep 2')
        loops = [tuple(map(int, line.split())) for line in one.says('cat /tmp/loops').splitlines()]
        asked, failed = (sum(column) for column in zip(*loops))
        if name == 'weir':
            holds(f'weir: {failed} of {asked} requests fail', failed == 0 and asked > 100)
        else:
            print(f'       nginx 1.22.1: {failed} of {asked} requests fail')


def script(one):
    """An Artillery script with engine: socketio-v3 runs unchanged."""
    for language in ('en', 'ko'):
        code, said = one.run(f'cd /opt/shop && WEIR_LANG={language} weir load load.yml -o /tmp/report.json')
        counters = json.loads(one.says('cat /tmp/report.json'))['aggregate']['counters']
        holds(f'{language}: {counters.get("vusers.completed")} of {counters.get("vusers.created")} users complete', code == 0 and counters.get('vusers.completed') == counters.get('vusers.created'), said)


def korean(one):
    """What a Korean reads in an evening: no sentence that is not Korean."""
    one.run('apt-get install --yes ./weir-nginx.deb')
    commands = [f'weir doctor {CONF}', f'weir doctor {CONF} --fix', 'weir doctor --pid $(cat /run/nginx.pid) --fix --host', 'weir adopt --nginx /usr/sbin/nginx.distrib', 'weir status', 'weir top --list',
                f'weir load {SITE}/health -k -R 20 -d 2s', 'cd /opt/shop && weir load load.yml', 'weir top http:/nonsense']
    for command in commands:
        said = one.says(f'export WEIR_LANG=ko; {command}')
        odd = [words for words in NOT_KOREAN if words in said]
        holds(f'{command}: {len(said.splitlines())} lines', not odd and re.search('[가-힣]', said), f'{odd}\n{said}')


class Load:
    """The clients of tests/lasting, in the machine, during a block."""

    def __init__(self, one):
        self.one = one

    def __enter__(self):
        self.one.run('rm -f /tmp/load.*; touch /tmp/load.on; (cd /opt/lasting && python3 attach.py > /tmp/load.out 2>&1; touch /tmp/load.done) < /dev/null > /dev/null 2>&1 &')
        time.sleep(3)
        return self

    def __exit__(self, *_):
        time.sleep(3)
        self.one.run('rm -f /tmp/load.on; for i in $(seq 300); do [ -e /tmp/load.done ] && break; sleep 0.1; done')
        lines = self.one.says('cat /tmp/load.out').splitlines() or ['nothing was printed']
        self.said, self.why, self.is_whole = lines[-1], '\n'.join(lines), lines[-1].startswith('lost 0 of ')


PARTS = [one_fix, all_fixes, ports, personal, limits, adopt, in_place, switch, reloads, script, korean]


def main():
    names = {part.__name__: part for part in PARTS}
    unknown = [name for name in chosen.parts if name not in names]
    if unknown:
        sys.exit(f'no such part: {", ".join(unknown)}; there are {", ".join(names)}')
    with Evening(chosen.room, chosen.packages) as one:
        one.settle()
        for part in [names[name] for name in chosen.parts] or PARTS:
            print(f'{part.__name__}: {part.__doc__}', flush=True)
            one.again()
            part(one)
    print(f'{told[True]} hold, {told[False]} fail')
    sys.exit(1 if told[False] else 0)


if __name__ == '__main__':
    main()
