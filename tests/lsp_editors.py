#!/usr/bin/env python3
"""The files for editors (`package/editors/`) with real editors and their tools.

    tests/lsp_editors.py --weir BIN [vscode] [neovim] [settings]

`vscode` builds the extension with npm and @vscode/vsce, and looks into the package. `neovim` starts Neovim without a screen (apt: neovim) with the file
of the package, opens a file with problems, and makes a code action. `settings` compares the settings that the extension offers with those that the server
knows. Needs the network for npm."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EDITORS = ROOT / 'package/editors'
BROKEN = 'events { }\nhttp {\n    server {\n        lsiten 80;\n        location /a { alias /b/; }\n    }\n}\n'
VSCE = '@vscode/vsce@3'


def vscode(_):
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder, 'vscode')
        shutil.copytree(EDITORS / 'vscode', copy, ignore=shutil.ignore_patterns('node_modules'))
        run(['npm', 'install', '--omit=dev', '--no-audit', '--no-fund', '--ignore-scripts'], copy)
        run(['node', '--check', 'extension.js'], copy)
        # The questions about a licence and a repository are for the marketplace.
        run(['npx', '--yes', VSCE, 'package', '--allow-missing-repository', '--skip-license', '--out', 'weir.vsix'], copy)
        names = zipfile.ZipFile(copy / 'weir.vsix').namelist()
        for name in ('extension/package.json', 'extension/extension.js', 'extension/language-configuration.json', 'extension/readme.md'):
            check(name in [one if one != 'extension/README.md' else 'extension/readme.md' for one in names], f'the package has no {name}: {names[:20]}')
        check(any('vscode-languageclient' in name for name in names), 'the package has no language client')
        print(f'vscode: a package of {(copy / "weir.vsix").stat().st_size} bytes with {len(names)} files')


def neovim(weir):
    check(shutil.which('nvim'), 'nvim is not installed')
    with tempfile.TemporaryDirectory() as folder:
        conf, told = Path(folder, 'nginx.conf'), Path(folder, 'told.json')
        conf.write_text(BROKEN)
        wish = f"lua vim.g.weir_lsp = {{ cmd = {{ '{weir}', 'lsp' }}, target = 'weir', language = 'en' }}"
        words = ['nvim', '--headless', '-u', 'NONE', '-i', 'NONE', '--cmd', wish, '--cmd', f'luafile {EDITORS}/neovim/weir.lua',
                 '-c', f'luafile {ROOT}/tests/lsp/neovim.lua', str(conf)]
        environment = {**os.environ, 'WEIR_LSP_TOLD': str(told), 'XDG_STATE_HOME': folder, 'XDG_CACHE_HOME': folder}
        done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
        check(told.exists(), f'Neovim told nothing: {done.stdout}{done.stderr}')
        found = json.loads(told.read_text())
        check('error' not in found, found.get('error'))
        one = found['files'][0]
        expected = subprocess.run([weir, 'edge', '-t', '-c', conf], capture_output=True, text=True).stderr
        refused = re.findall(r'\[emerg\] (.*) in \S+:(\d+)', expected)
        own = [(two['message'].split('\n')[0], str(two['line'])) for two in one['diagnostics'] if two['source'] == 'weir edge -t']
        check(sorted(own) == sorted(refused) and refused, f'{own} are not {refused}')
        check(one.get('applied') == 'Change to listen' and '        listen 80;' in one['text'], one)
        print(f'neovim: {len(one["diagnostics"])} diagnostics, {one["actions"]} actions, {one["symbols"]} symbols, {one["folds"]} folds; made: {one["applied"]}')


def settings(_):
    package = json.loads((EDITORS / 'vscode/package.json').read_text())
    offered = {name.removeprefix('weir.') for name in package['contributes']['configuration']['properties']} - {'path'}
    known = set(re.findall(r'^ {16}"(\w+)" =>', (ROOT / 'crates/lsp/src/settings.rs').read_text(), re.M))
    check(offered == known, f'the extension offers {offered}, the server knows {known}')
    text = (EDITORS / 'neovim/weir.lua').read_text()
    check(all(f'{name} = wish.{name}' in text for name in known), f'weir.lua lacks one of {known}')
    print(f'settings: {", ".join(sorted(known))}')


def run(words, folder):
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=600)
    check(done.returncode == 0, f'{" ".join(words)}: {done.stdout}{done.stderr}')


def check(is_right, why):
    if not is_right:
        print(why)
        sys.exit(1)


PARTS = {'settings': settings, 'vscode': vscode, 'neovim': neovim}
parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('parts', nargs='*', metavar='PART', help=', '.join(PARTS))
parser.add_argument('--weir', default=str(ROOT / 'target/release/weir'))
chosen = parser.parse_args()
for part in chosen.parts or PARTS:
    PARTS[part](os.path.abspath(chosen.weir))
