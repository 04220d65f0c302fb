"""WordPress of Debian on PHP-FPM and MariaDB: install, log in, write, upload, comment, cache."""

import json
import random
import shutil
import struct
import zlib
from pathlib import Path

import parts
from ports import free_port

SOURCE = Path("/usr/share/wordpress")
THEMES = Path("/var/lib/wordpress/wp-content/themes")
PASSWORD = "correct horse battery staple"
CONFIG = """<?php
define('DB_NAME', 'wordpress');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:{room}/mariadb.sock');
define('DB_CHARSET', 'utf8mb4');
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_DEFAULT_THEME', 'twentytwentythree');
define('FS_METHOD', 'direct');
define('COOKIEHASH', 'real');
{keys}
$table_prefix = 'wp_';
defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
"""
KEYS = ("AUTH_KEY", "SECURE_AUTH_KEY", "LOGGED_IN_KEY", "NONCE_KEY", "AUTH_SALT", "SECURE_AUTH_SALT", "LOGGED_IN_SALT", "NONCE_SALT")


def run(room, args):
    parts.needs(
        (str(SOURCE / "wp-load.php"), "wordpress"), (str(THEMES / "twentytwentythree"), "wordpress-theme-twentytwentythree"),
        ("/usr/sbin/mariadbd", "mariadb-server"), ("/usr/sbin/php-fpm*", "php-fpm"), ("/etc/php/*/mods-available/mysqli.ini", "php-mysql"),
        ("/etc/php/*/mods-available/gd.ini", "php-gd"), ("/etc/nginx/snippets", "nginx-common"))
    port = free_port()
    unpack(room)
    room.mariadb()
    room.run("mariadb", "--no-defaults", f"--socket={room.dir}/mariadb.sock", "-e", "CREATE DATABASE wordpress")
    room.php_fpm()
    edge = room.edge(parts.replaced(
        parts.guide("applications.md", "## WordPress"), ("listen 80;", f"listen 127.0.0.1:{port};"),
        ("server_name blog.example;", ""), ("/var/www/wordpress", f"{room.dir}/site"), ("/var/cache/weir/pages", f"{room.dir}/pages"),
        ("unix:/run/php/php8.2-fpm.sock", f"unix:{room.dir}/php.sock")))
    browser = room.browser(port)
    install(room, browser)
    log_in(room, browser)
    permalinks(room, browser)
    post, link = write(room, browser)
    picture(room, browser)
    reader = room.browser(port)
    read(room, reader, post, link)
    comment(room, reader, post, link)
    cache(room, reader, browser, link)
    files(room, reader)
    hidden(room, reader)
    status(room, reader)
    leave(room, browser)
    room.ends_well(edge)


def unpack(room):
    """A copy of Debian's files with its own configuration: nothing outside of the room changes."""
    site = room.dir / "site"
    shutil.copytree(SOURCE, site, ignore=shutil.ignore_patterns(".htaccess", "wp-config.php", "wp-content"))
    shutil.copytree(THEMES / "twentytwentythree", site / "wp-content/themes/twentytwentythree")
    for folder in ("plugins", "uploads"):
        (site / "wp-content" / folder).mkdir(parents=True)
    keys = "\n".join(f"define('{name}', '{name.lower()} of this run');" for name in KEYS)
    (site / "wp-config.php").write_text(CONFIG.format(room=room.dir, keys=keys))


def install(room, browser):
    first = browser.get("/")
    room.check("the first request leads to the installer", first.status == 302 and first["Location"].endswith("/wp-admin/install.php"), first)
    form = browser.get("/wp-admin/install.php")
    room.check("the installer shows its form", form.status == 200 and "language-chooser" in form.text or "weblog_title" in form.text, form)
    done = browser.ask("POST", "/wp-admin/install.php?step=2", form={
        "weblog_title": "A weblog", "user_name": "kim", "admin_password": PASSWORD, "admin_password2": PASSWORD, "pw_weak": "on",
        "admin_email": "kim@blog.example", "blog_public": "1", "language": ""})
    room.check("the installer finishes", done.status == 200 and "WordPress has been installed" in done.text, done)
    again = browser.get("/wp-admin/install.php", label="the installer again")
    room.check("it installs only once", "already installed" in again.text.lower(), again)


def log_in(room, browser):
    asked = browser.get("/wp-admin/", label="wp-admin without a cookie")
    room.check("wp-admin asks for a login", asked.status == 302 and "wp-login.php" in asked["Location"], asked)
    browser.get("/wp-login.php")
    form = {"log": "kim", "pwd": "wrong", "wp-submit": "Log In", "redirect_to": "/wp-admin/", "testcookie": "1"}
    wrong = browser.ask("POST", "/wp-login.php", form=form, label="a wrong password")
    room.check("a wrong password is refused", wrong.status == 200 and "is incorrect" in wrong.text, wrong)
    right = browser.ask("POST", "/wp-login.php", form={**form, "pwd": PASSWORD}, label="the password")
    room.check("the password opens", right.status == 302 and any(name.startswith("wordpress_logged_in") for name in browser.cookies), right)
    inside = browser.get("/wp-admin/", label="wp-admin with the cookies")
    room.check("wp-admin shows the dashboard", inside.status == 200 and "Dashboard" in inside.text and "Howdy" in inside.text, inside)
    room.check("nobody else gets this page", "no-cache" in inside["Cache-Control"] and inside["X-Cache"] == "BYPASS", inside)
    folder = browser.get("/wp-admin", label="a folder without a slash")
    room.check("a folder without a slash is moved", folder.status == 301 and folder["Location"].endswith("/wp-admin/"), folder)


def permalinks(room, browser):
    page = browser.get("/wp-admin/options-permalink.php")
    nonce = page.find(r'name="_wpnonce" value="(\w+)"')
    kept = browser.ask("POST", "/wp-admin/options-permalink.php", label="save the permalinks", form={
        "_wpnonce": nonce, "_wp_http_referer": "/wp-admin/options-permalink.php", "selection": "/%year%/%monthnum%/%postname%/",
        "permalink_structure": "/%year%/%monthnum%/%postname%/", "submit": "Save Changes"})
    room.check("the permalinks are saved", kept.status == 302, kept)
    # WordPress writes the rules for the new links when the browser follows to the page.
    page = browser.get(kept["Location"], label="the saved permalinks")
    room.check("the page says so", "Permalink structure updated" in page.text, page)


def write(room, browser):
    nonce = browser.get("/wp-admin/admin-ajax.php?action=rest-nonce").text.strip()
    browser.rest = {"X-WP-Nonce": nonce, "Content-Type": "application/json"}
    text = "".join(f"<p>Paragraph {number} of a long text: naïve café, 한국어.</p>\n" for number in range(2000))
    posted = browser.ask("POST", "/wp-json/wp/v2/posts", fields=browser.rest, label="write a post",
                         body=json.dumps({"title": "Hello weir", "content": text, "status": "publish"}))
    if not room.check("a post is written through the REST interface", posted.status == 201, posted):
        raise RuntimeError("no post")
    post = json.loads(posted.body)
    room.check("it has a pretty link", post["link"].endswith("/hello-weir/"), post["link"])
    refused = browser.ask("POST", "/wp-json/wp/v2/posts", body="{}", fields={"Content-Type": "application/json"}, label="without a nonce")
    room.check("without a nonce nobody writes", refused.status == 401, refused)
    changed = browser.ask("PUT", f"/wp-json/wp/v2/posts/{post['id']}", fields=browser.rest, label="change the title",
                          body=json.dumps({"title": "Hello again"}))
    room.check("PUT changes the title", changed.status == 200 and json.loads(changed.body)["title"]["raw"] == "Hello again", changed)
    removed = browser.ask("DELETE", "/wp-json/wp/v2/posts/1?force=true", fields=browser.rest, label="delete the first post")
    room.check("DELETE removes a post", removed.status == 200 and json.loads(removed.body)["deleted"], removed)
    return post["id"], post["link"]


def picture(room, browser):
    image = png(900, 700)
    nonce = browser.get("/wp-admin/media-new.php").find(r'"_wpnonce":"(\w+)"')
    body, kind = parts.multipart({"name": "photo.png", "action": "upload-attachment", "_wpnonce": nonce},
                                 [("async-upload", "photo.png", "image/png", image)])
    told = browser.ask("POST", "/wp-admin/async-upload.php", body=body, fields=kind, label="upload a picture")
    if room.check("a picture is uploaded", told.status == 200 and json.loads(told.body)["success"], told):
        data = json.loads(told.body)["data"]
        got = browser.get(data["url"], stable=True, label="the picture")
        room.check("the picture comes back byte for byte", got.status == 200 and got.body == image and got["Content-Type"] == "image/png", got.status)
        room.check("it may be kept for 30 days", "max-age=2592000" in got["Cache-Control"], got["Cache-Control"])
        room.check("WordPress made smaller copies", "medium" in data["sizes"] and browser.get(data["sizes"]["medium"]["url"]).status == 200, data["sizes"])
        part = browser.get(data["url"], fields={"Range": "bytes=1000-1999"}, stable=True, label="a part of the picture")
        room.check("a part of it comes", part.status == 206 and part.body == image[1000:2000], part.status)
        same = browser.get(data["url"], fields={"If-None-Match": got["ETag"]}, label="the picture, not changed")
        room.check("it has not changed", same.status == 304, same.status)
    large = browser.ask("POST", "/wp-admin/async-upload.php", body=b"x" * (65 << 20), fields=kind, label="an upload of 65 MiB")
    room.check("an upload above the limit gets 413", large.status == 413, large.status)


def png(width, height):
    """A picture of noise, which no compression makes small."""
    noise = random.Random(1)
    rows = b"".join(b"\0" + noise.randbytes(width * 3) for _ in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def read(room, reader, post, link):
    page = reader.get(link, label="the post")
    room.check("anybody reads the post", page.status == 200 and "Paragraph 1999" in page.text and "한국어" in page.text, page)
    plain = reader.get(f"/?p={post}", label="the plain link")
    room.check("the plain link leads to the pretty one", plain.status == 301 and plain["Location"] == link, plain)
    missing = reader.get("/2026/01/no-such-post/", label="a missing post")
    room.check("a missing post is WordPress's own 404", missing.status == 404 and "</html>" in missing.text, missing)
    feed = reader.get("/feed/")
    room.check("the feed has the post", feed.status == 200 and "rss+xml" in feed["Content-Type"] and "Hello again" in feed.text, feed)
    posts = reader.get("/wp-json/wp/v2/posts?search=again&per_page=5")
    room.check("the REST interface finds it, with its own fields", posts["X-WP-Total"] == "1" and json.loads(posts.body)[0]["id"] == post, posts)
    head = reader.ask("HEAD", link, label="HEAD of the post")
    room.check("HEAD has no body", head.status == 200 and head.body == b"", head)
    unchanged = reader.get("/feed/", fields={"If-Modified-Since": feed["Last-Modified"], "If-None-Match": feed["ETag"]}, label="the feed, not changed")
    room.check("the feed has not changed", unchanged.status == 304, unchanged.status)


def comment(room, reader, post, link):
    told = reader.ask("POST", "/wp-comments-post.php", label="comment", form={
        "comment": "A fine post.", "author": "Lee", "email": "lee@blog.example", "url": "", "comment_post_ID": post, "comment_parent": "0",
        "wp-comment-cookies-consent": "yes", "submit": "Post Comment"})
    room.check("a comment is taken", told.status == 302 and "#comment-" in told["Location"], told)
    room.check("its author gets cookies", any(name.startswith("comment_author") for name in reader.cookies), reader.cookies)
    seen = reader.get(told["Location"].partition("#")[0], label="the comment for its author")
    room.check("its author sees that it waits", "A fine post." in seen.text and "moderation" in seen.text, seen.status)
    again = reader.ask("POST", "/wp-comments-post.php", label="the comment again", form={
        "comment": "A fine post.", "author": "Lee", "email": "lee@blog.example", "url": "", "comment_post_ID": post, "comment_parent": "0"})
    room.check("the same comment is refused", again.status == 409 and "Duplicate" in again.text, again)


def cache(room, reader, author, link):
    stranger = room.browser(reader.port)
    first = stranger.get(f"{link}?cache=1", label="a page for the first time")
    second = stranger.get(f"{link}?cache=1", label="the page again")
    room.check("a page comes from the cache the second time", (first["X-Cache"], second["X-Cache"]) == ("MISS", "HIT"), (first["X-Cache"], second["X-Cache"]))
    room.check("it is the same page", first.body == second.body)
    own = author.get(f"{link}?cache=1", label="the page for its author")
    room.check("its author gets a page of her own", own["X-Cache"] == "BYPASS" and "wp-admin-bar" in own.text, own["X-Cache"])
    third = stranger.get(f"{link}?cache=1", label="the page after its author")
    room.check("and nobody else gets that page", third["X-Cache"] == "HIT" and third.body == first.body, third["X-Cache"])


def files(room, reader):
    css = reader.get("/wp-includes/css/dashicons.min.css", stable=True)
    room.check("style sheets are files", css.status == 200 and css.body == (SOURCE / "wp-includes/css/dashicons.min.css").read_bytes(), css.status)
    scripts = reader.get("/wp-admin/load-scripts.php?c=0&load%5B%5D=jquery-core,jquery-migrate,wp-polyfill,jquery-ui-core,moment,react,react-dom,lodash,wp-components")
    room.check("a large answer of PHP comes whole", scripts.status == 200 and len(scripts.body) > 100_000, (scripts.status, len(scripts.body)))
    cron = reader.ask("POST", "/wp-cron.php?doing_wp_cron", body=b"")
    room.check("cron answers at once", cron.status == 200 and cron.body == b"", cron)


def hidden(room, reader):
    (room.dir / "site/wp-content/uploads/evil.php").write_text("<?php echo 'run';")
    (room.dir / "site/.secret").write_text("secret")
    for target, status in (("/wp-content/uploads/evil.php", 403), ("/.secret", 403), ("/wp-config.php", 403), ("/missing.php", 404),
                           ("/wp-content/uploads/evil.php/x", 403)):
        got = reader.get(target)
        room.check(f"{target} gets {status}", got.status == status and "secret" not in got.text and got.text != "run", got)


def status(room, reader):
    page = reader.get("/fpm-status?json", label="the status page")
    told = json.loads(page.body) if page.status == 200 else {}
    room.check("PHP-FPM's status page answers", told.get("process manager") == "static" and told.get("accepted conn", 0) > 20, page)


def leave(room, browser):
    page = browser.get("/wp-admin/profile.php", label="the profile")
    link = page.find(r"(http[^'\"]*action=logout[^'\"]*)").replace("&amp;", "&").replace("&#038;", "&")
    gone = browser.get(link, label="log out")
    room.check("the author logs out", gone.status == 302 and "loggedout=true" in gone["Location"], gone)
    asked = browser.get("/wp-admin/", label="wp-admin after that")
    room.check("wp-admin asks again", asked.status == 302 and "wp-login.php" in asked["Location"], asked)
