#!/usr/bin/env python3
"""The OCI image of `cargo xtask package`, started by crun or runc in a network of its own that has only loopback.

Asks for the page, templates, scripts, logs, signals, users and the size, and whether weir and nginx accept the
configurations of examples/compose. Needs root, umoci, skopeo, curl, and Debian's nginx for the last question."""

import argparse, json, os, re, shutil, signal, subprocess, sys, tempfile, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BYTES_MAX = 30_000_000
SECONDS = 10

parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument('--image', help='the archive [default: the one in target/package]')
parser.add_argument('--runtime', default='crun', choices=['crun', 'runc'])
chosen = parser.parse_args()

# crun refuses a machine that has cgroups of both versions, so it sees a mount of version 2 alone.
ONE_CGROUP = ['unshare', '--mount', 'sh', '-c', 'umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; exec "$@"', 'sh']
RUNTIME = [*ONE_CGROUP, 'crun', '--cgroup-manager=disabled'] if chosen.runtime == 'crun' else ['runc']
room = Path(tempfile.mkdtemp(prefix='weir-image-'))
told = {True: 0, False: 0}


def holds(what, is_so, seen=''):
    told[bool(is_so)] += 1
    print(f'{"holds" if is_so else "FAILS"}  {what}' + ('' if is_so else f'\n       {seen}'), flush=True)


def output(*command, **more):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60, **more)
    return done.returncode, done.stdout + done.stderr


class Container:
    """A container from the image, as a user would start it."""
    count = 0

    def __init__(self, args=None, env=(), mounts=(), is_read_only=False, cwd='/'):
        Container.count += 1
        self.name = f'weir-image-{os.getpid()}-{Container.count}'
        bundle = room / self.name
        shutil.copytree(room / 'bundle', bundle, symlinks=True)
        subprocess.run(['cp', '-a', '--reflink=auto', f'{room}/bundle/rootfs/.', f'{bundle}/rootfs/'], check=True)
        config = json.loads((bundle / 'config.json').read_text())
        config['process']['terminal'] = False
        config['process']['env'] += list(env)
        config['process']['args'] = ['/docker-entrypoint.sh', *args] if args else config['process']['args']
        config['process']['capabilities'] = {}
        config['process']['noNewPrivileges'] = True
        config['root']['readonly'] = is_read_only
        config['mounts'] += [{'destination': to, 'type': 'bind', 'source': str(source), 'options': ['bind', 'ro']} if source else
                             {'destination': to, 'type': 'tmpfs', 'source': 'tmpfs', 'options': ['uid=101', 'gid=101', 'mode=755']}
                             for to, source in mounts]
        config['linux'].pop('resources', None)
        config['linux'].pop('cgroupsPath', None)
        (bundle / 'config.json').write_text(json.dumps(config))
        self.log = open(bundle / 'log', 'wb')
        self.process = subprocess.Popen([*RUNTIME, 'run', '--bundle', bundle, self.name], stdin=subprocess.DEVNULL,
                                        stdout=self.log, stderr=subprocess.STDOUT)
        self.bundle = bundle

    def pid(self):
        code, said = output(*RUNTIME, 'state', self.name)
        return json.loads(said)['pid'] if code == 0 else None

    def ask(self, path, *flags):
        """A request from inside the container's network; waits until the server listens."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end and self.process.poll() is None:
            if pid := self.pid():
                code, said = output('nsenter', '-t', pid, '-n', 'curl', '-s', '-S', '--max-time', '5', *flags, f'http://127.0.0.1:8080{path}')
                if code == 0:
                    return said
            time.sleep(0.1)
        return f'no answer: {self.said()}'

    def run(self, *command):
        return output(*RUNTIME, 'exec', '--user', '101:101', self.name, *command)

    def said(self):
        self.log.flush()
        return (self.bundle / 'log').read_text(errors='replace')

    def stop(self, number=signal.SIGQUIT):
        """Sends a signal to the first process, as `docker stop` does; returns the exit code."""
        if pid := self.pid():
            os.kill(pid, number)
        try:
            return self.process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            output(*RUNTIME, 'delete', '--force', self.name)
            return None
        finally:
            output(*RUNTIME, 'delete', '--force', self.name)
            self.log.close()
            shutil.rmtree(self.bundle / 'rootfs')


def unpack(image):
    layout = room / 'layout'
    layout.mkdir()
    subprocess.run(['tar', '-xf', image, '-C', layout], check=True)
    tag = json.loads((layout / 'index.json').read_text())['manifests'][0]['annotations']['org.opencontainers.image.ref.name']
    subprocess.run(['umoci', 'unpack', '--image', f'{layout}:{tag}', room / 'bundle'], check=True)


def as_started(image):
    holds(f'the archive has at most {BYTES_MAX:,} bytes: {image.stat().st_size:,}', image.stat().st_size <= BYTES_MAX)
    code, said = output('skopeo', 'inspect', '--config', f'oci-archive:{image}')
    config = json.loads(said)['config'] if code == 0 else {}
    holds('skopeo reads it; user 101, port 8080, SIGQUIT', (config.get('User'), list(config.get('ExposedPorts', {})), config.get('StopSignal')) == ('101', ['8080/tcp'], 'SIGQUIT'), said)
    box = Container()
    holds('the page of the image answers on 8080', 'weir answers' in box.ask('/'), box.said())
    holds('a missing page is 404', box.ask('/none', '-o', '/dev/null', '-w', '%{http_code}') == '404')
    code, said = box.run('id', '-u')
    holds('it runs as user 101', said.strip() == '101', said)
    time.sleep(0.3)
    holds('the access log is on stdout', re.search(r'127\.0\.0\.1 - - \[.*"GET / HTTP/1\.1" 200', box.said()), box.said())
    holds('the error log is on stderr', 'No such file or directory' in box.said(), box.said())
    code, said = box.run('nginx', '-t')
    holds('nginx -t succeeds inside', code == 0 and 'test is successful' in said, said)
    code, said = box.run('sh', '-c', 'echo "server { listen 8080; server_name b; return 200 b; }" > /etc/nginx/conf.d/b.conf && nginx -s reload')
    holds('a configuration is added and nginx -s reload reads it', code == 0, said)
    seen = ''
    for _ in range(50):
        seen = box.ask('/', '-H', 'Host: b')
        if seen == 'b':
            break
        time.sleep(0.1)
    holds('the added server answers', seen == 'b', seen)
    holds('SIGQUIT ends it with 0', box.stop() == 0)


def templates():
    folder = room / 'templates'
    (folder / 'more').mkdir(parents=True)
    (folder / 'default.conf.template').write_text('server { listen 8080; location = /t { return 200 "${GREETING} $GREETING $uri $host"; } } # ${OTHER}\n')
    (folder / 'more/a.conf.template').write_text('# ${GREETING}\n')
    box = Container(env=['GREETING=good day', 'uri=no'], mounts=[('/etc/nginx/templates', folder)])
    said = box.ask('/t')
    holds('a variable of the environment is filled in; one that it has not stays nginx\'s', said == 'good day good day no 127.0.0.1', said + box.said())
    code, said = box.run('cat', '/etc/nginx/conf.d/default.conf')
    holds('an unknown name in braces stays', '# ${OTHER}' in said, said)
    box.stop()
    (folder / 'default.conf.template').write_text('server { listen 8080; location = /t { return 200 "${GREETING} $uri"; } }\n')
    box = Container(env=['GREETING=good day', 'uri=no', 'NGINX_ENVSUBST_FILTER=^GREET'], mounts=[('/etc/nginx/templates', folder)])
    said = box.ask('/t')
    holds('NGINX_ENVSUBST_FILTER leaves other variables to nginx', said == 'good day /t', said + box.said())
    code, said = box.run('cat', '/etc/nginx/conf.d/more/a.conf')
    holds('a template in a folder keeps its place', said == '# good day\n', said)
    box.stop()
    box = Container(env=['GREETING=good day', 'NGINX_ENVSUBST_FILTER=GREET', 'NGINX_ENTRYPOINT_QUIET_LOGS=1'], is_read_only=True,
                    mounts=[('/etc/nginx/templates', folder), ('/etc/nginx/conf.d', None), ('/tmp', None)])
    holds('the root may be read-only', box.ask('/t') == 'good day /t', box.said())
    holds('NGINX_ENTRYPOINT_QUIET_LOGS silences the start', 'Launching' not in box.said(), box.said())
    box.stop()


def scripts():
    folder = room / 'scripts'
    folder.mkdir()
    (folder / '40-own.sh').write_text('#!/bin/sh\necho "server { listen 8080; return 200 $ORDER; }" > /etc/nginx/conf.d/default.conf\n')
    (folder / '30-own.envsh').write_text('export ORDER=own\n')
    for script in folder.iterdir():
        script.chmod(0o755)
    mounts = [(f'/docker-entrypoint.d/{script.name}', script) for script in folder.iterdir()]
    box = Container(mounts=mounts)
    holds('scripts in /docker-entrypoint.d run in order, .envsh with its variables', box.ask('/') == 'own', box.said())
    box.stop()
    box = Container(args=['sh', '-c', 'echo $0 only; ls /docker-entrypoint.d'])
    code = box.process.wait(SECONDS)
    holds('another command runs without preparation', code == 0 and 'sh only' in box.said() and 'Launching' not in box.said(), box.said())
    box.stop()


def filled(name, variables):
    """The configuration of an example, as the image fills it in."""
    text = (ROOT / f'examples/compose/{name}/templates/default.conf.template').read_text()
    for variable, value in variables.items():
        text = text.replace('${' + variable + '}', value)
    return text


def compose():
    for name, variables in {'express': {'APP': 'app:3000', 'DASHBOARD_TOKEN': '0' * 32}, 'wordpress': {'WORDPRESS': 'wordpress:80'}}.items():
        hosts = room / f'{name}.hosts'
        hosts.write_text('127.0.0.1 localhost app wordpress\n')
        box = Container(args=['nginx', '-t'], env=[f'{key}={value}' for key, value in variables.items()] + [f'NGINX_ENVSUBST_FILTER=^{"|".join(variables)}$'],
                        mounts=[('/etc/nginx/templates', ROOT / f'examples/compose/{name}/templates'), ('/etc/hosts', hosts)])
        code = box.process.wait(SECONDS)
        holds(f'the image fills in the template of compose/{name}, and weir accepts it', code == 0 and 'test is successful' in box.said(), box.said())
        box.stop()
        if not Path('/usr/sbin/nginx').exists():
            print(f'skipped: nginx is not here to accept compose/{name}: apt install nginx')
            continue
        conf = room / f'{name}.conf'
        pages = room / 'pages'
        conf.write_text(f'pid {room}/pid; events {{ }} http {{ {filled(name, variables)} }}'.replace('/var/cache/nginx/pages', str(pages)))
        code, said = output('unshare', '--mount', 'sh', '-c', f'mount --bind {hosts} /etc/hosts && exec /usr/sbin/nginx -t -e stderr -c {conf}')
        holds(f'nginx accepts the configuration of compose/{name}', code == 0, said)


try:
    found = [Path(chosen.image)] if chosen.image else sorted((ROOT / 'target/package').glob('weir-*.oci.tar'))
    if not found:
        sys.exit('there is no image: cargo xtask package')
    unpack(found[0])
    as_started(found[0])
    templates()
    scripts()
    compose()
finally:
    shutil.rmtree(room, ignore_errors=True)
print(f'{told[True]} hold, {told[False]} fail ({chosen.runtime})')
sys.exit(1 if told[False] else 0)
