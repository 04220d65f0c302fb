#!/usr/bin/env python3
"""The worked example of docs/guide/adopt.md and of adopt.ko.md, rerun: the commands, and their output, written back into the pages.

Every line `$ COMMAND` of a page's `console` blocks runs, in order, on a machine of the page's own: Debian's nginx with a site
(`SITE`) in front of `weir origin`, and an access log of a few clients. Needs root (for namespaces), nginx 1.22.1, curl, unshare and ip.

--check compares, and writes nothing; numbers may differ."""

import argparse, os, re, subprocess, sys, tempfile
from pathlib import Path

from transcript import alike, commands

ROOT = Path(__file__).resolve().parent.parent
GUIDES = [ROOT / 'docs/guide/adopt.md', ROOT / 'docs/guide/adopt.ko.md']
NGINX = 'nginx/1.22.1'
MODULE = 'mod-stream.conf'
SECONDS = 120
SITE = '''server {
    listen 80 default_server;
    server_name shop.test;
    root /var/www/shop;
    directio 4m;
    proxy_ssl_conf_command VerifyMode Peer;
    location / { try_files $uri @app; }
    location /api/ { proxy_pass http://127.0.0.1:3000/; proxy_set_header Host $host; }
    location = /edge { add_header X-Edge $nginx_version; return 204; }
    location @app { proxy_pass http://127.0.0.1:3000; proxy_set_header Host $host; }
}
'''
# Directories that the example changes: each has a copy for this run alone.
OWN = ['/etc/nginx', '/var/log/nginx', '/var/lib/nginx', '/var/www', '/run', '/usr/local/bin']
ASKED = ['/', '/index.html', '/none', '/api/1k', '/api/?status=404', '/api/json', '/edge', '/2k', '/logout']

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--weir', default=str(ROOT / 'target/release/weir'), help='weir binary')
parser.add_argument('--check', action='store_true', help='compare, and write nothing')
parser.add_argument('--only', choices=[guide.name for guide in GUIDES], help='one page alone')
parser.add_argument('--inside', help=argparse.SUPPRESS)
chosen = parser.parse_args()


def skip(why):
    print(f'skipped: {why}')
    sys.exit(77)


def sh(command):
    return subprocess.run(['bash', '-c', command], check=True, capture_output=True, text=True, timeout=SECONDS)


def furnish(room):
    """The machine: copies of directories over the real ones, nginx with its site, the application, and clients."""
    sh('ip link set lo up')
    for number, place in enumerate(OWN):
        copy = f'{room}/{number}'
        sh(f'mkdir -p {copy}; [ {place} = /run ] || cp -a {place}/. {copy}/; mount --bind {copy} {place}')
    # Which modules are enabled depends on the packages of this machine; the guide's machine has one.
    sh(f'find /etc/nginx/modules-enabled -mindepth 1 ! -name "*{MODULE}" -delete; test -e /etc/nginx/modules-enabled/*{MODULE}')
    sh('rm -f /var/log/nginx/* /etc/nginx/sites-enabled/*; mkdir -p /var/www/shop; echo welcome > /var/www/shop/index.html')
    Path('/etc/nginx/sites-enabled/shop').write_text(SITE)
    sh(f'touch /usr/local/bin/weir; mount --bind {os.path.abspath(chosen.weir)} /usr/local/bin/weir')
    subprocess.Popen(['/usr/local/bin/weir', 'origin', '--listen', '127.0.0.1:3000'], stdout=subprocess.DEVNULL)
    sh("/usr/sbin/nginx -g 'daemon on; master_process on;'; sleep 1")
    for target in ASKED:
        sh(f"curl -s -o /dev/null -H 'Host: shop.test' 'http://127.0.0.1{target}'")
    sh("curl -s -o /dev/null -X POST -d x -H 'Host: shop.test' http://127.0.0.1/api/order")


broken = []


def block(match):
    parts = []
    for command, before in commands(match.group(1)):
        print(f'$ {command}', flush=True)
        # A reload takes effect a moment later.
        said = subprocess.run(['bash', '-c', command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
        sh('sleep 1')
        now = said.stdout.rstrip('\n')
        print(now + said.stderr, flush=True)
        if chosen.check and alike(now) != alike(before):
            broken.append(f'$ {command}\n--- the guide\n{before}\n--- now\n{now}')
        parts.append(f'$ {command}\n{now}' if now else f'$ {command}')
    return '```console\n' + '\n\n'.join(parts) + '\n```'


def outside():
    if not Path('/usr/sbin/nginx').exists() or NGINX not in subprocess.run(['/usr/sbin/nginx', '-v'], capture_output=True, text=True).stderr:
        skip(f"the guide is about {NGINX}, Debian 12's: apt install nginx")
    if os.geteuid() != 0:
        skip('the example needs root, for namespaces of its own')
    worst = 0
    for guide in GUIDES:
        if chosen.only not in (None, guide.name):
            continue
        with tempfile.TemporaryDirectory() as room:
            words = ['unshare', '--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc', sys.executable, *sys.argv, '--only', guide.name, '--inside', room]
            worst = max(worst, subprocess.run(words).returncode)
    sys.exit(worst)


if not chosen.inside:
    outside()
furnish(chosen.inside)
guide = ROOT / 'docs/guide' / chosen.only
written = re.sub(r'```console\n(.*?)```', block, guide.read_text(), flags=re.S)
for one in broken:
    print(f'\n{one}', file=sys.stderr)
if not chosen.check:
    guide.write_text(written)
    print(f'written: {guide.relative_to(ROOT)}')
sys.exit(1 if broken else 0)
