#!/usr/bin/env python3
"""The newcomer's first hour, rerun: the commands of docs/guide/first-hour.md and of first-hour.ko.md, and what they print,
written back into the pages.

Every line `$ COMMAND` of a guide's `console` blocks is run, in order, in /tmp/first-hour, where nginx.conf is
labs/s2/before.conf and app.mjs is labs/apps/express.mjs; what it prints takes the place of what stood below it. Needs root
(the lab makes namespaces), nginx 1.22.1, node, and `npm ci --prefix tests/apps`. The labs want a machine with nothing else
to do: they say so otherwise, and then nothing is written. About ten minutes.

--check runs all but the labs, and compares; numbers may differ. Of a lab it looks whether the guide has what it said.
--quick runs all but the labs, and writes; what the labs said stays. --only PAGE takes one of the pages."""

import argparse, os, re, shutil, subprocess, sys
from pathlib import Path

from transcript import alike, commands

ROOT = Path(__file__).resolve().parent.parent
GUIDES = [ROOT / 'docs/guide/first-hour.md', ROOT / 'docs/guide/first-hour.ko.md']
ROOM = Path('/tmp/first-hour')
NGINX = 'nginx/1.22.1'
LAB_SECONDS = 3600
# What a lab has to end in for the guide to be worth reading, and what it must not say.
VERDICT = re.compile(r'^(Verdict|판정): (?!no verdict|not comparable|inconclusive)', re.M)
SPOILED = re.compile(r'^(Caution|주의):', re.M)

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--weir', default=str(ROOT / 'target/release/weir'), help='weir binary, of a release build for figures')
parser.add_argument('--check', action='store_true', help='compare, and write nothing')
parser.add_argument('--quick', action='store_true', help='run and write all but the labs')
parser.add_argument('--only', choices=[guide.name for guide in GUIDES], help='one page alone')
parser.add_argument('--anyway', action='store_true', help='write what the labs said although it is no verdict')
chosen = parser.parse_args()

# The doctor names the Node processes of the machine: without the labs, only those of this run are there to be named.
if (chosen.check or chosen.quick) and os.geteuid() == 0 and os.getpid() != 1:
    os.execvp('unshare', ['unshare', '--pid', '--fork', '--kill-child', '--mount-proc', sys.executable, *sys.argv])


def skip(why):
    print(f'skipped: {why}')
    sys.exit(77)


def room():
    """A directory as the guide has it, and the environment of its commands."""
    shutil.rmtree(ROOM, ignore_errors=True)
    (ROOM / '.bin').mkdir(parents=True)
    (ROOM / '.bin/weir').symlink_to(os.path.abspath(chosen.weir))
    (ROOM / 'app.mjs').symlink_to(ROOT / 'labs/apps/express.mjs')
    shutil.copy(ROOT / 'labs/s2/before.conf', ROOM / 'nginx.conf')
    return {**os.environ, 'PATH': f'{ROOM}/.bin:/usr/sbin:{os.environ["PATH"]}', 'LC_ALL': 'C.UTF-8', 'WEIR_LANG': 'en',
            'XDG_STATE_HOME': f'{ROOM}/.state'}


def run(command, environment):
    """What a terminal would show; of a lab without its progress."""
    is_lab = command.startswith('weir lab')
    print(f'$ {command}', flush=True)
    said = subprocess.run(['bash', '-c', command], cwd=ROOM, env=environment, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=None if is_lab else subprocess.STDOUT, timeout=LAB_SECONDS)
    print(said.stdout, flush=True)
    return '\n'.join(line.rstrip() for line in said.stdout.rstrip('\n').splitlines())


broken = []


def told(command, before, environment):
    """What to write below a command."""
    if not command.startswith('weir lab'):
        now = run(command, environment)
        if chosen.check and alike(now) != alike(before):
            broken.append(f'$ {command}\n--- the guide\n{before}\n--- now\n{now}')
        return now
    if chosen.check or chosen.quick:
        if not VERDICT.search(before):
            broken.append(f'$ {command}\nthe guide has no verdict of it: run tests/first_hour.py')
        return before
    now = run(command, environment)
    if not VERDICT.search(now) or SPOILED.search(now):
        broken.append(f'$ {command}\nsaid nothing that may be shown:\n{now}')
    return now


def block(match, environment):
    """A block with what its commands print now."""
    parts = []
    for command, before in commands(match.group(1)):
        now = told(command, before, environment)
        parts.append(f'$ {command}\n{now}' if now else f'$ {command}')
    return '```console\n' + '\n\n'.join(parts) + '\n```'


def version():
    """What the nginx here says it is."""
    if not Path('/usr/sbin/nginx').exists():
        return ''
    return subprocess.run(['/usr/sbin/nginx', '-v'], capture_output=True, text=True).stderr


if NGINX not in version():
    skip(f'the guide is about {NGINX}, Debian 12\'s: apt install nginx')
if not (chosen.check or chosen.quick) and os.geteuid() != 0:
    skip('the labs need root, for namespaces of their own')
if not (chosen.check or chosen.quick) and not (ROOT / 'tests/apps/node_modules/express').is_dir():
    skip('there is no Express: npm ci --prefix tests/apps')
for guide in GUIDES:
    if chosen.only not in (None, guide.name):
        continue
    environment = room()
    failed = len(broken)
    written = re.sub(r'```console\n(.*?)```', lambda match: block(match, environment), guide.read_text(), flags=re.S)
    shutil.rmtree(ROOM)
    if not chosen.check and (chosen.anyway or len(broken) == failed):
        guide.write_text(written)
        print(f'written: {guide.relative_to(ROOT)}')
for one in broken:
    print(f'\n{one}', file=sys.stderr)
sys.exit(1 if broken else 0)
