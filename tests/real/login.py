"""oauth2-proxy behind auth_request, with a provider of OpenID Connect and an application that shows the fields it gets."""

import json
import re
import shutil
import threading
import time
import urllib.parse
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import parts
import provider
from ports import free_port

REFRESH_SECONDS = 2


def run(room, args):
    program = shutil.which(args.oauth2_proxy)
    if not program:
        raise parts.Missing("go install github.com/oauth2-proxy/oauth2-proxy/v7@latest, and its folder in PATH or --oauth2-proxy BIN")
    parts.needs(("/usr/bin/openssl", "openssl"), ("/etc/nginx/fastcgi_params", "nginx-common"))
    port, gate = free_port(), free_port()
    people, app = provider.Provider(room.dir), Application()
    try:
        room.start("oauth2-proxy", [
            program, "--provider=oidc", f"--oidc-issuer-url={people.issuer}", f"--client-id={provider.CLIENT}", f"--client-secret={provider.SECRET}",
            f"--redirect-url=http://127.0.0.1:{port}/oauth2/callback", f"--http-address=127.0.0.1:{gate}", "--cookie-secret=0123456789abcdef0123456789abcdef",
            "--cookie-secure=false", f"--cookie-refresh={REFRESH_SECONDS}s", "--email-domain=login.example", "--reverse-proxy=true",
            "--set-xauthrequest=true", "--pass-access-token=true", "--code-challenge-method=S256", "--upstream=static://404"], lambda: parts.accepts(gate))
        lines = parts.replaced(parts.guide("auth_request.md", "## oauth2-proxy"), ("127.0.0.1:4180", f"127.0.0.1:{gate}"))
        split = "### Cookies of more than 4 KiB"
        maps = parts.replaced(parts.guide("auth_request.md", split), ("; Secure", ""))
        long = f"location /long/ {{ auth_request /oauth2/auth; {parts.guide('auth_request.md', split, 1)}\nproxy_pass http://application; }}"
        edge = room.edge(f"upstream application {{ server 127.0.0.1:{app.port}; }}\n{maps}\nserver {{ listen 127.0.0.1:{port};\n"
                         f"large_client_header_buffers 4 16k;\n{lines}\n{long}\n}}")
        stranger = room.browser(port)
        strangers(room, stranger)
        browser = room.browser(port)
        sign_in(room, browser, "kim", people)
        inside(room, browser)
        renewed(room, browser, people)
        long_cookies(room, people, port)
        forged(room, port)
        sign_out(room, browser)
        room.ends_well(edge)
    finally:
        people.close()
        app.close()


class Application:
    """Answers with the fields and the length of each request."""

    def __init__(self):
        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                names = ("X-User", "X-Email", "X-Access-Token")
                text = json.dumps({"target": self.path, "method": self.command, "body": len(body), **{name: self.headers.get(name) for name in names}}).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()


def strangers(room, stranger):
    page = stranger.get("/private?a=1&b=2", label="a page without a cookie")
    room.check("a browser is led to the provider", page.status == 302 and "/authorize?" in page["Location"], page)
    api = stranger.get("/api/items", label="the interface without a cookie")
    room.check("a program gets 401", api.status == 401 and not api["Location"], api)
    posted = stranger.ask("POST", "/api/items", body=b"x" * 100_000, label="POST without a cookie")
    room.check("with a body, too", posted.status == 401, posted)
    direct = stranger.get("/oauth2/auth", label="the question itself")
    room.check("nobody asks /oauth2/auth directly", direct.status == 404, direct)
    ping = stranger.get("/oauth2/sign_in", label="the page of oauth2-proxy")
    room.check("oauth2-proxy's own page is open to all", "Sign in with OpenID Connect" in ping.text, ping)


def sign_in(room, browser, user, people):
    """What a browser does from the first 302 to the page."""
    before = people.codes
    start = browser.get(f"/private?a=1&user={user}", label=f"the page, {user}")
    room.check("oauth2-proxy leads to the provider", start.status == 302 and start["Location"].startswith(people.issuer), start)
    form = urllib.request.urlopen(start["Location"]).read().decode()
    action = re.search(r'action="([^"]+)"', form)[1]
    back = no_redirect(people.issuer + action, urllib.parse.urlencode({"user": user}).encode())
    called = browser.get(back, label=f"callback, {user}")
    room.check("the provider gave one token", people.codes == before + 1, people.codes)
    room.check("the callback sets the cookie and leads back", called.status == 302 and any(name.startswith("_oauth2_proxy") for name in browser.cookies), called)
    page = browser.get(called["Location"], label=f"the page again, {user}")
    told = json.loads(page.body) if page.status == 200 else {}
    room.check("the page comes, with its whole query", told.get("target") == f"/private?a=1&user={user}", page)
    room.check("the application gets the name", (told.get("X-User"), told.get("X-Email")) == (f"id-of-{user}", f"{user}@login.example"), told)
    room.check("and the token", (told.get("X-Access-Token") or "").startswith(f"{user}-"), told)


def no_redirect(url, body):
    """The Location of the answer to a form."""
    class Stay(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_):
            return None

    try:
        urllib.request.build_opener(Stay).open(url, body)
    except urllib.error.HTTPError as answer:
        return answer.headers["Location"]
    raise RuntimeError("the provider did not lead back")


def inside(room, browser):
    for number in range(3):
        page = browser.get(f"/private/{number}", label=f"page {number}")
        room.check("further pages come at once", page.status == 200 and json.loads(page.body)["X-User"] == "id-of-kim", page)
    api = browser.get("/api/items", label="the interface with the cookie")
    room.check("a program with the cookie gets its answer", api.status == 200 and json.loads(api.body)["X-User"] == "id-of-kim", api)
    posted = browser.ask("POST", "/private", body=b"x" * 300_000, label="POST with the cookie")
    room.check("the body goes to the application", posted.status == 200 and json.loads(posted.body)["body"] == 300_000, posted)
    told = browser.get("/oauth2/userinfo")
    room.check("oauth2-proxy knows the user", json.loads(told.body).get("email") == "kim@login.example", told)


def renewed(room, browser, people):
    old = browser.cookies["_oauth2_proxy"]
    time.sleep(REFRESH_SECONDS + 1)
    page = browser.get("/private/later", label="a page after a while")
    room.check("the provider refreshed the token", people.refreshed >= 1, people.refreshed)
    room.check("the new cookie reaches the browser", page.status == 200 and "_oauth2_proxy=" in page["Set-Cookie"] and browser.cookies["_oauth2_proxy"] != old, page)
    room.check("with its attributes", "HttpOnly" in page["Set-Cookie"] and "path=/" in page["Set-Cookie"].lower(), page["Set-Cookie"])
    after = browser.get("/private/later", label="a page with the new cookie")
    room.check("the new cookie opens", after.status == 200 and not after["Set-Cookie"], after)


def long_cookies(room, people, port):
    browser = room.browser(port)
    sign_in(room, browser, "long", people)
    room.check("oauth2-proxy split the cookie", {"_oauth2_proxy_0", "_oauth2_proxy_1"} <= set(browser.cookies), list(browser.cookies))
    old, before = dict(browser.cookies), people.refreshed
    time.sleep(REFRESH_SECONDS + 1)
    page = browser.get("/long/page", label="a page after a while, long")
    changed = [name for name in ("_oauth2_proxy_0", "_oauth2_proxy_1") if browser.cookies[name] != old[name]]
    room.check("both parts of the new cookie reach the browser", page.status == 200 and len(changed) == 2, (changed, page))
    again = browser.get("/long/page", label="the page with both new parts")
    room.check("both parts open", again.status == 200 and not again["Set-Cookie"] and people.refreshed == before + 1, (again, people.refreshed))


def forged(room, port):
    browser = room.browser(port)
    page = browser.get("/private", fields={"Cookie": "_oauth2_proxy=bm9uZQ==|1|none", "X-User": "root", "X-Email": "root@login.example"}, label="a forged cookie")
    room.check("a forged cookie opens nothing", page.status == 302, page)
    open_redirect = browser.get("/oauth2/start?rd=https://evil.example/", label="a foreign target")
    room.check("a foreign target is not kept", "evil.example" not in urllib.parse.unquote(open_redirect["Location"]), open_redirect)


def sign_out(room, browser):
    gone = browser.get("/oauth2/sign_out?rd=/bye")
    room.check("signing out removes the cookie", gone.status == 302 and "_oauth2_proxy" not in browser.cookies, (gone, browser.cookies))
    page = browser.get("/private", label="a page after signing out")
    room.check("the page asks for a login again", page.status == 302, page)
