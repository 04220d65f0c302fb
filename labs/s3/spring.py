"""Spring Boot 3 with its embedded Tomcat (`labs/apps/spring`), built once from Maven Central and kept outside the repository.

Debian: maven default-jdk-headless. The jar lies in `$XDG_CACHE_HOME/weir-labs` (`~/.cache/weir-labs`), named by what it was
built from.
"""

import hashlib, os, shutil, subprocess, sys, tempfile, time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

SOURCE = HERE.parent / 'apps' / 'spring'
PROGRAMS = ('mvn', 'java')
PORT = 8080
START_SECONDS = 120
BUILD_SECONDS = 280


def missing():
    """What is not installed of what the application needs."""
    return [program for program in PROGRAMS if not shutil.which(program)]


def jar():
    """The application as one file, built where it is not there yet; needs Maven Central then."""
    sources = sorted(path for path in SOURCE.rglob('*') if path.is_file())
    name = hashlib.sha256(b''.join(path.read_bytes() for path in sources)).hexdigest()[:16]
    cache = Path(os.environ.get('XDG_CACHE_HOME') or Path.home() / '.cache') / 'weir-labs'
    kept = cache / f'spring-{name}.jar'
    if kept.exists():
        return kept
    cache.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache) as room:
        copy = shutil.copytree(SOURCE, Path(room) / 'spring')
        print('  building the Spring Boot application (once)', flush=True)
        done = subprocess.run(['mvn', '-q', '-B', '-f', str(copy / 'pom.xml'), 'package'], capture_output=True, text=True,
                              timeout=BUILD_SECONDS)
        if done.returncode:
            raise RuntimeError(f'mvn: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}')
        (copy / 'target' / 'spring.jar').rename(kept)
    return kept


class Spring(lab.Process):
    """The application on port 8080 of every address, for as long as a `with` block lasts; it says which it was asked at."""

    def __init__(self, file):
        self.output = tempfile.TemporaryFile('w+')
        command = ['java', '-Xmx256m', '-XX:TieredStopAtLevel=1', '-jar', str(file), f'--server.port={PORT}',
                   '--spring.main.banner-mode=off']
        super().__init__(command, stdout=self.output, stderr=self.output)
        until = time.monotonic() + START_SECONDS
        while True:
            try:
                return lab.wait_for_port('127.0.0.1', PORT, self.child)
            except RuntimeError:
                if self.child.poll() is not None or time.monotonic() > until:
                    self.__exit__()
                    raise RuntimeError(f'the application does not start:\n{self.said()}') from None

    def said(self):
        """The end of what it printed."""
        self.output.seek(0)
        return self.output.read()[-2000:]
