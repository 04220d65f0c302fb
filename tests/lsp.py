#!/usr/bin/env python3
"""`weir lsp` on real trees, driven by the packages of VS Code's own client.

    tests/lsp.py --weir BIN --nginx BIN [--trees DIR] [NAME…]

Needs root, node, and the packages of tests/lsp (`npm ci --prefix tests/lsp`). The trees are those of `fixes.py`: each is laid over this
machine's files in namespaces of its own. For each tree, the diagnostics of the language server must be those of `weir edge -t` and
`weir doctor`, in place and text, and nginx must accept the tree after each fix that it had accepted before."""

import argparse
import collections
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import fixes

ROOT = Path(__file__).resolve().parent.parent
TREES_SECONDS = 600


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('names', nargs='*', metavar='NAME', help='trees whose name has one of these words')
    parser.add_argument('--weir', default=str(ROOT / 'target/release/weir'))
    parser.add_argument('--nginx', default='/usr/sbin/nginx')
    parser.add_argument('--trees', help='a folder of GROUP+NAME/CASE/root, and _std')
    chosen = parser.parse_args()
    total, broken = collections.Counter(), []
    with tempfile.TemporaryDirectory() as folder:
        fixes.pair(Path(folder))
        for name, tree, std in fixes.trees(chosen.trees):
            if chosen.names and not any(part in name for part in chosen.names):
                continue
            told = judged(tree, std, folder, chosen)
            total['trees'] += 1
            total.update(told.get('counts', {}))
            for one in told['broken']:
                broken.append(f'{name}: {one}')
                print(f'BROKEN {broken[-1]}', flush=True)
    print(f'{total["trees"]} trees, {total["files"]} files, {total["diagnostics"]} diagnostics compared, {total["fixes"]} fixes accepted by nginx or told, '
          f'{total["dropped"]} not made; {len(broken)} broken')
    sys.exit(1 if broken or not total['diagnostics'] else 0)


def judged(tree, std, keys, chosen):
    with tempfile.TemporaryDirectory() as copy:
        fixes.lay(tree, Path(copy), keys)
        binaries = [f'/opt/judged/{Path(path).name}' for path in (chosen.weir, chosen.nginx)]
        command = ['unshare', '-m', '-n', '--pid', '--fork', 'bash', '-c', fixes.SANDBOX, '_', copy, std,
                   'node', str(ROOT / 'tests/lsp/judge.mjs'), *binaries]
        environment = {**os.environ, 'FIXES_WEIR': os.path.abspath(chosen.weir), 'FIXES_NGINX': os.path.abspath(chosen.nginx), 'PAIR': keys}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors='replace', timeout=TREES_SECONDS)
    try:
        return json.loads(done.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return {'broken': [f'no result: {done.stdout[-500:]}{done.stderr[-2000:]}']}


if __name__ == '__main__':
    main()
