"""A Debian that boots with systemd in a container without a network: Debian 12, or the release of the environment variable
WEIR_DEBIAN, by its name (`trixie`).

Its root is made once by mmdebstrap and kept, with the packages of Debian that the tests need. Needs root, mmdebstrap,
systemd-container, and a mirror of Debian for the first run."""

import os, shutil, subprocess, sys, time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MIRROR = 'http://deb.debian.org/debian'
RELEASE = os.environ.get('WEIR_DEBIAN', 'bookworm')
SECURITY = f'deb http://deb.debian.org/debian-security {RELEASE}-security main'
# What the machine has, and what its apt finds without a network.
INSTALLED = ['systemd', 'systemd-sysv', 'dbus', 'apt', 'ca-certificates', 'curl', 'procps', 'iproute2', 'logrotate', 'python3',
             'ssl-cert', 'man-db', 'apt-utils', 'fail2ban', 'goaccess', 'bash-completion']
MODULES = ['auth-pam', 'cache-purge', 'dav-ext', 'echo', 'fancyindex', 'geoip', 'geoip2', 'headers-more-filter', 'image-filter',
           'lua', 'perl', 'subs-filter', 'uploadprogress', 'upstream-fair', 'xslt-filter', 'set-misc', 'brotli-filter',
           'brotli-static', 'memc', 'srcache-filter']
MODULES = [f'libnginx-mod-http-{name}' for name in MODULES] + [f'libnginx-mod-{name}' for name in
           ['mail', 'nchan', 'rtmp', 'stream', 'stream-geoip', 'stream-geoip2']]
DOWNLOADED = ['nginx', 'nginx-light', 'nginx-core', 'nginx-full', 'nginx-extras', 'python3-certbot-nginx', *MODULES]


def output(*command, **more):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=1800, **more)
    return done.returncode, done.stdout


def deb(packages, name):
    found = sorted(packages.glob(f'{name}_*.deb'))
    if not found:
        sys.exit(f'there is no {name} in {packages}: cargo xtask package')
    return found[-1]


def root(room, name, *words):
    """A root of Debian as a tar file, made once."""
    tar = room / (f'{name}.tar' if RELEASE == 'bookworm' else f'{name}-{RELEASE}.tar')
    if not tar.exists():
        room.mkdir(parents=True, exist_ok=True)
        print(f'making {tar}', flush=True)
        code, said = output('mmdebstrap', '--variant=minbase', '--format=tar', *words, RELEASE, f'{tar}.new', MIRROR, SECURITY)
        if code != 0:
            sys.exit(said)
        Path(f'{tar}.new').rename(tar)
    return tar


def machine_root(room):
    # No release has all of them.
    download = 'chroot "$1" sh -c "apt-get install --download-only --yes \\$(apt-cache pkgnames | grep -Fx ' + ' '.join(f'-e {name}' for name in DOWNLOADED) + ')"'
    # The tests of nginx itself: only debian/tests of the source package, which is not there for all versions.
    source = ('cd /tmp && rm -rf weir-nginx-source && mkdir weir-nginx-source && cd weir-nginx-source && '
              'sed "s/^deb /deb-src /" "$1/etc/apt/sources.list" > list && mkdir -p lists/partial && '
              'set -- "$1" -o Dir::Etc::sourcelist=$PWD/list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$PWD/lists -o APT::Sandbox::User=root && '
              'root=$1 && shift && apt-get -qq "$@" update && '
              'for version in $(apt-cache "$@" showsrc nginx | sed -n "s/^Version: //p" | sort -rV); do apt-get -qq "$@" source --download-only nginx=$version && break; done; '
              'for tar in nginx_*.debian.tar.xz; do [ ! -e $tar ] || { tar -xf $tar debian/tests && cp -r debian/tests "$root/root/nginx-tests"; }; done')
    return root(room, 'machine', '--include=' + ','.join(INSTALLED), '--skip=cleanup/apt', f'--customize-hook={download}', f'--customize-hook={source}')


class Machine:
    """A Debian that runs, until the end of the `with` block."""

    def __init__(self, room, packages):
        self.top = room / f'machine-{os.getpid()}-{time.monotonic_ns()}'
        self.top.mkdir()
        subprocess.run(['tar', '-xf', machine_root(room), '-C', self.top], check=True)
        # A container has no kernel of its own, and nobody logs in.
        (self.top / 'etc/systemd/system/console-getty.service').symlink_to('/dev/null')
        (self.top / 'etc/systemd/system/fail2ban.service').symlink_to('/dev/null')
        (self.top / 'etc/apt/apt.conf.d/99test').write_text('APT::Install-Recommends "false";\n')
        shutil.rmtree(self.top / 'var/lib/logrotate', ignore_errors=True)
        (self.top / 'var/lib/logrotate').mkdir()
        for name in ['weir', 'weir-nginx']:
            package = deb(packages, name)
            shutil.copy(package, self.top / 'root' / package.name)
            (self.top / f'root/{name}.deb').symlink_to(package.name)
        self.log = open(self.top / 'boot.log', 'wb')
        self.process = subprocess.Popen(['systemd-nspawn', '--directory', self.top, '--private-network', '--keep-unit', '--register=no', '--boot'],
                                        stdin=subprocess.DEVNULL, stdout=self.log, stderr=subprocess.STDOUT)

    def __enter__(self):
        end = time.monotonic() + 60
        while time.monotonic() < end:
            children = Path(f'/proc/{self.process.pid}/task/{self.process.pid}/children').read_text().split()
            self.leader = children[0] if children else None
            if self.leader and self.run('systemctl is-system-running')[1].strip() in ['running', 'degraded']:
                return self
            time.sleep(0.3)
        self.__exit__()
        sys.exit(f'the container did not boot: {(self.top / "boot.log").read_text()[-2000:]}')

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self.log.close()
        shutil.rmtree(self.top, ignore_errors=True)

    def run(self, command):
        """A command in the machine, as root types it."""
        path = 'PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
        return output('nsenter', '-t', self.leader, '-m', '-u', '-i', '-n', '-p', '-C', 'env', '-i', path, 'HOME=/root', 'LC_ALL=C.UTF-8',
                      'DEBIAN_FRONTEND=noninteractive', 'AUTOPKGTEST_TMP=/tmp', 'sh', '-c', f'cd /root; {command}')

    def says(self, command):
        return self.run(command)[1].strip()

    def server(self):
        """The program that runs as nginx.service."""
        return self.says('readlink /proc/$(cat /run/nginx.pid)/exe')

    def status(self, url='http://127.0.0.1/'):
        return self.says(f'curl -k -s -o /dev/null -w "%{{http_code}}" {url}')
