"""The proxies under measurement: how each is configured, started on its core and stopped."""

import os
import re
import shutil
import socket
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
FLOOR = HERE / "floor" / "target" / "release" / "floor"
PEER_CORE, LOAD_CORE = 0, 1
READY_SECONDS = 5
ALONE = ("-g", "master_process off;")     # weir in one process, without a keeper


@dataclass(frozen=True)
class Peer:
    name: str
    program: str            # path or name of the binary
    conf: str | None        # file in conf/
    argv: tuple             # {program}, {conf}, {prefix}, {listen}, {origin} are filled in
    tuned: bool = False     # only where tuning can matter
    rated: bool = False     # only at a fixed rate
    argv0: str | None = None
    cache: tuple | None = None  # conf and argv where the answer is to come out of its cache
    tls: str | None = None  # conf where clients speak TLS

    def set_up(self, cached, secure):
        """Its file in conf/ and its argv."""
        return self.cache if cached else (self.tls if secure else self.conf, self.argv)


def all_peers(weir, weir_argv0, nginx=None, haproxy=None):
    """Every peer whose binary is there, in the order of the report."""
    nginx_argv = ("{program}", "-c", "{conf}", "-p", "{prefix}")
    weir_argv = nginx_argv if weir_argv0 else ("{program}", "edge", "-c", "{conf}", "-p", "{prefix}")
    argv0 = "nginx" if weir_argv0 else None
    haproxy_argv = ("{program}", "-db", "-f", "{conf}")
    nginx, haproxy, varnish = nginx or _find("nginx"), haproxy or _find("haproxy"), _find("varnishd")
    peers = [
        Peer("floor", str(FLOOR), None, ("{program}", "relay", "--listen", "{listen}", "--origin", "{origin}"),
             cache=(None, ("{program}", "origin", "--listen", "{listen}"))),
        Peer("nginx", nginx, "nginx.conf", nginx_argv, cache=("nginx-cache.conf", nginx_argv), tls="nginx-tls.conf"),
        Peer("nginx-tuned", nginx, "nginx-tuned.conf", nginx_argv, tuned=True, cache=("nginx-cache-tuned.conf", nginx_argv)),
        Peer("haproxy", haproxy, "haproxy.cfg", haproxy_argv, cache=("haproxy-cache.cfg", haproxy_argv), tls="haproxy-tls.cfg"),
        Peer("varnish", varnish, None, (), cache=(None, (
            "{program}", "-F", "-a", "{listen}", "-b", "{origin}", "-n", "{prefix}varnish", "-s", "malloc,256m", "-t", "3600"))),
        Peer("weir", weir, "nginx.conf", weir_argv, argv0=argv0, cache=("nginx-cache.conf", weir_argv), tls="nginx-tls.conf"),
        Peer("weir-tuned", weir, "nginx-tuned.conf", weir_argv, tuned=True, argv0=argv0),
        *(Peer(f"weir-{time}", weir, "nginx.conf", (*weir_argv, "-g", f"worker_coalesce {time};"), rated=True, argv0=argv0)
          for time in ("auto", "200us", "400us", "1ms")),
    ]
    return [peer for peer in peers if peer.program and os.access(peer.program, os.X_OK)]


class Running:
    """A started process, on one core or on several, that is stopped on leaving the `with` block."""

    def __init__(self, name, argv, core, listen, log, executable=None):
        cores = {core} if isinstance(core, int) else set(core)
        self.name, self.listen, self.log = name, listen, log
        with open(log, "ab") as out:
            self.process = subprocess.Popen(
                argv, executable=executable, stdin=subprocess.DEVNULL, stdout=out, stderr=out,
                preexec_fn=lambda: os.sched_setaffinity(0, cores))

    def __enter__(self):
        host, port = self.listen.split(":")
        give_up = time.monotonic() + READY_SECONDS
        while time.monotonic() < give_up and self.process.poll() is None:
            try:
                socket.create_connection((host, int(port)), timeout=1).close()
                return self
            except OSError:
                time.sleep(0.02)
        self.__exit__()
        raise PeerFailed(f"{self.name} did not start: {Path(self.log).read_text(errors='replace')[-800:]}")

    def __exit__(self, *_):
        self.process.terminate()
        try:
            self.process.wait(READY_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    @property
    def pid(self):
        return self.process.pid


class PeerFailed(Exception):
    """A peer or the origin did not do its part; the run does not count."""


def certificate(work):
    """A self-signed certificate for RSA-2048 with its key, made once a run."""
    path = Path(work) / "certificate.pem"
    if not path.exists():
        key, own = path.with_suffix(".key"), path.with_suffix(".crt")
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", own,
                        "-subj", "/CN=localhost", "-days", "2"], check=True, capture_output=True)
        path.write_text(own.read_text() + key.read_text())
    return path


# What the files say where clients speak HTTP/2.
HTTP2 = {"@http2@": " http2", "@proto@": " proto h2", "@alpn@": " alpn h2,http/1.1"}
# What becomes of what they say where origins are asked over HTTP/2.
ORIGIN_HTTP2 = {"proxy_http_version 1.1": "proxy_http_version 2", "server origin @origin@": "server origin @origin@ proto h2"}


def written(source, prefix, listen, origin, work, http2=False, origin_http2=False, servers=1):
    """A file of conf/ with everything filled in, in the prefix directory. Several servers of the group are one origin."""
    text = (HERE / "conf" / source).read_text()
    text = re.sub(r"\bserver (origin )?@origin@[^\n]*\n", lambda line: "".join(
        line[0].replace("server origin", f"server origin{number}") for number in range(servers)), text)
    if "@certificate@" in text:
        text = text.replace("@certificate@", str(certificate(work)))
    for place, words in HTTP2.items():
        text = text.replace(place, words if http2 else "")
    for said, instead in ORIGIN_HTTP2.items() if origin_http2 else ():
        text = text.replace(said, instead)
    conf = Path(prefix) / source
    conf.write_text(text.replace("@listen@", listen).replace("@origin@", origin))
    return conf


def start(peer, listen, origin, work, cached=False, secure=False, http2=False, origin_http2=False, servers=1):
    """Starts a peer on its core with its own prefix directory below `work`."""
    prefix = Path(work) / peer.name
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    source, argv = peer.set_up(cached, secure)
    conf = written(source, prefix, listen, origin, work, http2, origin_http2, servers) if source else None
    values = dict(program=peer.program, conf=conf, prefix=f"{prefix}/", listen=listen, origin=origin)
    argv = [part.format(**values) for part in argv]
    if peer.argv0:
        argv[0] = peer.argv0
    return Running(peer.name, argv, PEER_CORE, listen, prefix / "output.log", executable=peer.program)


def start_origin(listen, work):
    return Running("origin", [str(FLOOR), "origin", "--listen", listen], LOAD_CORE, listen, Path(work) / "origin.log")


def start_other_origin(kind, listen, work, weir):
    """nginx as the origin, 1 KiB over HTTP/1.1 ("h1") or over HTTP/2 without TLS ("h2"); or weir's own, which can wait ("slow")."""
    if kind == "slow":
        if not weir:
            raise PeerFailed("the slow origin is weir's own: --weir names the binary")
        log = Path(work) / "slow-origin.log"
        return Running("slow-origin", [weir, "origin", "--listen", listen], LOAD_CORE, listen, log)
    prefix = Path(work) / "nginx-origin"
    (prefix / "logs").mkdir(parents=True, exist_ok=True)
    text = (HERE / "conf" / "origin.conf").read_text()
    places = {"@listen@": listen, "@http2@": " http2" if kind == "h2" else "", "@body@": "x" * 1024}
    for place, words in places.items():
        text = text.replace(place, words)
    (prefix / "nginx.conf").write_text(text)
    argv = [_find("nginx"), "-c", str(prefix / "nginx.conf"), "-p", f"{prefix}/"]
    return Running("nginx-origin", argv, LOAD_CORE, listen, prefix / "output.log")


def versions(peers):
    """What each program says it is."""
    asks = {"nginx": "-v", "haproxy": "-v", "varnish": "-V"}
    said = {}
    for peer in peers:
        ask = asks.get(peer.name)
        if ask:
            done = subprocess.run([peer.program, ask], capture_output=True, text=True)
            said[peer.name] = (done.stdout + done.stderr).splitlines()[0]
        elif peer.name == "weir":
            said[peer.name] = f"{peer.program}, built {time.ctime(os.path.getmtime(peer.program))}"
    return said


def _find(name):
    return shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")
