#!/usr/bin/env python3
"""The image of `cargo xtask package` by the tools of its users: podman load, podman run, and the compose file of examples/compose/express.

    tests/podman.py [--image FILE]

The application of the compose file runs in an image that this program makes: Debian 12 with this machine's node and npm, under the name
that the file wants. Asks for the page, the dashboard, a health check, Socket.IO over both transports, and `weir adopt` of an nginx in a container. Needs
root, podman, podman-compose, mmdebstrap, node, npm, and the packages of npm that tests/apps has."""

import argparse, json, os, shutil, subprocess, sys, tempfile, time
from pathlib import Path

import machine
from machine import ROOT

EXAMPLE = ROOT / 'examples/compose/express'
SECONDS = 60
TOKEN = '0123456789abcdef0123456789abcdef'

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--image', type=Path, help='the archive [default: the one in target/package]')
parser.add_argument('--weir', type=Path, default=ROOT / 'target/debug/weir', help='the program that adopts')
parser.add_argument('--modules', type=Path, default=ROOT / 'tests/apps/node_modules', help='the folder of the packages of npm')
parser.add_argument('--room', type=Path, default=Path('/tmp/weir-package'), help='where roots are kept')
chosen = parser.parse_args()
if Path('/sys/fs/cgroup/memory').exists():
    # crun refuses control groups of both versions. All calls of podman then see the same mounts: those of this program, which begins again.
    change = 'umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup && exec "$@"'
    os.execvp('unshare', ['unshare', '--mount', 'sh', '-c', change, 'sh', sys.executable, *sys.argv])

room = Path(tempfile.mkdtemp(prefix='weir-podman-'))
told = {True: 0, False: 0}


def holds(what, is_so, seen=''):
    told[bool(is_so)] += 1
    print(f'{"holds" if is_so else "FAILS"}  {what}' + ('' if is_so else '\n       ' + str(seen).strip()[-3000:].replace('\n', '\n       ')), flush=True)
    return bool(is_so)


def prepare():
    """podman for a machine that lets nobody raise limits."""
    (room / 'containers.conf').write_text('[containers]\ncgroups = "disabled"\ndefault_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]\n')
    os.environ['CONTAINERS_CONF'] = str(room / 'containers.conf')


def run(*words, **more):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600, **more)
    return done.returncode, done.stdout


def until(question):
    """The first answer that is true, or the last one."""
    end = time.monotonic() + SECONDS
    while not (answer := question()) and time.monotonic() < end:
        time.sleep(0.3)
    return answer


def curl(url):
    return run('curl', '-s', '-m', '5', url)[1]


def node_image():
    """An image with node and npm, named as the compose file names it."""
    tar = machine.root(chosen.room, 'base', '--include=ca-certificates,init-system-helpers')
    top = room / 'node'
    top.mkdir()
    subprocess.run(['tar', '-xf', tar, '-C', top], check=True)
    shutil.copy(shutil.which('node'), top / 'usr/local/bin/node')
    npm = Path(shutil.which('npm')).resolve().parent.parent
    shutil.copytree(npm, top / 'usr/local/lib/node_modules/npm', symlinks=True)
    (top / 'usr/local/bin/npm').symlink_to('../lib/node_modules/npm/bin/npm-cli.js')
    subprocess.run(['sh', '-c', f'tar -C {top} -c . | podman import -q - docker.io/library/node:22'], check=True, stdout=subprocess.DEVNULL)
    shutil.rmtree(top)


def as_started(name):
    """podman run, as the guide has it."""
    box = f'weir-test-{os.getpid()}'
    code, said = run('podman', 'run', '--rm', '-d', '--name', box, '-p', '127.0.0.1:18080:8080', name)
    try:
        holds('podman run', code == 0, said)
        holds('the page answers at the published port', until(lambda: 'weir answers' in curl('http://127.0.0.1:18080/')), run('podman', 'logs', box)[1])
        code, said = run('podman', 'stop', '-t', '10', box)
        holds('podman stop ends it', code == 0, said)
    finally:
        run('podman', 'rm', '-f', box)


def compose():
    """The example, with the cache of npm that this machine has filled."""
    place = room / 'express'
    shutil.copytree(EXAMPLE, place)
    cache = room / 'npm'
    code, said = run('npm', 'install', '--no-save', '--cache', cache, '--prefix', room / 'filled', 'express', 'socket.io')
    holds('npm has the packages of the application', code == 0, said)
    (place / 'offline.yml').write_text(f'services:\n  app:\n    environment: {{npm_config_cache: /npm, npm_config_offline: "true"}}\n    volumes: ["./app:/app", "{cache}:/npm"]\n')
    (place / '.env').write_text(f'DASHBOARD_TOKEN={TOKEN}\n')
    words = ['podman-compose', '-f', 'compose.yml', '-f', 'offline.yml', '-p', f'weir{os.getpid()}']
    code, said = run(*words, 'up', '-d', cwd=place)
    try:
        # podman-compose ends with 0 even if podman refuses a container.
        holds('podman-compose up', code == 0 and 'Error' not in said, said)
        logs = lambda: run(*words, 'logs', cwd=place)[1]
        holds('the application answers at localhost:8080', until(lambda: 'hello' in curl('http://127.0.0.1:8080/')), logs()[-1500:])
        holds('the health check of the container', curl('http://127.0.0.1:8080/weir-health') == 'well\n')
        box = run('podman', 'ps', '--filter', f'label=io.podman.compose.project=weir{os.getpid()}', '--filter', 'label=com.docker.compose.service=web', '--format', '{{.Names}}')[1].strip()
        code, said = run('podman', 'healthcheck', 'run', box)
        holds('podman healthcheck run', code == 0, said)
        ports = run('podman', 'port', box)[1]
        holds('the dashboard answers at localhost:9144, of this machine alone', '127.0.0.1:9144' in ports and '"at":' in run('curl', '-s', '-H', f'Authorization: Bearer {TOKEN}', 'http://127.0.0.1:9144/doc.json')[1], ports)
        holds('and only with its token', 'token' in curl('http://127.0.0.1:9144/doc.json'))
        for transport in ('websocket', 'polling'):
            script = "import { io } from 'socket.io-client'; const s = io('http://127.0.0.1:8080', { transports: [process.argv[1]] });" \
                     "s.on('connect', () => s.emit('say', 'hello', (words) => { console.log(words); process.exit(0); })); setTimeout(() => process.exit(1), 10000);"
            code, said = run('node', '--input-type=module', '-e', script, transport, cwd=chosen.modules.resolve().parent)
            holds(f'Socket.IO over {transport}', said.strip() == 'hello', said + logs())
    finally:
        run(*words, 'down', '-t', '5', cwd=place)


def adopted():
    """weir adopt of an nginx in a container, from the machine."""
    box = f'nginx-test-{os.getpid()}'
    debs = machine.machine_root(chosen.room)
    code, said = run('podman', 'import', '-q', debs, 'localhost/weir-test-nginx:1')
    holds('an image with Debian\'s nginx', code == 0, said)
    script = 'apt-get install --yes nginx > /dev/null 2>&1; exec nginx -g "daemon off;"'
    try:
        code, said = run('podman', 'run', '-d', '--name', box, 'localhost/weir-test-nginx:1', 'sh', '-c', script)
        holds('nginx runs in it', code == 0 and until(lambda: run('podman', 'exec', box, 'test', '-s', '/run/nginx.pid')[0] == 0), said)
        pid = run('podman', 'inspect', '--format', '{{.State.Pid}}', box)[1].strip()
        before = run('podman', 'diff', box)[1]
        code, said = run(chosen.weir, 'adopt', '--pid', pid, '--json')
        page = json.loads(said[said.index('{'):]) if '{' in said else {}
        holds('weir adopt looks at it from inside, and no answer differs', code == 0 and page['comparison']['differ'] == 0 and page['ways'][0]['name'] == 'image', said)
        holds('nothing in the container has changed', run('podman', 'diff', box)[1].replace('C /tmp\n', '') == before.replace('C /tmp\n', ''), run('podman', 'diff', box)[1])
    finally:
        run('podman', 'rm', '-f', box)


def main():
    found = [chosen.image] if chosen.image else sorted((ROOT / 'target/package').glob('weir-*.oci.tar'))
    if not found:
        sys.exit('there is no image: cargo xtask package')
    prepare()
    try:
        code, said = run('podman', 'load', '-q', '-i', found[0])
        holds('podman load', code == 0, said)
        as_started(said.strip().rpartition('Loaded image: ')[2])
        node_image()
        compose()
        adopted()
    finally:
        shutil.rmtree(room, ignore_errors=True)
    print(f'{told[True]} hold, {told[False]} fail')
    sys.exit(1 if told[False] else 0)


if __name__ == '__main__':
    main()
