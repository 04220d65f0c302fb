"""A cloud in the shape of Nextcloud: a front controller, a login, WebDAV of Sabre (Nextcloud's library), large bodies."""

import base64
import hashlib
import json
import random
import re
import shutil
import socket
import time
from pathlib import Path

import parts
from ports import free_port

HERE = Path(__file__).resolve().parent
DAV = "/remote.php/dav/files/kim/"
KIM = {"Authorization": "Basic " + base64.b64encode(b"kim:secret").decode()}
# A location that only X-Accel-Redirect reaches.
INTERNAL = "location /files-of-the-cloud/ { internal; alias DIR/data/kim/; }"


def run(room, args):
    parts.needs(("/usr/share/php/Sabre/autoload.php", "php-sabre-dav"), ("/usr/sbin/php-fpm*", "php-fpm"),
                ("/etc/php/*/mods-available/dom.ini", "php-xml"), ("/usr/bin/curl", "curl"), ("/etc/nginx/fastcgi_params", "nginx-common"))
    port, site = free_port(), room.dir / "site"
    shutil.copytree(HERE / "cloud", site)
    for file, text in (("config/config.php", "<?php $secret = 1;"), ("core/css/server.css", "body { color: blue }\n" * 100),
                       ("core/module.mjs", "export default 1;\n"), ("core/code.wasm", "\0asm")):
        (site / file).parent.mkdir(parents=True, exist_ok=True)
        (site / file).write_text(text)
    room.php_fpm()
    edge = room.edge(configuration(room, args.nextcloud_conf, port, site))
    browser = room.browser(port)
    pages(room, browser)
    log_in(room, browser)
    hidden(room, browser)
    static(room, browser)
    dav = room.browser(port)
    folders(room, dav)
    large(room, dav, port)
    names(room, dav)
    locks(room, dav)
    handed_over(room, browser)
    streamed(room, port)
    room.ends_well(edge)


def configuration(room, own, port, site):
    """The test's file, or Nextcloud's own with this test's folders and with one listener without TLS."""
    text = (own or HERE / "cloud.conf").read_text()
    if own:
        text = re.sub(r"upstream php-handler \{.*?\n\}", f"upstream php-handler {{ server unix:{room.dir}/php.sock; }}", text, flags=re.S)
        # The server that only leads to HTTPS has nothing to do here.
        text = re.sub(r"server \{\s*listen 80;.*?\n\}", "", text, flags=re.S)
        text = re.sub(r"(?m)^ *(listen|server_name|ssl_certificate|ssl_certificate_key) .*\n", "", text)
        text = parts.replaced(text, ("root /var/www/nextcloud;", f"listen 127.0.0.1:{port}; root {site};"))
        return text.rstrip().removesuffix("}") + INTERNAL.replace("DIR", str(site)) + "\n}"
    return parts.replaced(text, ("#internal", INTERNAL), ("PORT", str(port)), ("SOCKET", f"{room.dir}/php.sock"), ("DIR", str(site)))


def pages(room, browser):
    first = browser.get("/")
    room.check("the first page leads to the login", first.status == 303 and first["Location"].endswith("/login"), first)
    windows = browser.get("/", fields={"User-Agent": "DavClnt"}, label="/ for Windows's WebDAV")
    room.check("Windows's WebDAV is led to its service", windows.status == 302 and windows["Location"].endswith("/remote.php/webdav/"), windows)
    state = browser.get("/status.php", stable=True)
    room.check("status.php answers", state.status == 200 and json.loads(state.body)["installed"], state)
    ocs = browser.get("/ocs/v2.php/cloud/capabilities?format=json", fields={"OCS-APIRequest": "true"}, stable=True)
    room.check("a script gets its path", json.loads(ocs.body) == {"path": "/cloud/capabilities", "format": "json", "api": "true"}, ocs)
    # try_files and rewrite take $request_uri as the client wrote it, so only a path after a script's name is decoded. rewrite
    # takes the query for a part of the path, too.
    for target, path, query in (
            ("/params", "/params", ""), ("/params/a%20b/%ED%95%9C?x=1&y=%20", "/params/a%20b/%ED%95%9C", "x=1&y=%20"),
            ("/params//twice", "/params//twice", ""), ("/index.php/params//twice", "/params/twice", ""), ("/index.php/params/x.css", "/params/x.css", ""),
            ("/params/apps/old/list.php?dir=/", "/params/apps/old/list.php?dir=/", "dir=/"), ("/params/a+b/c%2Bd", "/params/a+b/c%2Bd", ""),
            ("/index.php/params/a%3Fb", "/params/a?b", ""), ("/index.php/params/100%25?q=%25", "/params/100%", "q=%25")):
        got = browser.get(target, stable=True)
        told = json.loads(got.body) if got.status == 200 else {}
        room.check(f"PHP gets the path of {target}", (told.get("PATH_INFO"), told.get("QUERY_STRING")) == (path, query), got)
        room.check(f"and the target as the client wrote it: {target}", told.get("REQUEST_URI") == target and told.get("SCRIPT_NAME") == "/index.php", got)
    missing = browser.get("/no/such/page")
    room.check("a missing page is the front controller's own 404", missing.status == 404 and "the cloud has no /no/such/page" in missing.text, missing)
    folder = browser.get("/core/", label="a folder without an index")
    room.check("a folder without an index goes to the front controller", folder.status == 404 and "the cloud has no /core" in folder.text, folder)
    for service in ("carddav", "caldav"):
        moved = browser.get(f"/.well-known/{service}")
        room.check(f"{service} is moved, without a host", moved.status == 301 and moved["Location"] == "/remote.php/dav/", moved)
    finger = browser.get("/.well-known/webfinger?resource=kim")
    room.check("the rest of .well-known too", finger["Location"] == "/index.php/.well-known/webfinger?resource=kim", finger)
    packed = browser.get("/core/css/server.css", fields={"Accept-Encoding": "gzip"}, label="a style sheet with gzip")
    room.check("style sheets are compressed", packed["Content-Encoding"] == "gzip" and "Accept-Encoding" in packed["Vary"], packed)


def log_in(room, browser):
    token = browser.get("/login").find(r'value="(\w+)"')
    form = {"user": "kim", "password": "secret", "requesttoken": token}
    forged = browser.ask("POST", "/login", form={**form, "requesttoken": "none"}, label="a forged form")
    room.check("a forged form is refused", forged.status == 412 and "CSRF" in forged.text, forged)
    wrong = browser.ask("POST", "/login", form={**form, "password": "no"}, label="a wrong password")
    room.check("a wrong password leads back", wrong.status == 303 and wrong["Location"].endswith("/login?wrong=1"), wrong)
    before = browser.cookies["cloudsession"]
    right = browser.ask("POST", "/login", form=form, label="the password")
    room.check("the password opens", right.status == 303 and right["Location"].endswith("/apps/files/"), right)
    room.check("the session has a new name", browser.cookies["cloudsession"] != before and browser.cookies["cloud_username"] == "kim", browser.cookies)
    inside = browser.get("/apps/files/")
    room.check("the files are there", inside.text == "files of kim", inside)
    room.check("fields of the location are added", inside["Referrer-Policy"] == "no-referrer" and not inside["X-Powered-By"], inside)


def hidden(room, browser):
    for target in ("/config/config.php", "/data/kim/", "/data", "/.htaccess", "/occ", "/lib/private/x.php", "/3rdparty"):
        got = browser.get(target)
        room.check(f"{target} is hidden", got.status == 404 and "secret" not in got.text, got)


def static(room, browser):
    css = browser.get("/core/css/server.css?v=1", stable=True)
    room.check("a file with a version may be kept for good", css.status == 200 and "immutable" in css["Cache-Control"], css)
    plain = browser.get("/core/css/server.css")
    room.check("a file without a version may not", "immutable" not in plain["Cache-Control"] and "max-age" in plain["Cache-Control"], plain)
    for file, kind in (("/core/module.mjs", "text/javascript"), ("/core/code.wasm", "application/wasm")):
        room.check(f"{file} has its type", browser.get(file)["Content-Type"] == kind)
    made = browser.get("/core/preview.png?file=7&x=32", stable=True)
    room.check("PHP makes a missing picture", made.status == 200 and made["Content-Type"] == "image/png" and made.text == "a picture of 7", made)
    lost = browser.get("/core/css/missing.css")
    room.check("a missing style sheet is a 404 of PHP", lost.status == 404 and "the cloud has no" in lost.text, lost)


def folders(room, dav):
    asked = dav.ask("PROPFIND", DAV, label="PROPFIND without a password")
    room.check("WebDAV asks for a password", asked.status == 401 and "Basic" in asked["WWW-Authenticate"], asked)
    options = dav.ask("OPTIONS", DAV, fields=KIM)
    room.check("OPTIONS names the methods", options.status == 200 and "1" in options["DAV"] and "PROPFIND" in options["Allow"], options)
    for method, target, status, more in (
            ("MKCOL", "notes/", 201, {}), ("MKCOL", "notes/", 405, {}), ("MKCOL", "no/such/", 409, {}), ("PUT", "notes/a.txt", 201, {"body": b"first"}),
            ("PUT", "notes/a.txt", 204, {"body": b"second"}), ("COPY", "notes/a.txt", 201, {"to": "notes/b.txt"}),
            ("MOVE", "notes/b.txt", 201, {"to": "notes/c.txt"}), ("MOVE", "notes/a.txt", 412, {"to": "notes/c.txt", "Overwrite": "F"}),
            ("GET", "notes/b.txt", 404, {}), ("DELETE", "notes/c.txt", 204, {}), ("DELETE", "notes/c.txt", 404, {}), ("PUT", "empty.txt", 201, {"body": b""}),
            ("REPORT", "notes/", 403, {"body": b'<?xml version="1.0"?><r xmlns="urn:x"/>'}), ("PATCH", "notes/a.txt", 501, {"body": b"x"})):
        to = more.pop("to", None)
        fields = {**KIM, **({"Destination": f"http://{dav.host}{DAV}{to}"} if to else {}), **{key: more.pop(key) for key in ("Overwrite",) if key in more}}
        got = dav.ask(method, DAV + target, fields=fields, **more)
        room.check(f"{method} {target} gets {status}", got.status == status, got)
    read = dav.get(f"{DAV}notes/a.txt", fields=KIM, stable=True)
    room.check("GET reads the second text", read.text == "second", read)
    stale = dav.ask("PUT", f"{DAV}notes/a.txt", body=b"third", fields={**KIM, "If-Match": '"other"'}, label="PUT with a stale tag")
    room.check("a stale tag is refused", stale.status == 412, stale)
    listed = dav.ask("PROPFIND", DAV, fields={**KIM, "Depth": "1", "Content-Type": "application/xml"}, label="PROPFIND of the folder",
                     body='<?xml version="1.0"?><d:propfind xmlns:d="DAV:"><d:prop><d:getcontentlength/><d:resourcetype/></d:prop></d:propfind>')
    room.check("PROPFIND lists the folder", listed.status == 207 and f"{DAV}notes/" in listed.text and f"{DAV}empty.txt" in listed.text, listed)
    one = dav.ask("PROPFIND", f"{DAV}notes/a.txt", fields={**KIM, "Depth": "0"}, label="PROPFIND of a file")
    room.check("PROPFIND tells a length", "getcontentlength>6<" in one.text, one)


def large(room, dav, port):
    content = random.Random(2).randbytes(30 << 20)
    put = dav.ask("PUT", f"{DAV}large.bin", body=content, fields=KIM)
    room.check("30 MiB are written", put.status == 201, put)
    got = dav.get(f"{DAV}large.bin", fields=KIM, stable=True)
    room.check("and read", got.body == content, (got.status, len(got.body)))
    part = dav.get(f"{DAV}large.bin", fields={**KIM, "Range": "bytes=1000000-1000099"}, label="a part of 30 MiB", stable=True)
    room.check("a part of them", part.status == 206 and part.body == content[1_000_000:1_000_100], part.status)
    unchanged = dav.get(f"{DAV}large.bin", fields={**KIM, "If-None-Match": got["ETag"]}, label="30 MiB, not changed")
    room.check("they have not changed", unchanged.status == 304, unchanged.status)
    (room.dir / "sent").write_bytes(content)
    told = room.run("curl", "-sS", "-u", "kim:secret", "-H", "Expect: 100-continue", "-T", "sent", "-o", "/dev/null", "-w", "%{http_code}",
                    f"http://127.0.0.1:{port}{DAV}by-curl.bin")
    room.check("curl waits for 100 and writes them", told == "201", told)
    again = dav.get(f"{DAV}by-curl.bin", fields=KIM, label="curl's file", stable=True)
    room.check("and they are the same", hashlib.sha256(again.body).digest() == hashlib.sha256(content).digest(), again.status)
    in_chunks(room, dav, port)
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(f"PUT {DAV}too-large HTTP/1.1\r\nHost: x\r\nContent-Length: 600000000\r\n\r\n".encode())
        head = client.recv(65536)
    room.check("a body above the limit gets 413 before it is sent", head.startswith(b"HTTP/1.1 413"), head[:100])


def in_chunks(room, dav, port):
    """PHP-FPM learns a body's length from CONTENT_LENGTH only, and takes a body without it for an empty one."""
    head = f"PUT {DAV}chunks.bin HTTP/1.1\r\nHost: x\r\nAuthorization: {KIM['Authorization']}\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n"
    body = "3e8\r\n" + "x" * 1000 + "\r\n0\r\n\r\n"
    for when, pieces, size in (("with the head", [head + body], 1000), ("after the head", [head, body], 0)):
        with socket.create_connection(("127.0.0.1", port), 20) as client:
            for piece in pieces:
                client.sendall(piece.encode())
                time.sleep(0.3)
            told = client.recv(65536)
        read = dav.get(f"{DAV}chunks.bin", fields=KIM, label=f"a body in chunks that came {when}", stable=True)
        room.check(f"of a body in chunks that came {when}, PHP reads {size} bytes", len(read.body) == size, (told[:100], len(read.body)))


def names(room, dav):
    for name in ("with%20space.txt", "%ED%95%9C%EA%B5%AD%EC%96%B4.txt", "a%26b%3Dc.txt", "100%25.txt", "plus+plus.txt", "hash%23.txt", "question%3F.txt",
                 "semi;colon.txt", "script.php", "style.css", "picture.png", "quote%27%22.txt"):
        put = dav.ask("PUT", DAV + name, body=name.encode(), fields=KIM)
        got = dav.get(DAV + name, fields=KIM, stable=True)
        room.check(f"the name {name} works", put.status == 201 and got.status == 200 and got.text == name, (put, got))


def locks(room, dav):
    body = '<?xml version="1.0"?><d:lockinfo xmlns:d="DAV:"><d:lockscope><d:exclusive/></d:lockscope><d:locktype><d:write/></d:locktype></d:lockinfo>'
    lock = dav.ask("LOCK", f"{DAV}notes/a.txt", body=body, fields={**KIM, "Timeout": "Second-60", "Content-Type": "application/xml"})
    token = lock["Lock-Token"]
    room.check("a file is locked", lock.status == 200 and token.startswith("<opaquelocktoken:"), lock)
    held = dav.ask("PUT", f"{DAV}notes/a.txt", body=b"other", fields=KIM, label="PUT without the lock")
    room.check("without the token nobody writes", held.status == 423, held)
    own = dav.ask("PUT", f"{DAV}notes/a.txt", body=b"own", fields={**KIM, "If": f"({token})"}, label="PUT with the lock")
    room.check("with the token its owner writes", own.status == 204, own)
    free = dav.ask("UNLOCK", f"{DAV}notes/a.txt", fields={**KIM, "Lock-Token": token})
    room.check("the lock is given back", free.status == 204, free)


def handed_over(room, browser):
    got = browser.get("/download/large.bin", label="a file that PHP hands over", stable=True)
    room.check("X-Accel-Redirect answers with the file", got.status == 200 and len(got.body) == 30 << 20, (got.status, len(got.body)))
    room.check("with PHP's own fields", got["Content-Type"] == "application/x-cloud" and got["Content-Disposition"] == "attachment", got.fields)
    part = browser.get("/download/large.bin", fields={"Range": "bytes=5-14"}, label="a part of it", stable=True)
    room.check("and with parts, which PHP does not know", part.status == 206 and len(part.body) == 10, part.status)
    named = browser.get("/download/with%20space.txt", label="a name with a space")
    room.check("a name with a space works", named.text == "with%20space.txt", named)
    direct = browser.get("/files-of-the-cloud/large.bin", label="the file itself")
    room.check("nobody reads it directly", direct.status == 404, direct.status)


def streamed(room, port):
    with socket.create_connection(("127.0.0.1", port), 20) as client:
        client.sendall(b"GET /apps/stream HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        started, told = time.monotonic(), b""
        while b"part 1" not in told:
            told += client.recv(65536)
        first = b"part 2" not in told
        while chunk := client.recv(65536):
            told += chunk
    room.check("each part of a stream comes when PHP sends it", first and b"part 3" in told and time.monotonic() - started > 0.3, told)
