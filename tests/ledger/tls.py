"""Vulnerabilities of TLS: sessions, renegotiation, client certificates, origins behind TLS."""
import base64
import contextlib
import os
import re
import select
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import wire
from row import Row
from target import Hole, NotRun, need

REQUEST = b"GET /%s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n"
ALIVE2 = "server { listen 127.0.0.1:<port2>; <alive> }"


def openssl(*arguments, stdin=None):
    try:
        return subprocess.run(["openssl", *arguments], input=stdin, capture_output=True, check=True, timeout=60).stdout
    except FileNotFoundError as error:
        raise NotRun("openssl is not installed") from error


def certificate(target, name, issuer=None, extensions=()):
    """Makes NAME.crt and NAME.key in the target's folder: an authority, or a certificate of one."""
    base = f"{target.dir}/{name}"
    subject = ["-subj", f"/CN={name}", "-keyout", base + ".key", "-out", base + ".crt", "-nodes", "-days", "2", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    added = [f"subjectAltName=DNS:{name}", *extensions] if issuer else ["basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature"]
    signed = ["-CA", f"{target.dir}/{issuer}.crt", "-CAkey", f"{target.dir}/{issuer}.key"] if issuer else []
    openssl("req", "-x509", *subject, *signed, *(word for one in added for word in ("-addext", one)))


def two_hosts(target):
    """Two hosts, each with an authority for its clients."""
    for name in ("authority", "friends", "strangers"):
        certificate(target, name)
    for name, issuer in (("a.test", "authority"), ("b.test", "authority"), ("friend", "friends"), ("stranger", "strangers")):
        certificate(target, name, issuer)


def context(target, client=None, version=None, protocols=None):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    if client:
        made.load_cert_chain(f"{target.dir}/{client}.crt", f"{target.dir}/{client}.key")
    if version:
        made.minimum_version = made.maximum_version = version
    if protocols:
        made.set_alpn_protocols(protocols)
    return made


def talk(target, made, name, session=None, data=None, port=None, patience=3):
    """A request over TLS: the answer's bytes, the session, and whether the server took a session over."""
    with wire.connect(port or target.port, patience) as plain:
        with made.wrap_socket(plain, server_hostname=name, session=session, suppress_ragged_eofs=True) as secured:
            secured.sendall(data or REQUEST % (b"", name.encode()))
            got = wire.drain(secured, patience)
            return got, secured.session, secured.session_reused


VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def session_of_another(target, versions=VERSIONS):
    """A session of a host that trusts the client must not open the host that does not."""
    for version in versions:
        made = context(target, "friend", version)
        got, session, _ = talk(target, made, "a.test")
        need(b"host a" in got, f"the first host does not answer: {got[:60]!r}")
        fresh = b""
        try:
            fresh = talk(target, context(target, "friend", version), "b.test")[0]
        except OSError:
            pass
        need(b"host b" not in fresh, "the second host takes the certificate itself")
        try:
            got = talk(target, made, "b.test", session)[0]
        except OSError:
            # A refused handshake is as good as a refused request.
            continue
        need(b"host b" not in got, f"{version.name}: the session of one host opens the other")


def session_of_another_1_2(target):
    session_of_another(target, VERSIONS[:1])


HOSTS = """ssl_session_cache shared:one:1m; ssl_protocols TLSv1.2 TLSv1.3;
server { listen 127.0.0.1:<port> ssl; server_name a.test; ssl_certificate <dir>/a.test.crt; ssl_certificate_key <dir>/a.test.key;
    ssl_client_certificate <dir>/friends.crt; ssl_verify_client on; location / { return 200 'host a'; } }
server { listen 127.0.0.1:<port> ssl; server_name b.test; ssl_certificate <dir>/b.test.crt; ssl_certificate_key <dir>/b.test.key;
    ssl_client_certificate <dir>/strangers.crt; ssl_verify_client on; location / { return 200 'host b'; } }
""" + ALIVE2


def one_host(target):
    certificate(target, "authority")
    certificate(target, "a.test", "authority")


HOST = """ssl_protocols TLSv1.2 TLSv1.3;
server { listen 127.0.0.1:<port> ssl; server_name a.test; ssl_certificate <dir>/a.test.crt; ssl_certificate_key <dir>/a.test.key; %s
    location / { return 200 'host a'; } location /body { proxy_pass http://127.0.0.1:<origin>; } }
""" + ALIVE2


def renegotiate(target):
    """A client of TLS 1.2 that asks for a second handshake on its connection."""
    command = ["openssl", "s_client", "-connect", f"127.0.0.1:{target.port}", "-tls1_2", "-servername", "a.test"]
    try:
        client = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    except FileNotFoundError as error:
        raise NotRun("openssl is not installed") from error
    said = b""

    def hears(mark, seconds):
        """Whether the client says this within the time; it may also end."""
        nonlocal said
        until = time.monotonic() + seconds
        while mark not in said and (left := until - time.monotonic()) > 0:
            if not select.select([client.stdout], [], [], left)[0]:
                return False
            if not (more := client.stdout.read(65536)):
                return False
            said += more
        return mark in said

    try:
        need(hears(b"Verify return code", 30), f"no handshake: {said[-200:]!r}")
        with contextlib.suppress(OSError):
            client.stdin.write(b"GET / HTTP/1.1\r\nHost: a.test\r\n")
            # The letter counts only at the beginning of what the client reads at once.
            for _ in range(30):
                time.sleep(0.3)
                client.stdin.write(b"R\n")
                if hears(b"RENEGOTIATING", 1):
                    break
            hears(b"no such text", 0.7)
            client.stdin.write(b"X: y\r\nConnection: close\r\n\r\n")
        hears(b"no such text", 1)
    finally:
        client.kill()
        client.communicate()
    need(b"RENEGOTIATING" in said, "the client did not ask for a second handshake")
    need(b"host a" not in said, "the server made a second handshake and joined both parts of the request")


def other_protocols(target):
    """A client that offers only protocols of mail and files must not get a handshake."""
    for offer in (["imap"], ["smtp"], ["ftp"], ["pop3", "managesieve"]):
        try:
            got = talk(target, context(target, protocols=offer), "a.test")[0]
        except ssl.SSLError as error:
            need("no application protocol" in str(error).lower().replace("_", " "), f"another error: {error}")
            continue
        raise Hole(f"a client of {offer[0]} got a handshake and {got[:20]!r}")


def plain_before_tls(connection, target):
    """An origin that answers before the handshake."""
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Injected: yes\r\nContent-Length: 8\r\n\r\ninjected")
    time.sleep(0.05)


def early_answers(target):
    """The answer must not come from bytes that stand before the handshake."""
    for _ in range(120):
        answer = target.get("/")
        need(b"injected" not in answer.body, "the plain text before the handshake is the answer")
        need(answer.status in (502, 504), f"status {answer.status}")


def busy_bodies(target):
    """Ends, pauses and half records of TLS 1.3 within a body: the server may not be busy while it waits."""
    open_ones = []
    head = b"POST /body HTTP/1.1\r\nHost: a.test\r\nContent-Length: 100000\r\n\r\nabc"
    try:
        for kind in range(8):
            plain = wire.connect(target.port)
            open_ones.append(plain)
            into, out = ssl.MemoryBIO(), ssl.MemoryBIO()
            made = context(target, version=ssl.TLSVersion.TLSv1_3).wrap_bio(into, out, server_hostname="a.test")
            while True:
                try:
                    made.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    plain.sendall(out.read())
                    into.write(plain.recv(65536))
            made.write(head)
            plain.sendall(out.read())
            if kind == 1:
                plain.shutdown(socket.SHUT_WR)
            elif kind in (2, 3):
                try:
                    made.unwrap()
                except ssl.SSLError:
                    pass
                plain.sendall(out.read())
                if kind == 3:
                    plain.shutdown(socket.SHUT_WR)
            elif kind in (4, 5):
                made.write(b"x" * 5000)
                plain.sendall(out.read()[:kind * 700])
                if kind == 5:
                    plain.shutdown(socket.SHUT_WR)
            elif kind == 6:
                plain.sendall(b"\x17\x03\x03")
            elif kind == 7:
                for _ in range(200):
                    made.write(b"y")
                plain.sendall(out.read())
        before = target.cpu_s()
        time.sleep(2)
        used = target.cpu_s() - before
        need(used < 0.5, f"the server used {used:.1f} s of CPU in two seconds in which it waits")
    finally:
        for plain in open_ones:
            plain.close()


def rotated_keys(target):
    """A ticket of a key that the file no longer has must not open a session; one of a rotated key must."""
    with open(f"{target.dir}/old.key", "wb") as old, open(f"{target.dir}/new.key", "wb") as new:
        old.write(os.urandom(80))
        new.write(os.urandom(80))
    for version in VERSIONS:
        made = context(target, version=version)

        def taken(first, second, session=None):
            for name, source in (("1.key", first), ("2.key", second)):
                with open(f"{target.dir}/{source}", "rb") as file:
                    target.write(name, file.read())
            target.restart()
            return talk(target, made, "a.test", session)[1:]

        session, _ = taken("old.key", "old.key")
        need(taken("new.key", "old.key", session)[1], f"{version.name}: a ticket of the second key is refused")
        session, _ = taken("old.key", "old.key")
        need(not taken("new.key", "new.key", session)[1], f"{version.name}: a ticket of a key that is gone opens a session")


def first_keys(target):
    one_host(target)
    for name in ("1.key", "2.key"):
        target.write(name, os.urandom(80))


def stream_session(target):
    """A session of a stream server without client certificates must not open the one that requires them."""
    for version in VERSIONS:
        made = context(target, version=version)
        got, session, _ = talk(target, made, "a.test", data=b"hello", port=target.port2)
        need(b"open" in got, f"the open server does not answer: {got!r}")
        for name in ("a.test", "b.test", "other.test"):
            try:
                got = talk(target, made, name, session)[0]
            except OSError:
                continue
            need(b"closed" not in got, f"{version.name}, {name}: the closed server answers a client without a certificate")


STREAM = """stream {
    ssl_certificate <dir>/a.test.crt; ssl_certificate_key <dir>/a.test.key; ssl_session_cache shared:one:1m;
    server { listen 127.0.0.1:<port> ssl; ssl_verify_client on; ssl_client_certificate <dir>/friends.crt; return closed; }
    server { listen 127.0.0.1:<port2> ssl; return open; }
}
"""


def resumed_with_header(target):
    """An abbreviated handshake before a PROXY header of version 2, with a certificate by name."""
    for version in VERSIONS:
        made = context(target, version=version)
        session = None
        for _ in range(3):
            got, session, _ = talk(target, made, "a.test", session, data=b"hello")
            need(got.startswith(b"\r\n\r\n\0\r\nQUIT\n!"), f"the peer got no header of version 2: {got[:20]!r}")


def echo_header(connection, _):
    connection.sendall(connection.recv(4096))


def ocsp(target):
    """A client's certificate, its authority, and a list of revoked certificates for the responder."""
    two_hosts(target)
    certificate(target, "revoked", "friends", [f"authorityInfoAccess=OCSP;URI:http://ocsp.test:{target.values['origin']}/"])
    serial = openssl("x509", "-in", f"{target.dir}/revoked.crt", "-noout", "-serial").decode().strip().partition("=")[2]
    target.write("index.txt", f"R\t351231235959Z\t251126000000Z\t{serial}\tunknown\t/CN=revoked\n")


def responder(connection, target):
    """An OCSP responder: openssl makes the answers."""
    before, after = wire.head(connection)
    if not before:
        return
    if before.startswith(b"GET "):
        after = base64.b64decode(urllib.parse.unquote_to_bytes(before.split(b" ")[1].lstrip(b"/")))
    else:
        length = int(re.search(rb"(?i)content-length: *(\d+)", before)[1])
        while len(after) < length:
            after += connection.recv(65536)
    asked = f"{target.dir}/ocsp.{threading.get_ident()}"
    with open(asked, "wb") as file:
        file.write(after)
    base = target.dir
    openssl("ocsp", "-index", f"{base}/index.txt", "-CA", f"{base}/friends.crt", "-rkey", f"{base}/friends.key", "-rsigner", f"{base}/friends.crt",
            "-ndays", "1", "-reqin", asked, "-respout", asked + ".out")
    with open(asked + ".out", "rb") as file:
        answer = file.read()
    target.note(("ocsp", len(answer)))
    connection.sendall(b"HTTP/1.0 200 OK\r\nContent-Type: application/ocsp-response\r\nContent-Length: %d\r\n\r\n" % len(answer) + answer)


def name_of_responder(question, _):
    if wire.asked(question)[1] != wire.A:
        return [wire.reply(question)]
    time.sleep(0.3)
    return [wire.reply(question, (wire.A, bytes([127, 0, 0, 1]), 1))]


def slow_name(question, target):
    """The name of the responder, after the server has given up the client."""
    if wire.asked(question)[1] == wire.A:
        time.sleep(1.2)
    return name_of_responder(question, target)


def leave_early(target):
    """Clients that leave, or that the server gives up, while it resolves the name of the responder."""

    def one(patience):
        try:
            talk(target, context(target, "revoked"), "a.test", patience=patience)
        except OSError:
            pass

    clients = [threading.Thread(target=one, args=(patience,)) for patience in (0.1, 0.3, 2.5, 2.5)]
    for client in clients:
        client.start()
    for client in clients:
        client.join()
    # The name server replies after the server has given the clients up.
    time.sleep(0.8)


def revoked_in_stream(target):
    """A client whose certificate is revoked must not reach the stream."""
    for version in VERSIONS:
        got = b""
        try:
            got = talk(target, context(target, "revoked", version), "a.test", data=b"hello", patience=5)[0]
        except OSError:
            pass
        need(target.noted("ocsp"), "the responder was not asked")
        need(b"reached" not in got, f"{version.name}: a revoked certificate opens the stream")


OLD_TLS = "needs an OpenSSL of its time; nginx of these versions does not compile with OpenSSL 3"
SESSION = "a session opens only the server with which it began; another one makes a full handshake"
ROWS = [
    Row("2009-3555", "TLS: renegotiation joins two parties' bytes", "0.1.0-0.8.22", "rustls has no renegotiation", renegotiate, unbuilt=OLD_TLS, prepare=one_host,
        http=HOST % "", origin=wire.origin(b""), ssl=True),
    Row("2014-3616", "TLS: a session opens another host", "0.5.6-1.7.4", SESSION, session_of_another_1_2, unbuilt=OLD_TLS, prepare=two_hosts, http=HOSTS, ssl=True),
    Row("2021-3618", "TLS: a client of another protocol gets a handshake (ALPACA)", "before 1.21.0 (mail), ALPN before 1.21.4", "weir refuses an ALPN list without HTTP",
        other_protocols, release="1.21.3", prepare=one_host, http=HOST % "", origin=wire.origin(b""), ssl=True, asan=False),
    Row("2025-23419", "TLS 1.3: a session opens another host", "1.11.4-1.27.3", SESSION, session_of_another, release="1.27.3", prepare=two_hosts, http=HOSTS, ssl=True, asan=False),
    Row("2026-1642", "plain text before the handshake of a TLS origin is its answer", "1.3.0-1.29.4", "weir reads nothing before the handshake is done", early_answers,
        release="1.29.4", origin=plain_before_tls, ssl=True, asan=False,
        http="server { listen 127.0.0.1:<port>; <alive> location / { proxy_pass https://127.0.0.1:<origin>; } }"),
    Row("2026-28755", "`stream`: a revoked client certificate is taken", "1.27.2-1.29.6", "weir asks the responder before it connects to the peer", revoked_in_stream,
        release="1.29.6", prepare=ocsp, origin=responder, dns=name_of_responder, ssl=True, asan=False, http=ALIVE2,
        main="""stream { resolver <dns>; server { listen 127.0.0.1:<port> ssl; ssl_certificate <dir>/a.test.crt; ssl_certificate_key <dir>/a.test.key;
    ssl_verify_client on; ssl_client_certificate <dir>/friends.crt; ssl_ocsp leaf; return reached; } }
"""),
    Row("2026-40701", "`ssl_ocsp`: use of freed memory if a client leaves", "1.19.0-1.30.0", "the connection's task owns the question", leave_early, release="1.30.0",
        prepare=ocsp, origin=responder, dns=slow_name, ssl=True,
        http="resolver <dns>; client_header_timeout 1s;" + HOST % "ssl_verify_client on; ssl_client_certificate <dir>/friends.crt; ssl_ocsp leaf;"),
    Row("2026-97629", "TLS: tickets can be forged when keys rotate", "before 1.31.7", "keys are random or from the files; weir uses no key before it is set", rotated_keys, near=True,
        prepare=first_keys, origin=wire.origin(b""), http=HOST % "ssl_session_ticket_key <dir>/1.key; ssl_session_ticket_key <dir>/2.key;", ssl=True),
    Row("2026-118899", "TLS 1.3: a worker is busy without end while it reads a body", "1.31.0-1.31.8", "weir waits for the socket", busy_bodies, near=True,
        prepare=one_host, origin=wire.origin(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), http=HOST % "", ssl=True),
    Row("2026-120967", "`stream`: client certificates are not required", "1.25.5-1.31.8", SESSION, stream_session, near=True, prepare=two_hosts, main=STREAM, ssl=True, serves=False),
    Row("2026-120993", "`stream`: crash by an abbreviated handshake and the PROXY protocol", "1.31.4-1.31.8", "safe Rust",
        resumed_with_header, release="1.31.4", prepare=one_host, origin=echo_header, ssl=True, http=ALIVE2,
        main="""stream { map $ssl_server_name $pair { default <dir>/a.test; }
    server { listen 127.0.0.1:<port> ssl; ssl_certificate $pair.crt; ssl_certificate_key $pair.key; proxy_pass 127.0.0.1:<origin>; proxy_protocol v2; } }
"""),
]
for one in ROWS:
    one.alive2 = "<port2>; <alive>" in one.http
