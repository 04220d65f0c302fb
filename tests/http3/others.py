#!/usr/bin/env python3
"""weir's HTTP/3 for clients of other makers: a file of 1 MiB, a POST of 10 MB, WebSocket (RFC 9220), early data, a move to another port.

    tests/http3/others.py --weir BIN [NAME…]

Each client is a function below, whose name a part of NAME selects. What the clients need comes into `target/others`: packages of PyPI,
Go's proxy and crates.io, and two Debian roots by mmdebstrap. Needs root, mmdebstrap, Go, cargo, cmake, gcc, chromium, and the Python of the
other tests (`target/python/bin/python`), which has h2.
A line says `ok`, `failed` or `cannot`, which is a feature that the client lacks. The access log says that each request used HTTP/3.
"""

import argparse
import asyncio
import json
import base64
import os
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.parse
from pathlib import Path

import run
from origin import Origin, content

PARTS = Path(__file__).resolve().parent / "others"
ROOM = run.ROOT / "target/others"
MIRROR = "http://deb.debian.org/debian"
# Cases with requests, which have a line in the access log.
REQUESTS = ["get", "post", "websocket", "early", "move"]
# Packages of the root with Debian sid.
SID = ["ca-certificates", "curl", "python3"]
HTTP = """
    log_format own '|$request_uri|$request_method|$status|$http3|$connection|$remote_port|$request_length|';
    access_log access.log own;
    client_max_body_size 100m; proxy_http_version 1.1; proxy_set_header Connection "";
    server {
        listen 127.0.0.1:%(main)d quic; listen 127.0.0.1:%(main)d ssl; http2 on;
        server_name localhost; ssl_early_data on; keepalive_timeout 1s; root html; ssl_certificate localhost.crt; ssl_certificate_key localhost.key;
        add_header Alt-Svc 'h3=":%(main)d"; ma=86400';
        location / { }
        location /echo { proxy_pass http://127.0.0.1:%(origin)d; }
        location /ws { proxy_pass http://127.0.0.1:%(origin)d; proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; }
        location /told { return 204; }
        location /vars { return 200 "$http3 $ssl_early_data"; }
    }
"""


class Cannot(Exception):
    """The client has no such feature, or it cannot be made here."""


class Place:
    """The edge, the origin, and the files that clients read."""

    async def start(self, binary):
        self.origin = Origin()
        await self.origin.start()
        self.edge, ports = run.edge(binary, "main")
        self.port, self.big, self.body = ports["main"], content(1 << 20), content(10_000_000)
        # A client in a root of its own, which may not be root's, reads the certificate and the body.
        self.edge.room.chmod(0o755)
        self.edge.certificate("localhost")
        self.edge.file("html/big.txt", self.big)
        self.edge.file("body", self.body)
        self.edge.write(HTTP % {**ports, "origin": self.origin.port}, workers=2)
        await self.edge.start()

    def path(self, name):
        return str(self.edge.room / name)

    async def lines(self, mark):
        """The fields of the log's lines of a case."""
        await self.edge.line("access.log", mark + "|")
        return [line.split("|")[1:-1] for line in self.edge.text("access.log").splitlines() if mark + "|" in line]

    async def check(self, client, case):
        """What the log must say of a case that succeeded."""
        lines = await self.lines(f"{client}-{case}")
        for uri, method, status, http3, *_ in lines:
            assert http3 == "h3" and status in ("200", "101"), (uri, method, status, http3)
        if case == "move" and client != "ngtcp2":
            assert len({line[5] for line in lines}) > 1, f"no other port: {lines}"
            assert len({line[4] for line in lines}) == 1, f"another connection: {lines}"


def execute(*words, patience=600, **named):
    done = subprocess.run([str(word) for word in words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          timeout=patience, **named)
    said = done.stdout.decode(errors="replace")
    if done.returncode:
        raise AssertionError(f"{Path(str(words[0])).name} ended with {done.returncode}: {said[-300:].strip()}")
    return said


def made(name, make):
    """A folder of `target/others`, made once."""
    path = ROOM / name
    if not path.exists():
        print(f"making {path}", flush=True)
        with tempfile.TemporaryDirectory(prefix="new-", dir=ROOM) as new:
            make(Path(new) / name)
            (Path(new) / name).rename(path)
    return path


def debian(release, *packages):
    """The root of a Debian release with some packages."""
    def make(path):
        # A mirror may have stopped: its files are good, though old.
        execute("mmdebstrap", "--variant=minbase", "--aptopt=Acquire::Check-Valid-Until \"false\"", "--include=" + ",".join(packages),
                release, path, MIRROR, patience=1800)
    return made(release, make)


def said_by(output):
    """The cases of a program that writes a line for each."""
    found = {}
    for line in output.splitlines():
        case, _, rest = line.partition(" ")
        word, _, why = rest.partition(" ")
        if word in ("ok", "failed", "cannot"):
            found[case] = (word, why)
    return found


def python(place, package, interpreter, *words, **named):
    return said_by(execute(*words, interpreter, PARTS / "kin.py", package, place.port, place.path("body"), run.sha(place.big), **named))


def environment():
    def make(path):
        execute(sys.executable, "-m", "venv", path)
        execute(path / "bin/python", "-m", "pip", "install", "--quiet", "--upgrade", "pip", "aioquic==1.7.2", "qh3==2.1.0", "h2", "libclang")
    return made("python", make) / "bin/python"


def aioquic(place):
    return python(place, "aioquic", environment())


def qh3(place):
    return python(place, "qh3", environment())


def quic_go(place):
    program = ROOM / "quic-go"
    execute("go", "build", "-o", program, ".", cwd=PARTS / "quic-go", patience=1800)
    return said_by(execute(program, place.port, place.path("localhost.crt"), place.path("body"), run.sha(place.big)))


def curl(place):
    """curl with ngtcp2 and nghttp3, of Debian sid."""
    root, base = debian("sid", *SID), f"https://localhost:{place.port}"
    (root / "tmp/ca").write_bytes(Path(place.path("localhost.crt")).read_bytes())
    (root / "tmp/body").write_bytes(place.body)
    words = ["chroot", root, "curl", "--silent", "--show-error", "--http3-only", "--max-time", "60", "--cacert", "/tmp/ca",
             "--resolve", f"localhost:{place.port}:127.0.0.1"]

    def get():
        execute(*words, "--output", "/tmp/got", f"{base}/big.txt?curl-get")
        assert (root / "tmp/got").read_bytes() == place.big, "other bytes"

    def post():
        said = json.loads(execute(*words, "--data-binary", "@/tmp/body", f"{base}/echo?curl-post"))
        assert said["sha"] == run.sha(place.body), said["length"]

    def websocket():
        raise Cannot("curl has WebSocket over HTTP/1.1 alone")

    def early():
        # From another port, so the second request needs another connection.
        told = ["--tls-earlydata", "--write-out", "%{tls_earlydata} "]
        said = execute(*words, *told, f"{base}/vars?curl-first", "--next", *words[3:], *told, "--local-port", "20000-60000", f"{base}/vars?curl-early")
        assert int(said.split()[-1]) > 0, said

    def move():
        raise Cannot("curl keeps its socket")

    return each(get, post, websocket, early, move)


def each(*cases):
    found = {}
    for case in cases:
        try:
            case()
            found[case.__name__] = ("ok", "")
        except Cannot as why:
            found[case.__name__] = ("cannot", str(why))
        except (AssertionError, OSError, ValueError, KeyError, subprocess.SubprocessError) as error:
            found[case.__name__] = ("failed", str(error))
    return found


def ngtcp2(place):
    """`gtlsclient`, ngtcp2's own client with GnuTLS, of Debian 12."""
    root, base = debian("bookworm", "ca-certificates", "ngtcp2-client"), f"https://localhost:{place.port}"
    (root / "tmp/body").write_bytes(place.body)
    (root / "tmp/got").mkdir(exist_ok=True)

    def ask(path, *more):
        # The file has the name of the path.
        file = root / "tmp/got" / path
        file.unlink(missing_ok=True)
        words = ["--no-quic-dump", "--no-http-dump", "--exit-on-all-streams-close", "--timeout=20s", "--download=/tmp/got"]
        said = execute("chroot", root, "gtlsclient", *words, *more, "127.0.0.1", place.port, f"{base}/{path}")
        assert file.exists(), said[-300:]
        return file.read_bytes(), said

    def upload(name, *more):
        answer, said = ask(f"echo?ngtcp2-{name}", "--data=/tmp/body", "--http-method=POST", *more)
        assert json.loads(answer)["sha"] == run.sha(place.body), answer[:200]
        return set(re.findall(r"Sent packet: local=(\S+)", said))

    def get():
        assert ask("big.txt?ngtcp2-get")[0] == place.big, "other bytes"

    def post():
        upload("post")

    def websocket():
        raise Cannot("gtlsclient has no CONNECT")

    def early():
        kept = ["--session-file=/tmp/session", "--tp-file=/tmp/parameters"]
        for name in ("session", "parameters"):
            (root / "tmp" / name).unlink(missing_ok=True)
        ask("vars?ngtcp2-first", *kept)
        _, said = ask("vars?ngtcp2-early", *kept)
        assert "0RTT STREAM" in said and "rejected" not in said, said[-300:]

    def move():
        # With a new path that it proves first, and as after a new binding of a NAT, which it does not notice.
        for more in ([], ["--nat-rebinding"]):
            ports = upload("move", "--change-local-addr=20ms", *more)
            assert len(ports) == 2, ports

    return each(get, post, websocket, early, move)


def picoquic(place):
    """picoquic by aiopquic, with Debian sid's Python; HTTP/3's frames are aioquic's."""
    root = debian("sid", *SID)
    version = execute("chroot", root, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()

    def make(path):
        words = ["--target", path, "--python-version", version, "--only-binary=:all:", "--platform", "manylinux_2_28_x86_64", "--platform", "manylinux_2_34_x86_64"]
        execute(environment(), "-m", "pip", "install", "--quiet", *words, "aiopquic==0.6.1", "aioquic==1.7.2", "h2")

    packages = made("picoquic", make)
    there = root / "tmp/picoquic"
    shutil.rmtree(there, ignore_errors=True)
    shutil.copytree(packages, there / "packages")
    shutil.copytree(PARTS.parent, there / "http3")
    (there / "body").write_bytes(place.body)
    words = ["chroot", root, "env", "PYTHONPATH=/tmp/picoquic/packages", "python3", "/tmp/picoquic/http3/others/kin.py"]
    return said_by(execute(*words, "aiopquic", place.port, "/tmp/picoquic/body", run.sha(place.big)))


def quiche(place):
    """quiche, and the cases of h3spec by h3i."""
    room = ROOM / "quiche"
    # BoringSSL's bindings need libclang, which PyPI has, and the compiler's own headers.
    environment()
    libraries = list(ROOM.glob("python/lib/*/site-packages/clang/native"))
    include = execute("gcc", "-print-file-name=include").strip()
    settings = {**os.environ, "CARGO_TARGET_DIR": str(room), "LIBCLANG_PATH": str(libraries[0]), "BINDGEN_EXTRA_CLANG_ARGS": f"-I{include}"}
    execute("cargo", "build", "--quiet", "--locked", cwd=PARTS / "quiche", env=settings, patience=1800)
    return said_by(execute(room / "debug/quiche-client", place.port, place.path("body"), place.path("html/big.txt")))


def chromium(place):
    """Chromium opens a page that asks in each way."""
    shutil.copy(PARTS / "chromium.html", place.path("html/chromium.html"))
    spki = "openssl x509 -in localhost.crt -pubkey -noout | openssl pkey -pubin -outform der | openssl dgst -sha256 -binary"
    digest = base64.b64encode(subprocess.run(spki, shell=True, cwd=place.edge.room, check=True, stdout=subprocess.PIPE).stdout).decode()
    with tempfile.TemporaryDirectory(prefix="weir-chromium-") as profile:
        words = ["chromium", "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--user-data-dir={profile}",
                 f"--origin-to-force-quic-on=localhost:{place.port}", "--host-resolver-rules=MAP localhost 127.0.0.1",
                 f"--ignore-certificate-errors-spki-list={digest}", f"https://localhost:{place.port}/chromium.html#{run.sha(place.big)}"]
        browser = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            told = asyncio.run(place.edge.line("access.log", "/told?", patience=90))
        finally:
            browser.terminate()
            browser.wait()
    found = said_by(urllib.parse.unquote(told.split("|")[1].partition("?")[2]))
    if "|h3|" not in place.edge.text("access.log").split("chromium-websocket", 1)[-1].splitlines()[0]:
        found["websocket"] = ("cannot", "Chromium opens a WebSocket over HTTP/1.1 alone")
    return {**found, "move": ("cannot", "nothing changes the network of a browser here")}


CLIENTS = [aioquic, qh3, quic_go, curl, ngtcp2, picoquic, quiche, chromium]


async def main(words):
    place, counts = Place(), {"ok": 0, "failed": 0, "cannot": 0}
    ROOM.mkdir(parents=True, exist_ok=True)
    await place.start(words.weir)
    try:
        for client in CLIENTS:
            name = {"quic_go": "quic-go", "picoquic": "aiopquic"}.get(client.__name__, client.__name__)
            if words.names and not any(part in client.__name__ for part in words.names):
                continue
            try:
                found = await asyncio.to_thread(client, place)
            except Cannot as why:
                found = {"all": ("cannot", str(why))}
            except (AssertionError, OSError, subprocess.SubprocessError) as error:
                found = {"all": ("failed", str(error))}
            for case, (word, why) in found.items():
                # The cases of h3spec make no request, or one that has no line of its own.
                if word == "ok" and case in REQUESTS:
                    try:
                        await place.check(name, case)
                    except AssertionError as error:
                        word, why = "failed", str(error)
                counts[word] += 1
                print(f"{word:7} {name} {case} {why}".rstrip(), flush=True)
        await place.edge.settled(patience=70)
        await place.edge.stop()
    except (AssertionError, OSError) as error:
        counts["failed"] += 1
        print(f"failed  at the end: {error}", flush=True)
    finally:
        if counts["failed"]:
            print("--- error.log\n" + place.edge.text("error.log")[-4000:])
        place.edge.remove()
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    return 1 if counts["failed"] else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("names", nargs="*")
    sys.exit(asyncio.run(main(parser.parse_args())))
