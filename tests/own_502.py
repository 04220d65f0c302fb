#!/usr/bin/env python3
"""Two tasks of a new user, from `apt install` to a verdict about 502s, in a Debian 12 that boots.

    tests/own_502.py             # both tasks
    tests/own_502.py stay        # one of them

The applications are published ones: Node-RED and Verdaccio from npm, httpbin with gunicorn from PyPI. Debian's nginx 1.22.1 stands before
each of them with the configuration of a manual (tests/own_502/)."""

import argparse, json, re, shutil, sys, time
from pathlib import Path

import machine as debian
from machine import ROOT

FILES = ROOT / 'tests/own_502'
APPS = ('flows', 'registry', 'httpbin')
CONF = '/etc/nginx/nginx.conf'

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('parts', nargs='*', help='parts to run [default: all]')
parser.add_argument('--packages', type=Path, default=ROOT / 'target/package', help='the folder of the packages of weir')
parser.add_argument('--room', type=Path, default=Path('/tmp/weir-package'), help='where the root of the machine is kept')
parser.add_argument('--modules', type=Path, default=ROOT / 'target/own_502', help='the folder of the applications, with npm/ and python/')
chosen = parser.parse_args()

told = {True: 0, False: 0}


def holds(what, is_so, seen=''):
    told[bool(is_so)] += 1
    print(f'{"holds" if is_so else "FAILS"}  {what}' + ('' if is_so else '\n       ' + str(seen).strip()[-3000:].replace('\n', '\n       ')), flush=True)
    return bool(is_so)


class Site(debian.Machine):
    """The machine with nginx and the three applications."""

    def does(self, command, what=None):
        code, said = self.run(command)
        holds(what or command, code == 0, said)
        return said

    def settle(self):
        own = self.top / 'opt/own'
        shutil.copytree(FILES, own)
        for name in ('npm', 'python'):
            shutil.copytree((chosen.modules / name).resolve(), self.top / 'opt' / name, symlinks=True)
        shutil.copy(shutil.which('node'), self.top / 'opt/node')
        self.does('apt-get install --yes nginx', 'apt-get install nginx')
        names = ' '.join(f'{name}.example.org' for name in APPS)
        # The table of hosts as Debian's installer writes it.
        self.does(f'printf "127.0.0.1 localhost {names}\n::1 localhost ip6-localhost ip6-loopback\n" > /etc/hosts; mkdir -p /var/lib/node-red /var/lib/verdaccio; rm /etc/nginx/sites-enabled/default; cd /opt/own && '
                  f'for app in {" ".join(APPS)}; do cp $app /etc/nginx/sites-available/ && ln -s ../sites-available/$app /etc/nginx/sites-enabled/ && '
                  'cp $app.service /etc/systemd/system/; done && systemctl daemon-reload && systemctl start ' + ' '.join(APPS) + ' && nginx -t && systemctl restart nginx',
                  'three applications stand behind nginx')
        self.run('mkdir -p /root/before && cp -a /etc/nginx /etc/systemd/system /root/before/')
        for _ in range(100):
            if self.run('curl -sf -o /dev/null http://flows.example.org/ && curl -sf -o /dev/null http://httpbin.example.org/get && curl -sfg -o /dev/null http://[::1]:4873/-/ping')[0] == 0:
                break
            time.sleep(0.3)
        # How long the application keeps an idle connection: Node.js 5 or 6 s, by its version.
        self.idle = float(self.says('python3 -c "import socket, time\nc = socket.create_connection((\'127.0.0.1\', 1880))\nc.sendall(b\'GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n\')\nlast = time.time()\n'
                                    'while c.recv(65536):\n    last = time.time()\nprint(time.time() - last)"'))
        holds(f'Node-RED closes an idle connection after {self.idle:.1f} s', 4 < self.idle < 8)

    def again(self):
        """The files and the programs of the beginning."""
        self.run('if dpkg -s weir > /dev/null 2>&1; then sed -i "/^dashboard on;/d" /etc/nginx/nginx.conf; apt-get purge --yes weir weir-nginx; fi; '
                 'rm -rf /etc/nginx /etc/systemd/system; cp -a /root/before/nginx /root/before/system -t /etc; mv /etc/system /etc/systemd/system; '
                 f': > /var/log/nginx/error.log; systemctl daemon-reload; systemctl restart {" ".join(APPS)} nginx; sleep 5')

    def traffic(self, app, is_watched=False):
        """The user's traffic: (requests, 502s, other failures), and what the user sees meanwhile: the last screen of `weir top` that has a failure, and `weir status`."""
        self.run('rm -f /tmp/*.json /tmp/watch; touch /tmp/on')
        side = f'weir load screen.yml -q -v \'{{"pause":"{self.idle - 0.1:.2f}s"}}\' -o /tmp/screen.json > /dev/null 2>&1 &' if app == 'flows' else ''
        watch = ('(while [ -e /tmp/on ]; do weir top --once > /tmp/now; if grep -q failing /tmp/now || ! [ -e /tmp/watch ]; then cp /tmp/now /tmp/watch; fi; sleep 2; done; '
                 'weir status >> /tmp/watch) > /dev/null 2>&1 &' if is_watched else '')
        self.run(f'cd /opt/own; {side} {watch} weir load {app}.yml -q --seed 7 -o /tmp/{app}.json > /dev/null 2>&1; rm /tmp/on; wait')
        asked = bad = other = 0
        for name in self.says('ls /tmp/*.json').split():
            counters = json.loads(self.says(f'cat {name}'))['aggregate']['counters']
            asked += counters.get('http.requests', 0)
            bad += counters.get('http.codes.502', 0)
            other += sum(number for key, number in counters.items() if key.startswith('errors.') or key == 'vusers.failed' or re.match('http.codes.(?!502)[45]', key))
        return asked, bad, other, self.says('cat /tmp/watch') if is_watched else ''

    def is_healed(self, app, before):
        asked, bad, other, _ = self.traffic(app)
        holds(f'{app}: {before} 502s before, {bad} of {asked} requests after', before > 0 and asked > 0 and (bad, other) == (0, 0), (asked, bad, other))

    def comms(self):
        """The status line of a handshake at the editor's WebSocket."""
        return self.says("curl -s -i -m 3 --http1.1 -H 'Connection: Upgrade' -H 'Upgrade: websocket' -H 'Sec-WebSocket-Version: 13' "
                         "-H 'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==' http://flows.example.org/comms | head -1")


# What stands behind each server, nginx's words, and the place in the configuration.
FAULTS = {
    'registry': ('127.0.0.1:4873', 'connect() failed (111: Connection refused)', 'location / (/etc/nginx/sites-enabled/registry:6)', 'connection refused'),
    'flows': ('127.0.0.1:1880', '(104: Connection reset by peer)', 'location / (/etc/nginx/sites-enabled/flows:6)', 'reset'),
    'httpbin': ('unix:/run/httpbin/gunicorn.sock', 'upstream prematurely closed connection', 'location / (/etc/nginx/sites-enabled/httpbin:9)', 'closed'),
}


def mend(one, app):
    """What the doctor prints as the remedy."""
    if app == 'httpbin':
        said = one.says('journalctl -u httpbin --output cat')
        holds("gunicorn's log has the line that the doctor names", 'WORKER TIMEOUT' in said, said[-2000:])
        one.does("sed -i 's/--timeout 5/--timeout 30 --workers 4/; s/--workers 2 //' /etc/systemd/system/httpbin.service && systemctl daemon-reload && systemctl restart httpbin && sleep 2",
                 "gunicorn's --timeout is raised")
        return
    rule = {'registry': 'origin_listens_elsewhere', 'flows': 'upstream_idle_timeout'}[app]
    one.does(f'weir doctor --fix --only {rule} --write && nginx -t && systemctl reload nginx')


def stay(one):
    """Task 1, nginx stays: install weir, ask the doctor, do what it says, and load again."""
    one.does('apt-get install --yes ./weir.deb')
    before = {app: one.traffic(app)[1] for app in APPS}
    said = one.says('weir doctor 502')
    parts = said.split('The configuration and this machine')
    for app, (peer, words, place, _) in FAULTS.items():
        block = next((block for block in parts[0].split('\n\n') if words in block), '')
        holds(f'{app}: {before[app]} 502s; the doctor names {words}, {peer}, {place}', f'{peer} ×{before[app]}' in block and f'{place} ×{before[app]}' in block, said)
    holds('the doctor names the address at which Verdaccio listens', 'nothing listens at 127.0.0.1:4873 on this machine now, but a program listens at [::1]:4873' in said, said)
    holds('the doctor names the idle connections of Node-RED', re.search(r'sites-enabled/flows:\d+ +upstream_idle_timeout', said), said)
    holds('the doctor names the command that mends the first finding', '--fix --only origin_listens_elsewhere' in said, said)
    holds("the doctor names gunicorn's timeout", 'WORKER TIMEOUT' in said, said)
    for app in FAULTS:
        mend(one, app)
    for app in FAULTS:
        one.is_healed(app, before[app])
    holds('the WebSocket of the editor opens', '101' in one.comms(), one.comms())
    one.run(': > /var/log/nginx/error.log')
    holds('the doctor has no reason left', one.run('weir doctor 502')[0] == 0, one.says('weir doctor 502'))


def switch(one):
    """Task 2, weir in nginx's place: see the failures live, mend them, and go back to nginx."""
    said = one.does('apt-get install --yes ./weir.deb ./weir-nginx.deb', 'apt-get install weir-nginx')
    holds('the site runs on weir', one.server() == '/usr/bin/weir', said)
    one.does(f"sed -i '1i dashboard on;' {CONF} && systemctl reload nginx && sleep 1", 'dashboard on; as the installation says')
    asked, bad, other, _ = one.traffic('flows')
    holds(f'flows: weir stops before Node-RED closes an idle connection: {bad} of {asked} fail', asked > 0 and (bad, other) == (0, 0), (asked, bad, other))
    before, faults = {}, {app: fault for app, fault in FAULTS.items() if app != 'flows'}
    for app, (peer, _, _, cause) in faults.items():
        asked, before[app], _, seen = one.traffic(app, is_watched=True)
        # A long verdict takes two lines.
        found = re.search(r'^[■▲●] .*?(?=\nrequests )', seen, re.M | re.S)
        verdict = ' '.join(found.group(0).split()) if found else ''
        holds(f'{app}: {before[app]} of {asked} fail, live: {verdict}', f'{app}.example.org' in verdict and peer in verdict, seen)
        holds(f'{app}: weir status has "502 {cause}" with the upstream', re.search(rf'502 {cause} +{before[app]} +failed .*\n +{app}.example.org +[A-Z]+ /\S* → {re.escape(peer)}\n', seen), seen)
    for app in faults:
        mend(one, app)
    for app in faults:
        one.is_healed(app, before[app])
    holds('the WebSocket of the editor opens', '101' in one.comms(), one.comms())
    time.sleep(11)
    said = one.says('weir top --once')
    holds('weir top finds no failure', 'failing' not in said, said)
    one.does(f"sed -i '/^dashboard on;/d' {CONF} && apt-get remove --yes weir-nginx", 'apt-get remove weir-nginx')
    holds('the site runs on nginx', one.server() == '/usr/sbin/nginx', one.server())
    for app in faults:
        one.is_healed(app, before[app])


PARTS = [stay, switch]


def main():
    names = {part.__name__: part for part in PARTS}
    unknown = [name for name in chosen.parts if name not in names]
    if unknown:
        sys.exit(f'no such part: {", ".join(unknown)}; there are {", ".join(names)}')
    with Site(chosen.room, chosen.packages) as one:
        one.settle()
        for part in [names[name] for name in chosen.parts] or PARTS:
            print(f'{part.__name__}: {part.__doc__}', flush=True)
            one.again()
            begin = time.monotonic()
            part(one)
            seconds = time.monotonic() - begin
            holds(f'{part.__name__} takes {seconds:.0f} s', seconds < 600)
    print(f'{told[True]} passed, {told[False]} failed')
    sys.exit(1 if told[False] else 0)


if __name__ == '__main__':
    main()
