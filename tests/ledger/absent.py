"""Vulnerabilities of parts that weir does not have, and those that cannot be attacked over loopback."""
from row import Row

MAIL = "mail { server { listen 127.0.0.1:<port>; protocol smtp; } }"
# A reader of QUIC or HTTP/3 in weir is safe Rust, and these run it on any bytes.
SAFE = "safe Rust reads QUIC and HTTP/3; "
FRAMES = "`cargo test -p weir-wire --test mutate h3`"
QPACK = "`cargo test -p weir-wire --test mutate qpack`"
HANDSHAKES = "`cargo test -p weir-quic tls`"
SPDY = "http { server { listen 127.0.0.1:<port> spdy; } }"


def mail(cve, title, holes):
    return Row(cve, title, holes, "weir is no mail proxy: it refuses `mail` by name", absent="no mail proxy", refused=MAIL)


def quic(cve, title, holes, weir):
    return Row(cve, title, holes, weir, absent="not built: the program that attacks speaks no QUIC")


def spdy(cve, title, holes):
    return Row(cve, title, holes, "weir does not speak SPDY: it refuses `spdy`", absent="no SPDY", refused=SPDY)


def windows(cve, title, holes):
    return Row(cve, title, holes, "weir does not run on Windows", absent="Windows only")


ROWS = [
    windows("2010-2263", "file default streams", "nginx/Windows 0.7.52-0.8.39"),
    windows("2010-2266", "invalid UTF-8", "nginx/Windows 0.7.52-0.8.40"),
    windows("2011-4963", "directory aliases", "nginx/Windows 0.7.52-1.3.0"),
    windows("CORE-2010-0121", "8.3 names", "nginx/Windows 0.7.52-0.8.32"),
    spdy("2014-0088", "SPDY: memory corruption", "1.5.10"),
    spdy("2014-0133", "SPDY: heap overflow", "1.3.15-1.5.11"),
    mail("2014-3556", "STARTTLS: commands before the handshake", "1.5.6-1.7.3"),
    mail("2025-53859", "SMTP: over-read", "0.7.22-1.29.0"),
    mail("2026-27651", "CRAM-MD5 and APOP: NULL pointer dereference", "0.5.15-1.29.6"),
    mail("2026-28753", "`auth_http` and XCLIENT: injection", "0.6.27-1.29.6"),
    mail("2026-113425", "mail: use of freed memory", "0.5.33-1.31.8"),
    quic("2024-24989", "HTTP/3: NULL pointer dereference", "1.25.3", f"{SAFE}{FRAMES}"),
    quic("2024-24990", "HTTP/3: use of freed memory", "1.25.0-1.25.3", f"{SAFE}{FRAMES}"),
    quic("2024-31079", "HTTP/3: stack overflow, use of freed memory", "1.25.0-1.25.5, 1.26.0", f"{SAFE}{FRAMES}"),
    quic("2024-32760", "HTTP/3: buffer overwrite", "1.25.0-1.25.5, 1.26.0",
         f"the table of QPACK is bounded, and an instruction that does not fit ends the connection: {QPACK}"),
    quic("2024-34161", "HTTP/3: memory disclosure", "1.25.0-1.25.5, 1.26.0",
         f"{SAFE}a buffer has only bytes that were written: {HANDSHAKES}"),
    quic("2024-35200", "HTTP/3: NULL pointer dereference", "1.25.0-1.25.5, 1.26.0", f"{SAFE}{FRAMES}"),
    quic("2026-40460", "HTTP/3: false addresses", "1.25.0-1.30.0",
         "the address with which a client began its connection counts until the end, also after a move"),
    quic("2026-42530", "HTTP/3: use of freed memory", "1.31.0-1.31.1", f"{SAFE}{FRAMES}"),
    quic("2026-95101", "HTTP/3: injection into a body", "1.25.0-1.31.6",
         "the body's length must fit its Content-Length: `cargo test -p weir-wire a_body_has_its_declared_length`"),
    quic("2026-121810", "HTTP/3: use of freed memory when connections run out", "before 1.31.9",
         "a full table refuses the connection; safe Rust"),
    Row("2026-90439", "fixed in 1.31.6", "before 1.31.6", "not looked at: no description of the defect is known here",
        absent="no description"),
]
