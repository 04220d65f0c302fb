"""A small provider of OpenID Connect: discovery, a login form, codes with PKCE, tokens signed with RS256, refresh tokens."""

import base64
import hashlib
import json
import secrets
import subprocess
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

CLIENT, SECRET = "weir", "a secret of the test"
TOKEN_SECONDS = 3600


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


class Provider:
    """Runs in a thread of the test. `codes` and `refreshed` count the tokens that it gave."""

    def __init__(self, folder):
        self.key, self.codes, self.refreshed, self.pending = folder / "provider.key", 0, 0, {}
        subprocess.run(["openssl", "genrsa", "-out", self.key, "2048"], check=True, capture_output=True)
        said = subprocess.run(["openssl", "rsa", "-in", self.key, "-noout", "-modulus"], check=True, capture_output=True, text=True).stdout
        self.modulus = bytes.fromhex(said.strip().partition("=")[2])
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (Handler,), {"provider": self}))
        self.issuer = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()

    def signed(self, claims):
        text = b64(json.dumps({"alg": "RS256", "kid": "1"}).encode()) + "." + b64(json.dumps(claims).encode())
        done = subprocess.run(["openssl", "dgst", "-sha256", "-sign", self.key], input=text.encode(), check=True, capture_output=True)
        return text + "." + b64(done.stdout)

    def tokens(self, user, nonce):
        now = int(time.time())
        claims = {"iss": self.issuer, "aud": CLIENT, "sub": f"id-of-{user}", "email": f"{user}@login.example", "email_verified": True,
                  "preferred_username": user, "groups": ["readers"], "iat": now, "exp": now + TOKEN_SECONDS, "nonce": nonce}
        # The token of this user makes a cookie of more than 4 KiB, which oauth2-proxy splits.
        length = 3000 if user == "long" else 20
        return {"access_token": f"{user}-" + secrets.token_hex(length // 2), "id_token": self.signed(claims), "refresh_token": f"{user} {nonce}",
                "token_type": "Bearer", "expires_in": TOKEN_SECONDS}


class Handler(BaseHTTPRequestHandler):
    provider = None
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        target = urllib.parse.urlsplit(self.path)
        asked = dict(urllib.parse.parse_qsl(target.query))
        issuer = self.provider.issuer
        if target.path == "/.well-known/openid-configuration":
            self.answer(200, {
                "issuer": issuer, "authorization_endpoint": f"{issuer}/authorize", "token_endpoint": f"{issuer}/token", "jwks_uri": f"{issuer}/keys",
                "userinfo_endpoint": f"{issuer}/userinfo", "id_token_signing_alg_values_supported": ["RS256"], "response_types_supported": ["code"],
                "subject_types_supported": ["public"], "code_challenge_methods_supported": ["S256"]})
        elif target.path == "/keys":
            self.answer(200, {"keys": [{"kty": "RSA", "use": "sig", "alg": "RS256", "kid": "1", "n": b64(self.provider.modulus), "e": "AQAB"}]})
        elif target.path == "/authorize" and asked.get("client_id") == CLIENT and asked.get("response_type") == "code":
            # The form's target has everything that the client asked for.
            self.answer(200, f'<form method="post" action="/authorize?{target.query}"><input name="user"></form>')
        else:
            self.answer(404, {"error": target.path})

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        target, form = urllib.parse.urlsplit(self.path), dict(urllib.parse.parse_qsl(body))
        if target.path == "/authorize":
            asked, code = dict(urllib.parse.parse_qsl(target.query)), secrets.token_hex(16)
            self.provider.pending[code] = (form["user"], asked)
            back = urllib.parse.urlencode({"code": code, "state": asked["state"]})
            self.answer(302, "", {"Location": f"{asked['redirect_uri']}?{back}"})
        elif target.path == "/token":
            self.token(form)
        else:
            self.answer(404, {"error": target.path})

    def token(self, form):
        basic = base64.b64decode((self.headers.get("Authorization") or "").removeprefix("Basic ")).decode()
        client, _, secret = basic.partition(":")
        who = (urllib.parse.unquote_plus(client) or form.get("client_id"), urllib.parse.unquote_plus(secret) or form.get("client_secret"))
        if who != (CLIENT, SECRET):
            return self.answer(401, {"error": "invalid_client"})
        if form["grant_type"] == "refresh_token":
            self.provider.refreshed += 1
            return self.answer(200, self.provider.tokens(*form["refresh_token"].split(" ")))
        user, asked = self.provider.pending.pop(form.get("code"), (None, {}))
        proof = b64(hashlib.sha256(form.get("code_verifier", "").encode()).digest())
        if user is None or proof != asked.get("code_challenge") or form.get("redirect_uri") != asked["redirect_uri"]:
            return self.answer(400, {"error": "invalid_grant"})
        self.provider.codes += 1
        return self.answer(200, self.provider.tokens(user, asked.get("nonce", "")))

    def answer(self, status, body, fields=None):
        text = body if isinstance(body, str) else json.dumps(body)
        self.send_response(status)
        self.send_header("Content-Type", "text/html" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(text.encode())))
        for name, value in (fields or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text.encode())
