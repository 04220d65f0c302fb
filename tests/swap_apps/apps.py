"""Five real applications, each started once, with its configuration, and the visits that make its traffic."""
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import parts
import wordpress
from ports import free_port

HERE = Path(__file__).resolve().parent
MADE = HERE.parents[1] / "target/swap-apps"
# A fixed time for files: the answers' Last-Modified and ETag are alike on all sides.
OLD = 1_000_000_000


class App:
    """One application. `start` begins its processes in a room; `visits` sends requests through an edge."""
    name = host = ""

    def files(self, room):
        """The files that the edge itself serves."""

    def start(self, room):
        """Starts the processes; the words that the configuration has besides ROOM and PORT."""
        raise NotImplementedError

    def prepare(self, room, port):
        """Requests before the traffic, through A's edge."""

    def visits(self, traffic):
        raise NotImplementedError

    def configuration(self, room, port, words):
        text = (HERE / "conf" / f"{self.name}.conf").read_text()
        for word, value in {"ROOM": room.dir, "PORT": port, **words}.items():
            text = re.sub(rf"\b{word}\b", str(value), text)
        return text


def node(room, script, **environment):
    """Starts a script of Node; the port that it prints."""
    port = free_port()
    room.start(script.stem, ["node", script], lambda: parts.accepts(port), env={**os.environ, "PORT": str(port), **environment})
    return port


def put(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (OLD, OLD))


class Api(App):
    """A JSON API of Node alone."""
    name, host = "api", "api.example"

    def files(self, room):
        put(room.dir / "docs/index.html", "<h1>How to call it</h1>\n" * 60)
        put(room.dir / "docs/openapi.json", json.dumps({"openapi": "3.1.0", "paths": {f"/api/items/{number}": {} for number in range(80)}}))

    def start(self, room):
        return {"APP": node(room, HERE / "api.mjs")}

    def visits(self, traffic):
        for number in range(6):
            client = traffic.visitor(**({"X-Forwarded-For": "198.51.100.7"} if number % 2 else {}))
            client.get("/health")
            client.get(f"/api/login?user=user{number}")
            for page in (1, 2, 3):
                client.get(f"/api/items?page={page}")
                client.get(f"/api/items/{page * 7 + number}")
            client.get("/api/me")
            client.get("/api/items/7", If_None_Match='"item-7"')
            client.get(f"/api/items/{9000 + number}")
            client.get("/api/stats")
            client.get("/api/export.bin", Range="bytes=100-299")
            client.get("/api/catalogue")
            client.get("/docs/")
            client.get("/docs/openapi.json", Range="bytes=0-99", Accept_Encoding=None)
            client.get("/docs/openapi.json", If_Modified_Since="Sun, 09 Sep 2001 01:46:40 GMT")
            client.get("/api/old/items")
            client.get("/api/v1/items")
            client.get("/api/me", method="HEAD")
            client.get("/nothing/here")
        traffic.visitor().get("/api/me")
        # weir gives the answers of a client with a session to no other client: what a cache shares is seen without one.
        for page in (1, 2, 3):
            traffic.visitor().get(f"/api/items?page={page}")


class Shop(App):
    """Express with pages, sessions and static files."""
    name, host = "shop", "shop.example"

    def files(self, room):
        put(room.dir / "public/assets/shop.css", "body { color: #123 }\n" * 200)
        put(room.dir / "public/assets/shop.js", "f();\n" * 300)
        put(room.dir / "public/robots.txt", "User-agent: *\n")

    def start(self, room):
        modules = os.environ.get("MODULES", str(HERE.parent / "apps") + "/")
        if not (Path(modules) / "node_modules/express").exists():
            raise parts.Missing("npm ci --prefix tests/apps")
        return {"APP": node(room, HERE / "shop.mjs", MODULES=modules)}

    def visits(self, traffic):
        for number in range(6):
            client = traffic.visitor()
            client.get("/")
            client.page("/app/", seed=number)
            for slug in (f"thing-{number + 1}", "thing-9"):
                client.get(f"/app/goods/{slug}")
                client.get(f"/app/add/{slug}")
                client.get("/app/basket")
            client.get("/app/goods/missing")
            client.get("/app/login")
            client.get("/app/manual.txt")
            client.get("/app/prices.json")
            client.get("/app/boom")
            client.get(f"/buy/thing-{number + 3}")
            client.get("/assets/shop.css")
            client.get("/assets/shop.js")
            client.get("/assets/shop.css", Range="bytes=0-20", Accept_Encoding=None)
            client.get("/robots.txt")
            client.get("/app/", method="HEAD")


class Spring(App):
    """Spring Boot with Tomcat."""
    name, host = "spring", "orders.example"

    def files(self, room):
        put(room.dir / "public/missing.html", "<h1>There is no such order</h1>\n")
        put(room.dir / "public/down.html", "<h1>We are down</h1>\n")

    def start(self, room):
        jar = MADE / "spring.jar"
        if not jar.exists():
            shutil.copytree(HERE / "spring", room.dir / "spring")
            subprocess.run(["mvn", "-q", "-B", "-f", room.dir / "spring/pom.xml", "package"], check=True)
            jar.parent.mkdir(parents=True, exist_ok=True)
            shutil.move(room.dir / "spring/target/spring.jar", jar)
        port = free_port()
        flags = ["-Xmx192m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"]
        room.start("java", ["java", *flags, "-jar", jar, f"--server.port={port}"], lambda: parts.accepts(port))
        return {"APP": port}

    def visits(self, traffic):
        for number in range(6):
            client = traffic.visitor()
            for page in (0, 1, 2):
                client.get(f"/orders?page={page}")
                client.get(f"/orders/{page * 9 + number + 1}")
            client.get("/orders/5", If_None_Match='"order-5"')
            client.get(f"/orders/{900 + number}")
            client.get(f"/order?id={number + 1}")
            client.get("/account")
            client.get("/account")
            client.get("/figures")
            client.get("/report.csv")
            client.get("/report.csv", Range="bytes=0-99", Accept_Encoding=None)
            client.get("/report.csv", If_Modified_Since="Sun, 09 Sep 2001 01:46:40 GMT")
            client.get("/orders/3", method="HEAD")
            client.get("/internal/status")
            client.get("/no/such/page")


class Wordpress(App):
    """WordPress of Debian on PHP-FPM and MariaDB."""
    name, host = "wordpress", "blog.example"

    def start(self, room):
        wordpress.unpack(room)
        room.mariadb()
        room.run("mariadb", "--no-defaults", f"--socket={room.dir}/mariadb.sock", "-e", "CREATE DATABASE wordpress")
        # WordPress begins its jobs by a request to itself, at moments that it chooses.
        config = room.dir / "site/wp-config.php"
        config.write_text(config.read_text().replace("$table_prefix", "define('DISABLE_WP_CRON', true);\n$table_prefix", 1))
        shutil.copy("/etc/nginx/fastcgi.conf", room.dir)
        room.php_fpm()
        return {}

    def prepare(self, room, port):
        browser = room.browser(port, self.host)
        wordpress.install(room, browser)
        browser.get("/wp-login.php")
        form = {"log": "kim", "pwd": wordpress.PASSWORD, "wp-submit": "Log In", "redirect_to": "/wp-admin/", "testcookie": "1"}
        browser.ask("POST", "/wp-login.php", form=form)
        wordpress.permalinks(room, browser)
        wordpress.write(room, browser)
        wordpress.picture(room, browser)

    def visits(self, traffic):
        seen = traffic.visitor()
        feed = seen.get("/feed/", Accept_Encoding=None)[2].decode()
        post = re.search(r"<link>http://[^/]+(/\d+/\d+/[^<]+)</link>", feed)[1]
        for number in range(4):
            client = traffic.visitor()
            client.page("/", links=4, seed=number)
            client.get(post)
            client.get(post)
            client.get("/feed")
            client.get("/feed/")
            client.get("/wp-json/wp/v2/posts")
            client.get("/?s=weir")
            client.get("/2026/01/no-such-post/")
            client.get("/wp-includes/css/dashicons.min.css")
            client.get("/wp-includes/css/dashicons.min.css", If_Modified_Since="Thu, 01 Jan 2037 00:00:00 GMT")
            client.get("/wp-includes/images/rss.png", Range="bytes=0-49")
            client.get("/wp-admin/")
            client.get("/wp-includes")
            client.get("/wp-login.php")
            client.get("/wp-config.php")
            client.get("/wp-content/uploads/evil.php")
            client.get("/missing.php")
            client.get(post, method="HEAD")


class Site(App):
    """Django's admin and pages on gunicorn."""
    name, host = "site", "site.example"

    def files(self, room):
        put(room.dir / "media/notes.txt", "A note that somebody uploaded.\n" * 100)
        put(room.dir / "media/photo.bin", "0123456789abcdef" * 1000)

    def start(self, room):
        python = MADE / "python/bin/python"
        if not python.exists():
            subprocess.run([sys.executable, "-m", "venv", MADE / "python"], check=True)
            subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "python.txt"], check=True)
        port, environment = free_port(), {**os.environ, "SITE": str(room.dir), "PYTHONDONTWRITEBYTECODE": "1"}
        subprocess.run([python, HERE / "site/wsgi.py"], check=True, env=environment)
        room.start("gunicorn", [python, "-m", "gunicorn", "--chdir", HERE / "site", "--bind", f"127.0.0.1:{port}", "--workers", "2", "wsgi:application"],
                   lambda: parts.accepts(port), env=environment)
        return {"APP": port, "PACKAGES": next((MADE / "python/lib").glob("python3*/site-packages"))}

    def visits(self, traffic):
        for number in range(6):
            client = traffic.visitor()
            client.page("/", seed=number)
            client.get(f"/articles/{number + 1}/")
            client.get(f"/articles/{number + 1}")
            client.get("/articles/3/", If_Modified_Since="Sun, 09 Sep 2001 01:46:40 GMT")
            client.get(f"/articles/{90 + number}/")
            client.get("/search/?q=1")
            client.get("/moved/")
            client.get("/language/ko/")
            client.get("/admin/")
            client.get("/admin/login/?next=/admin/")
            client.get("/static/admin/css/base.css")
            client.get("/static/admin/css/base.css", Range="bytes=10-29", Accept_Encoding=None)
            client.get("/media/")
            client.get("/media/notes.txt")
            client.get("/media/photo.bin", Range="bytes=100-199")
            client.get("/up")
            client.get("/favicon.ico")
            client.get("/", method="HEAD")


APPS = [Api, Shop, Spring, Wordpress, Site]
