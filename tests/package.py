#!/usr/bin/env python3
"""The Debian packages of `cargo xtask package`, in a Debian that boots with systemd in a container of its own.

    tests/package.py                       # all parts, in Debian 12
    tests/package.py switch refusal        # some of them
    WEIR_DEBIAN=trixie tests/package.py    # in Debian 13

The parts are the functions in PARTS. Needs root, lintian, piuparts, and the programs of tests/machine.py."""

import argparse, json, os, re, shutil, subprocess, sys, time
from pathlib import Path

import machine as debian
from machine import MIRROR, MODULES, ROOT, output

# Units of systemd have at most this exposure, as `systemd-analyze security` counts it (0 is closed, 10 is open).
EXPOSURE_MAX = 2.5

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('parts', nargs='*', help='parts to run [default: all]')
parser.add_argument('--packages', type=Path, default=ROOT / 'target/package', help='the folder of the packages')
parser.add_argument('--pebble', type=Path, default=Path.home() / 'go/bin', help='the folder of pebble and pebble-challtestsrv')
parser.add_argument('--room', type=Path, default=Path('/tmp/weir-package'), help='where the roots are kept')
chosen = parser.parse_args()

told = {True: 0, False: 0}


def holds(what, is_so, seen=''):
    told[bool(is_so)] += 1
    print(f'{"holds" if is_so else "FAILS"}  {what}' + ('' if is_so else '\n       ' + str(seen).strip().replace('\n', '\n       ')), flush=True)
    return bool(is_so)


def deb(name):
    return debian.deb(chosen.packages, name)


class Machine(debian.Machine):
    """A Debian that tells which of its commands failed."""

    def __init__(self):
        super().__init__(chosen.room, chosen.packages)

    def does(self, command, what=None):
        code, said = self.run(command)
        holds(what or command, code == 0, said)
        return said

    def apt(self, *packages):
        return self.does('apt-get install --yes ' + ' '.join(packages))


# A client that asks again and again, on a new connection each time, until its file is removed.
CLIENT = '''
import http.client, os, time
asked = failed = 0
open('/tmp/asking', 'w').close()
while os.path.exists('/tmp/asking'):
    asked += 1
    try:
        one = http.client.HTTPConnection('127.0.0.1', 80, timeout=5)
        one.request('GET', '/')
        failed += one.getresponse().status != 200
        one.close()
    except Exception as error:
        failed += 1
        print(error)
    time.sleep(0.002)
print(asked, failed)
'''


class Asking:
    """A client that asks during a block; afterwards `failed` of `asked` requests had no 200."""

    def __init__(self, machine):
        self.machine = machine

    def __enter__(self):
        (self.machine.top / 'root/client.py').write_text(CLIENT)
        self.machine.run('rm -f client.done; (python3 client.py > client.log 2>&1; touch client.done) < /dev/null > /dev/null 2>&1 &')
        time.sleep(1)
        return self

    def __exit__(self, *_):
        time.sleep(1)
        self.machine.run('rm -f /tmp/asking; for i in $(seq 100); do [ -e client.done ] && break; sleep 0.1; done')
        self.said = self.machine.says('cat client.log')
        self.asked, self.failed = map(int, self.said.splitlines()[-1].split())

    def is_whole(self, what):
        holds(f'{what}: {self.failed} of {self.asked} requests failed', self.failed == 0 and self.asked > 100, self.said)


def lintian():
    """lintian finds no error and no warning."""
    for name in ['weir', 'weir-nginx']:
        code, said = output('lintian', '--tag-display-limit', '0', '--allow-root', '--fail-on', 'error,warning', deb(name))
        holds(f'lintian {deb(name).name}', code == 0, said)


def piuparts():
    """piuparts: install, remove, purge; and again over an installed version."""
    tar = debian.root(chosen.room, 'base', '--include=ca-certificates,init-system-helpers')
    packed = Path(f'{tar}.gz')
    if not packed.exists():
        subprocess.run(f'gzip -1c {tar} > {packed}', shell=True, check=True)
    for packages in [['weir'], ['weir', 'weir-nginx']]:
        code, said = output('piuparts', '--distribution', debian.RELEASE, '--mirror', f'{MIRROR} main', '--basetgz', packed,
                            *[deb(name) for name in packages], env={**os.environ, 'TMPDIR': str(chosen.room)})
        holds(f'piuparts {" ".join(packages)}', code == 0, said[-3000:])


def unit():
    """The unit is closed as far as it can be, and systemd finds nothing wrong with it."""
    with Machine() as machine:
        machine.apt('./weir.deb')
        said = machine.does('systemd-analyze verify weir.service', 'systemd-analyze verify weir.service')
        holds('the unit has no remark', said.strip() == '', said)
        code, said = machine.run('systemd-analyze security --offline=true --no-pager weir.service')
        exposure = re.search(r'Overall exposure level for weir.service: ([0-9.]+)', said)
        holds(f'exposure {exposure and exposure.group(1)}, at most {EXPOSURE_MAX}', exposure and float(exposure.group(1)) <= EXPOSURE_MAX, said)


def service():
    """`apt install`: the dashboard answers at once; reload, rotation, restart, purge."""
    with Machine() as machine:
        machine.apt('./weir.deb')
        holds('weir.service is active', machine.says('systemctl is-active weir') == 'active', machine.says('systemctl status weir; journalctl -u weir'))
        holds('the dashboard answers', machine.status('http://127.0.0.1:9144/') == '200')
        listening = machine.says("ss -Hltn | awk '{ print $4 }'")
        holds('it listens on loopback alone', listening == '127.0.0.1:9144', listening)
        user = machine.says('ps -o user= -C weir')
        holds('its user is not root', user and 'root' not in user, user)
        machine.does('printf "server { listen 80; location / { return 200 own; } }" > /etc/weir/conf.d/own.conf && systemctl reload weir')
        time.sleep(1)
        holds('a server is added by reload, on port 80', machine.says('curl -s http://127.0.0.1/') == 'own', machine.says('journalctl -u weir'))
        machine.does('echo nonsense > /etc/weir/conf.d/bad.conf; ! systemctl reload weir; rm /etc/weir/conf.d/bad.conf', 'a bad file is refused at reload')
        holds('and the server goes on', machine.says('curl -s http://127.0.0.1/') == 'own')
        machine.does('weir edge -t -p /var/lib/weir/ -c /etc/weir/nginx.conf', 'weir edge -t by root')
        machine.does('logrotate --force /etc/logrotate.d/weir')
        time.sleep(1)
        machine.run('curl -s http://127.0.0.1/after-rotation')
        time.sleep(1)
        holds('after a rotation, lines go to the new file', 'after-rotation' in machine.says('cat /var/log/weir/access.log'), machine.says('ls -l /var/log/weir/'))
        with Asking(machine) as asking:
            machine.does('systemctl restart weir')
            machine.does('systemctl kill --signal=KILL --kill-who=main weir; sleep 2', 'weir is killed')
        # A request under way is lost with the process; one that comes later waits.
        holds(f'a restart and a crash: {asking.failed} of {asking.asked} requests failed, at most 1', asking.failed <= 1 and asking.asked > 100, asking.said)
        holds('it answers after a restart', machine.says('curl -s http://127.0.0.1/') == 'own', machine.says('journalctl -u weir'))
        machine.does('man -w weir && man -w weir-edge && man -w weir-lab-ab', 'man pages are found')
        holds('bash completes', 'doctor' in machine.says('bash -c ". /usr/share/bash-completion/bash_completion; _completion_loader weir; COMP_WORDS=(weir do); COMP_CWORD=1; _weir weir do weir; echo \\${COMPREPLY[@]}"'))
        machine.does('ls /usr/share/weir/prometheus/weir.rules.yml /usr/share/weir/grafana/weir.json /usr/share/weir/grafana/weir.ko.json', 'rules for Prometheus and dashboards for Grafana are there')
        machine.does('ls /usr/share/weir/ci/action.yml /usr/share/weir/ci/gitlab.yml /usr/share/weir/editors/neovim/weir.lua /usr/share/weir/editors/vscode/package.json', 'files for pipelines and editors are there')
        holds('weir lab list finds the labs from any folder', 's2' in machine.says('cd / && weir lab list'))
        machine.does('ls /usr/share/doc/weir/html/index.html /usr/share/doc/weir/html/ko/search-index.js', 'the book is there')
        for example in machine.says('ls /usr/share/doc/weir/examples/*.conf').split():
            machine.does(f'weir edge -t -p /tmp/ -e stderr -c {example}', f'weir accepts {example}')
        machine.does('rm /etc/weir/conf.d/own.conf && apt-get purge --yes weir')
        holds('purge leaves no file', machine.says('find / -xdev -name "*weir*" -not -path "/root/*" -not -path "/proc/*" -not -path "/var/lib/apt/*" -not -path "/var/log/journal/*"') == '',
              machine.says('find / -xdev -name "*weir*" -not -path "/root/*"'))


def fresh():
    """weir-nginx where no nginx was: nginx.service, /etc/nginx, and packages that depend on nginx."""
    with Machine() as machine:
        machine.apt('./weir.deb', './weir-nginx.deb')
        holds('nginx.service runs weir', machine.server() == '/usr/bin/weir', machine.says('systemctl status nginx; journalctl -u nginx'))
        holds('Debian\'s page answers', machine.status() == '200')
        holds('Debian\'s nginx is not installed', machine.run('dpkg -s nginx')[0] != 0)
        machine.apt('python3-certbot-nginx')
        holds('certbot\'s plugin needs no nginx beside it', machine.run('dpkg -s nginx')[0] != 0)
        holds('certbot knows the plugin', '* nginx' in machine.says('certbot plugins'), machine.says('certbot plugins'))
        machine.does('apt-get purge --yes weir-nginx weir && apt-get autoremove --purge --yes')
        holds('nobody answers after the removal', machine.status() == '000')


def switch():
    """nginx serves; weir takes its place and gives it back, and no request fails."""
    with Machine() as machine:
        machine.apt('nginx')
        holds('nginx serves', (machine.server(), machine.status()) == ('/usr/sbin/nginx', '200'), machine.says('systemctl status nginx'))
        before = machine.says('curl -s http://127.0.0.1/; md5sum /usr/sbin/nginx; find /etc/nginx -type f | sort | xargs md5sum')
        with Asking(machine) as asking:
            machine.apt('./weir.deb', './weir-nginx.deb')
        asking.is_whole('the switch to weir')
        holds('nginx.service runs weir', machine.server() == '/usr/bin/weir', machine.says('systemctl status nginx; cat /var/log/nginx/error.log'))
        holds('nobody else may write the pid file', machine.says('stat -c %a /run/nginx.pid') == '644', machine.says('ls -l /run/nginx.pid'))
        machine.does('mv /var/log/nginx/access.log /var/log/nginx/old; nginx -s reopen')
        time.sleep(1)
        holds('it obeys signals, which nginx had blocked', machine.run('test -e /var/log/nginx/access.log')[0] == 0)
        holds('systemd knows its process', machine.says('systemctl show -P MainPID nginx') == machine.says('cat /run/nginx.pid'))
        for action in ['reload', 'restart']:
            machine.does(f'systemctl {action} nginx')
            holds(f'it answers after {action}', (machine.server(), machine.status()) == ('/usr/bin/weir', '200'))
        machine.does('nginx -s reload && nginx -t')
        machine.does('logrotate --force /etc/logrotate.d/nginx')
        time.sleep(1)
        machine.run('curl -s http://127.0.0.1/after-rotation')
        time.sleep(1)
        holds('after a rotation, lines go to the new file', 'after-rotation' in machine.says('cat /var/log/nginx/access.log'), machine.says('ls -l /var/log/nginx'))
        with Asking(machine) as asking:
            machine.does('apt-get install --yes --reinstall ./weir.deb ./weir-nginx.deb')
        asking.is_whole('another version of weir')
        with Asking(machine) as asking:
            said = machine.does('apt-get remove --yes weir-nginx')
        asking.is_whole('the switch back to nginx')
        holds('it needed no restart', 'failed' not in said, said)
        machine.apt('./weir-nginx.deb')
        said = machine.does('apt-get remove --yes weir-nginx', 'there and back again, without a restart between')
        holds('it needed no restart', 'failed' not in said, said)
        holds('nginx.service runs nginx', machine.server() == '/usr/sbin/nginx', machine.says('systemctl status nginx'))
        holds('nginx and its files are as before', machine.says('curl -s http://127.0.0.1/; md5sum /usr/sbin/nginx; find /etc/nginx -type f | sort | xargs md5sum') == before)
        holds('no diversion is left', 'weir' not in machine.says('dpkg-divert --list'))
        machine.does('systemctl restart nginx')
        holds('nginx answers after a restart', (machine.server(), machine.status()) == ('/usr/sbin/nginx', '200'))
        machine.does('systemctl stop nginx')
        machine.apt('./weir-nginx.deb')
        holds('a server that was stopped stays stopped', machine.says('systemctl is-active nginx') == 'inactive')
        machine.does('apt-get purge --yes weir-nginx')
        holds('and after the removal too', machine.says('systemctl is-active nginx') == 'inactive')


def refusal():
    """A configuration that weir or nginx refuses: nothing is switched, and the message names the remedy."""
    with Machine() as machine:
        machine.apt('nginx-core', 'libnginx-mod-http-perl')
        machine.does('printf "perl_set \\$a \'sub { return 1; }\';" > /etc/nginx/conf.d/own.conf && nginx -t && systemctl reload nginx')
        code, said = machine.run('apt-get install --yes ./weir.deb ./weir-nginx.deb')
        holds('the installation fails', code != 0, said)
        holds('it names the line and the remedy', '/etc/nginx/conf.d/own.conf:1' in said and 'Nothing is changed' in said, said)
        holds('nginx goes on', (machine.server(), machine.status()) == ('/usr/sbin/nginx', '200'))
        holds('/usr/sbin/nginx is nginx', machine.says('readlink -f /usr/sbin/nginx') == '/usr/sbin/nginx' and 'weir' not in machine.says('dpkg-divert --list'))
        machine.does('rm /etc/nginx/conf.d/own.conf && systemctl reload nginx')
        machine.apt('./weir-nginx.deb')
        holds('without the line, weir takes its place', machine.server() == '/usr/bin/weir')
        machine.does('printf "server { listen 81; location / { dashboard; } }" > /etc/nginx/conf.d/own.conf && systemctl reload nginx')
        code, said = machine.run('apt-get remove --yes weir-nginx')
        holds('a removal that nginx would not survive fails, with the remedy', code != 0 and 'unknown directive "dashboard"' in said and 'Nothing is changed' in said, said)
        holds('weir goes on', (machine.server(), machine.status()) == ('/usr/bin/weir', '200'))
        machine.does('rm /etc/nginx/conf.d/own.conf && apt-get remove --yes weir-nginx')
        holds('without the line, nginx is back', (machine.server(), machine.status()) == ('/usr/sbin/nginx', '200'))


def adopt():
    """`weir adopt` finds nginx ready, and each way that it prints leads to weir and back to nginx."""
    with Machine() as machine:
        machine.apt('nginx')
        machine.apt('./weir.deb')
        machine.run('for i in 1 2 3; do curl -s http://127.0.0.1/ http://127.0.0.1/absent; done')
        code, said = machine.run('weir adopt --json')
        page = json.loads(said[said.index('{'):]) if '{' in said else {}
        if not holds('weir adopt: ready', code == 0, said):
            return
        holds('it prints two ways', [way['name'] for way in page['ways']] == ['packages', 'unit'], said)
        for way in page['ways']:
            for commands, program in [(way['there'], 'weir'), (way['back'], 'nginx')]:
                for command in commands:
                    machine.does(command.replace('apt ', 'apt-get --yes '), f'{way["name"]}: {command}')
                time.sleep(1)
                name = machine.says('curl -sI http://127.0.0.1/ | grep -i ^server')
                holds(f'{way["name"]}: {program} serves, and systemd knows its process',
                      program in name and machine.says('systemctl is-active nginx') == 'active'
                      and machine.says('systemctl show -P MainPID nginx') == machine.says('cat /run/nginx.pid'), name + machine.says('systemctl status nginx'))


def autopkgtest():
    """Debian's own tests of nginx, with weir as nginx. `abicheck` is about C headers, and `reboot` is here a restart."""
    with Machine() as machine:
        if not (machine.top / 'root/nginx-tests').exists():
            return print(f'skipped: the mirror has no source of nginx for {debian.RELEASE}')
        machine.apt('nginx-extras', *MODULES)
        machine.apt('./weir.deb', './weir-nginx.deb')
        holds('nginx.service runs weir', machine.server() == '/usr/bin/weir', machine.says('systemctl status nginx'))
        for test in ['extras-module-deps', 'ssi-module-test', 'ec-x25519']:
            machine.does(f'sh nginx-tests/{test}', f'autopkgtest {test}, all modules installed')
    for package in ['light', 'core', 'full', 'extras']:
        with Machine() as machine:
            machine.apt(f'nginx-{package}')
            machine.apt('./weir.deb', './weir-nginx.deb')
            machine.does(f'sh nginx-tests/{package}-simple', f'autopkgtest {package}-simple')
            holds('nginx.service runs weir', machine.server() == '/usr/bin/weir')


# What pebble, a CA for tests, reads and listens on in the machine.
PEBBLE = '''{"pebble": {"listenAddress": "127.0.0.1:14000", "managementListenAddress": "127.0.0.1:15000",
 "certificate": "/root/ca/api.pem", "privateKey": "/root/ca/api.key", "httpPort": 80, "tlsPort": 443,
 "ocspResponderURL": "", "externalAccountBindingRequired": false, "retryAfter": {"authz": 1, "order": 1}}}'''


def certbot():
    """`certbot --nginx` gets a certificate from pebble for a server of weir, renews it, and nginx serves it afterwards."""
    found = [chosen.pebble / name for name in ['pebble', 'pebble-challtestsrv']]
    if not all(program.exists() for program in found):
        return print(f'skipped: --pebble names no folder with pebble and pebble-challtestsrv ({chosen.pebble})')
    with Machine() as machine:
        machine.apt('nginx', 'python3-certbot-nginx')
        machine.apt('./weir.deb', './weir-nginx.deb')
        for program in found:
            shutil.copy(program, machine.top / 'usr/local/bin')
        (machine.top / 'root/ca').mkdir()
        (machine.top / 'root/ca/pebble.json').write_text(PEBBLE)
        (machine.top / 'etc/hosts').write_text('127.0.0.1 localhost shop.test\n')
        (machine.top / 'etc/nginx/conf.d/shop.conf').write_text('server { listen 80; server_name shop.test; location / { return 200 "the shop\\n"; } }\n')
        machine.does('cd ca && openssl req -x509 -newkey rsa:2048 -nodes -keyout api.key -out api.pem -days 9 -subj /CN=localhost -addext subjectAltName=DNS:localhost 2> /dev/null', 'a key for the CA\'s own server')
        machine.does('systemctl reload nginx')
        machine.run('systemd-run -q pebble-challtestsrv -defaultIPv6 "" -defaultIPv4 127.0.0.1 -http01 "" -https01 "" -tlsalpn01 "" -dnsserver 127.0.0.1:8053 -doh "" -management 127.0.0.1:8055')
        machine.run('systemd-run -q -E PEBBLE_VA_NOSLEEP=1 -E PEBBLE_WFE_NONCEREJECT=0 pebble -config /root/ca/pebble.json -dnsserver 127.0.0.1:8053')
        machine.run('for i in $(seq 100); do curl -sk https://localhost:14000/dir > /dev/null && break; sleep 0.1; done')
        words = '--server https://localhost:14000/dir --no-verify-ssl -n'
        machine.does(f'certbot --nginx -d shop.test -m a@shop.test --agree-tos --redirect {words}', 'certbot --nginx')
        time.sleep(1)
        holds('nginx.service still runs weir', machine.server() == '/usr/bin/weir')
        serial = 'echo | openssl s_client -connect 127.0.0.1:443 -servername shop.test 2> /dev/null | openssl x509 -noout -issuer -serial'
        first = machine.says(serial)
        holds('weir serves the certificate', 'Pebble Intermediate' in first, first + machine.says('cat /etc/nginx/conf.d/shop.conf; tail /var/log/nginx/error.log'))
        holds('the page answers over TLS', machine.says('curl -sk https://shop.test/') == 'the shop')
        holds('http points to https', machine.says('curl -s -o /dev/null -w "%{http_code} %{redirect_url}" http://shop.test/') == '301 https://shop.test/')
        machine.does(f'certbot renew --force-renewal --no-random-sleep-on-renew {words}', 'certbot renew')
        time.sleep(1)
        second = machine.says(serial)
        holds('weir serves the renewed certificate', 'Pebble Intermediate' in second and second != first, first + '\n' + second)
        machine.does('apt-get remove --yes weir-nginx')
        holds('after the switch back, nginx serves it', (machine.server(), machine.says(serial)) == ('/usr/sbin/nginx', second), machine.says(serial))
        machine.does(f'certbot renew --force-renewal --no-random-sleep-on-renew {words}', 'certbot renew with nginx')


def readers():
    """Programs that read nginx's logs and status read weir's."""
    with Machine() as machine:
        machine.apt('./weir.deb', './weir-nginx.deb')
        conf = '''limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
            server { listen 81; root /var/www/html;
                location /private { auth_basic closed; auth_basic_user_file /etc/nginx/users; }
                location /limited { limit_req zone=one; return 200; limit_req_status 429; try_files /x =404; }
                location /status { stub_status; } }'''
        (machine.top / 'etc/nginx/conf.d/own.conf').write_text(conf.replace('return 200; ', ''))
        machine.does('echo "a:{PLAIN}b" > /etc/nginx/users && systemctl reload nginx')
        time.sleep(1)
        machine.run('for i in 1 2 3; do curl -s -u a:wrong http://127.0.0.1:81/private; curl -s -u nobody:x http://127.0.0.1:81/private; curl -s http://127.0.0.1:81/limited; curl -s http://127.0.0.1:81/phpmyadmin/scripts/setup.php; done')
        time.sleep(1)
        for name, log, least in [('nginx-http-auth', 'error', 6), ('nginx-limit-req', 'error', 2), ('nginx-botsearch', 'access', 3)]:
            said = machine.says(f'fail2ban-regex /var/log/nginx/{log}.log {name}')
            found = re.search(r'Failregex: (\d+) total', said)
            holds(f'fail2ban\'s filter {name} finds {found and found.group(1)} lines, at least {least}', found and int(found.group(1)) >= least, said + machine.says(f'tail -20 /var/log/nginx/{log}.log'))
        said = machine.says('goaccess /var/log/nginx/access.log --log-format=COMBINED -o /root/report.json; cat /root/report.json')
        valid, failed = (re.search(rf'"{name}_requests": (\d+)', said) for name in ['valid', 'failed'])
        holds('goaccess reads every line of the access log', valid and failed and int(valid.group(1)) >= 12 and failed.group(1) == '0', said[:2000])
        said = machine.says('curl -s http://127.0.0.1:81/status')
        holds('stub_status has the lines that munin and collectd read', re.fullmatch(r'Active connections: \d+ \nserver accepts handled requests\n \d+ \d+ \d+ \nReading: \d+ Writing: \d+ Waiting: \d+', said), said)


PARTS = [lintian, piuparts, unit, service, fresh, switch, refusal, adopt, autopkgtest, certbot, readers]

if os.geteuid() != 0:
    sys.exit('a container that boots needs root')
for part in PARTS:
    if not chosen.parts or part.__name__ in chosen.parts:
        print(f'\n{part.__name__}: {part.__doc__}', flush=True)
        part()
print(f'\n{told[True]} hold, {told[False]} fail')
sys.exit(1 if told[False] else 0)
