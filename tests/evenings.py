#!/usr/bin/env python3
"""The evenings of docs/guide/evenings.md, rerun: each line `$ COMMAND` of its `console` blocks is run, in order, with weir
from its package, and the output is written below it. The word after `console` is the report. The time of each report, from
the installation to the last command, goes into the table of the page. evenings.ko.md is written in the same way, by the same
commands in an environment whose language is Korean.

S1 runs in a Debian 12 that boots (tests/machine.py), the others in directories of their own under /tmp/evenings. Needs root,
the packages of `cargo xtask package`, nginx 1.22.1, node, `npm ci --prefix tests/apps`; a machine with nothing else to do."""

import argparse, os, re, shutil, subprocess, sys, time
from pathlib import Path

import machine
from transcript import commands

ROOT = machine.ROOT
ROOM = Path('/tmp/evenings')
PAGES = {'en': ROOT / 'docs/guide/evenings.md', 'ko': ROOT / 'docs/guide/evenings.ko.md'}
COMMAND_SECONDS = 1800
# A lab that ends so has shown nothing.
EMPTY = re.compile(r'^(Verdict|판정): no verdict|^no verdict', re.M)
TIMES = re.compile(r'<!-- times -->.*?(?=\n## )', re.S)
HEADS = {'en': ('report', 'min:s'), 'ko': ('보고서', '분:초')}
# The files of each report, from the package's own labs.
FILES = {
    's0': {'before.conf': 's0/before.conf', 'after.conf': 's0/after.conf', 'app.mjs': 'apps/express.mjs'},
    's2': {'nginx.conf': 's2/before.conf', 'app.mjs': 'apps/express.mjs'},
    's3': {'published.conf': 's3-tls/published.conf'},
    's4': {'proxied.conf': 'e4bc/1-proxied.conf', 'cached.conf': 'e4bc/2-cached.conf', 'page.mjs': 'apps/page.mjs'},
}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--packages', type=Path, default=ROOT / 'target/package', help='the folder of the packages')
parser.add_argument('--room', type=Path, default=Path('/tmp/weir-package'), help='where the root of the machine is kept')
parser.add_argument('--language', choices=PAGES, action='append', help='only this page')
parser.add_argument('--only', action='append', help='only this report; the rest of the page stays')
chosen = parser.parse_args()


def lines(text):
    return '\n'.join(line.rstrip() for line in text.rstrip('\n').split('\n'))


class Here:
    """A report's directory on this machine, with the package unpacked beside it."""

    def __init__(self, name, language):
        shutil.rmtree(ROOM, ignore_errors=True)
        self.place = ROOM / name
        self.place.mkdir(parents=True)
        begun = time.monotonic()
        subprocess.run(['dpkg-deb', '-x', machine.deb(chosen.packages, 'weir'), ROOM / 'installed'], check=True)
        self.seconds = time.monotonic() - begun
        labs = ROOM / 'installed/usr/share/weir/labs'
        for name_here, there in FILES[name].items():
            shutil.copy(labs / there, self.place / name_here)
        (self.place / 'node_modules').symlink_to(ROOT / 'tests/apps/node_modules')
        if name == 's2':
            before = (self.place / 'nginx.conf').read_text()
            server = 'server 127.0.0.1:3000;'
            (self.place / 'article.conf').write_text(before.replace(server, f'{server} keepalive 64;'))
            fixed = 'proxy_pass http://was;\n            proxy_http_version 1.1;\n            proxy_set_header Connection "";'
            fixed = before.replace(server, f'{server} keepalive 64;').replace('proxy_pass http://was;', fixed)
            (self.place / 'fixed.conf').write_text(fixed)
        own = {name: value for name, value in os.environ.items() if name != 'WEIR_LANG'}
        self.environment = {**own, 'PATH': f'{ROOM}/installed/usr/bin:/usr/sbin:{os.environ["PATH"]}',
                            'LC_ALL': {'en': 'C.UTF-8', 'ko': 'ko_KR.UTF-8'}[language],
                            # Express is installed beside the application.
                            'MODULES': f'{self.place}/'}

    def run(self, command):
        is_lab = command.startswith('weir lab')
        done = subprocess.run(['bash', '-c', command], cwd=self.place, env=self.environment, stdin=subprocess.DEVNULL, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE if is_lab else subprocess.STDOUT, timeout=COMMAND_SECONDS)
        return done.stdout if done.returncode == 0 or not is_lab else done.stdout + done.stderr

    def end(self):
        shutil.rmtree(ROOM, ignore_errors=True)


class There:
    """The machine of S1: nginx runs as a service with a limit of 1024 files, and limits.conf says 65535."""

    def __init__(self, language):
        self.machine = machine.Machine(chosen.room, chosen.packages)
        self.machine.__enter__()
        self.language = language
        self.seconds = 0
        self.machine.run('apt-get install -qq -y nginx >/dev/null 2>&1; '
                         'mkdir -p /etc/systemd/system/nginx.service.d; '
                         'printf "[Service]\\nLimitNOFILE=1024\\n" > /etc/systemd/system/nginx.service.d/files.conf; '
                         'printf "* soft nofile 65535\\n* hard nofile 65535\\n" >> /etc/security/limits.conf; '
                         'systemctl daemon-reload; systemctl restart nginx; sleep 1')

    def run(self, command):
        _, said = self.machine.run(f'cd /root; export LC_ALL={"C.UTF-8" if self.language == "en" else "ko_KR.UTF-8"}\n{command}')
        return said

    def end(self):
        self.machine.__exit__(None, None, None)


def evening(name, text, language):
    """The page with one report's output, and the seconds from the installation to the last command."""
    one = There(language) if name == 's1' else Here(name, language)
    seconds = one.seconds

    def block(match):
        nonlocal seconds
        parts = []
        for command, _ in commands(match.group(1)):
            print(f'$ {command}', flush=True)
            begun = time.monotonic()
            said = lines(one.run(command))
            seconds += time.monotonic() - begun
            print(said, flush=True)
            if EMPTY.search(said):
                empty.append(f'{language} {name}: $ {command}')
            parts.append(f'$ {command}\n{said}' if said else f'$ {command}')
        return f'```console {name}\n' + '\n\n'.join(parts) + '\n```'

    try:
        return re.sub(rf'```console {name}\n(.*?)```', block, text, flags=re.S), seconds
    finally:
        one.end()


def table(seconds, language, before):
    """The table of times; a report that did not run keeps its time."""
    known = dict(re.findall(r'^\| (S\d) \| (\d+:\d\d) \|$', before, re.M))
    known.update({name.upper(): f'{round(value) // 60}:{round(value) % 60:02}' for name, value in seconds.items()})
    first, second = HEADS[language]
    rows = ''.join(f'| {name} | {known[name]} |\n' for name in sorted(known))
    return f'<!-- times -->\n\n| {first} | {second} |\n|---|---|\n{rows}'


empty = []
for language in chosen.language or PAGES:
    page = PAGES[language]
    text = page.read_text()
    seconds = {}
    for name in chosen.only or ['s0', 's1', 's2', 's3', 's4']:
        text, seconds[name] = evening(name, text, language)
    text = TIMES.sub(lambda match: table(seconds, language, match.group(0)), text, count=1)
    page.write_text(text)
    print(f'written: {page.relative_to(ROOT)}')
for one in empty:
    print(f'shows nothing: {one}', file=sys.stderr)
sys.exit(1 if empty else 0)
