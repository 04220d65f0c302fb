#!/usr/bin/env python3
"""The installation of docs/guide/install.md and of install.ko.md, rerun in a Debian 12 that boots: each line `$ COMMAND` of a
page's `console` blocks is typed by root, in order, and the output is written below it. The Korean page's has WEIR_LANG=ko.

--check writes nothing, and compares; numbers may differ. Needs the packages of `cargo xtask package`, root, and the programs
of tests/machine.py."""

import argparse, re, sys
from pathlib import Path

import machine
from transcript import alike, commands

GUIDES = {'en': machine.ROOT / 'docs/guide/install.md', 'ko': machine.ROOT / 'docs/guide/install.ko.md'}

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--check', action='store_true', help='compare, and write nothing')
parser.add_argument('--packages', type=Path, default=machine.ROOT / 'target/package', help='the folder of the packages')
parser.add_argument('--room', type=Path, default=Path('/tmp/weir-package'), help='where the roots are kept')
chosen = parser.parse_args()

broken = []
PROGRESS = re.compile(r'\(Reading database \.\.\.( \d+%)?')


def ran(one, language, command):
    """What a terminal would show."""
    print(f'$ {command}', flush=True)
    # systemd answers after the service has started; its log and its pid file may be a moment later.
    code, said = one.run(f'export WEIR_LANG={language}\n{command}\nstatus=$?; sleep 1; exit $status')
    print(said, flush=True)
    # dpkg overwrites its progress on a terminal.
    lines = [line.rstrip() for line in said.rstrip('\n').split('\n') if not PROGRESS.fullmatch(line.rstrip())]
    return '\n'.join(lines)


def block(match, one, language):
    """A block with what its commands print now."""
    parts = []
    for command, before in commands(match.group(1)):
        now = ran(one, language, command)
        if alike(now) != alike(before):
            broken.append(f'$ {command}\n--- the guide\n{before}\n--- now\n{now}')
        parts.append(f'$ {command}\n{now}' if now else f'$ {command}')
    return '```console\n' + '\n\n'.join(parts) + '\n```'


for language, guide in GUIDES.items():
    with machine.Machine(chosen.room, chosen.packages) as one:
        written = re.sub(r'```console\n(.*?)```', lambda match: block(match, one, language), guide.read_text(), flags=re.S)
    if not chosen.check:
        guide.write_text(written)
        print(f'written: {guide.relative_to(machine.ROOT)}')
if chosen.check:
    for difference in broken:
        print(f'\n{difference}', file=sys.stderr)
    print(f'{len(broken)} commands print something else than the guide')
    sys.exit(1 if broken else 0)
