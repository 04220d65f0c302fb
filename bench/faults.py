#!/usr/bin/env python3
"""Faults that are put into a stack on purpose, and what `weir lab why` says of each: the confusion matrix.

    bench/faults.py --weir target/debug/weir [--list] [--prove] [--try] [--only b15,b21-weir] [--block 8s] [--minutes 35]

Needs root (namespaces, control groups), nginx, node, python3 and openssl; rows that need more (Apache, MariaDB, Redis, a JDK) are
left out, and named, where it is not installed. On a quiet machine, else with --noisy (which is said by every run). A row is right
when the first finding is one of the rules that may be said of that fault. "PROVED" by another rule is the worst there is, and fails
the whole. No row is begun after --minutes. Exit code 1: fewer than nine of ten right, or one wrongly proved.
"""

import argparse
import pathlib
import sys
import tempfile
import time

from stacks import (APACHE, BURN, BURNER, CACHE, DEAF, FPM, HEAP, HERE, KEEP, LEAK, MYSQL, NAMES, ONE_CPU, PAGES, POLL, POOL, REDIS, SLEEPS, SYNC, TLS, TWO,
                    WORK, WORKED, WSGI, conf, missing, pages, run)

# name, edges (n, w), rules that may be said, configuration, load, what else.
FAULTS = [
    ("b01-ports", "n", {"B01"}, conf(upstream="server app:3000;"), ["-R", "200", "-c", "16", "/1k"],
     {"inject": {"hosts": [{"name": "edge", "sysctls": [["net.ipv4.ip_local_port_range", "50000 50199"]]}]}}),
    ("b02-inert", "n", {"B02"}, conf("proxy_pass http://app;"), ["-R", "150", "-c", "16", "/1k"], {}),
    ("b03-small-pool", "n", {"B03"}, conf(upstream="server app:3000; keepalive 1;"), ["-c", "32", "/1k?delay=30ms"], {}),
    ("b03-no-pool", "n", {"B03"}, conf(upstream="server app:3000;"), ["-R", "150", "-c", "16", "/1k"], {}),
    ("b05-table", "nw", {"B05"}, conf(events="worker_connections 32;", main="worker_processes 1;"), ["-c", "60", "/1k?delay=1s"], {}),
    ("b06-recycled", "nw", {"B06", "B05"}, conf(events="worker_connections 64;", main="worker_processes 1;"), ["-R", "200", "-c", "100", "/1k"], {}),
    ("b07-files", "nw", {"B07"}, conf(main="worker_processes 1; worker_rlimit_nofile 30;"), ["-c", "60", "/1k?delay=1s"], {}),
    ("b10-stopped", "nw", {"B10", "B11"}, conf(listen="8080 backlog=8"), ["-c", "80", "/1k", "--warmup", "0"],
     {"inject": {"actions": [{"at_ms": 0, "deed": {"Stop": "edge"}}, {"at_ms": 2500, "deed": {"Continue": "edge"}}]}}),
    ("b12-one-worker", "nw", {"B12"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED, "--edge-cpus", "0-1"], {}),
    ("b15-edge-quota", "nw", {"B15"}, conf(main="worker_processes 1;"), ["-c", "16", "/1k", "--edge-quota", "0.15"], {}),
    ("b15-edge-quota-rate", "nw", {"B15"}, conf(main="worker_processes 1;"), ["-R", "3000", "-c", "32", "/1k", "--edge-quota", "0.1"], {}),
    ("b15-app-quota", "nw", {"B15"}, conf(), ["-c", "16", "/64k"], {"inject": {"hosts": [{"name": "origin", "cpus": 0.06}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b16-credits", "nw", {"B16"}, conf(), ["-R", "250", "-c", "32", "/1k", "--block", "8s", "--warmup", "0"],
     {"origin": ("node", BURN, "1.5 1"), "inject": {"hosts": [{"name": "origin", "credits": {"cpus": 1.0, "baseline": 0.1, "earned_hourly": 6.0, "initial": 0.03, "speed": 1.0}}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b18-neighbours", "nw", {"B18", "B19"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED], {"inject": {"processes": [BURNER]}}),
    ("b19-edge-full", "nw", {"B19"}, conf(WORK, main="worker_processes 1;"), ["-c", "8", WORKED], {}),
    ("b20-app-full", "nw", {"B20"}, conf(), ["-c", "16", "/", *ONE_CPU], {"origin": ("node", BURN, "5 2")}),
    ("b21-one-thread", "nw", {"B21"}, conf(), ["-c", "16", "/", *ONE_CPU], {"origin": ("node", BURN, "5 1")}),
    ("b21-one-thread-rate", "nw", {"B21"}, conf(), ["-R", "300", "-c", "32", "/", *ONE_CPU], {"origin": ("node", BURN, "5 1")}),
    ("b22-pool", "nw", {"B22"}, conf(), ["-c", "16", "/"], {"origin": ("python3", POOL, "")}),
    ("b27-dead-peer", "nw", {"B27"}, conf(upstream="server app:3000 max_fails=0; server app:3001 max_fails=0; keepalive 8;"), ["-R", "100", "-c", "8", "/1k"],
     {"inject": {"processes": [{"name": "origin0", "argv": ["@WEIR@", "origin", "--listen", "0.0.0.0:3000"], "ready": "Started"}]}}),
    ("b27-slow-peer", "nw", {"B27"}, conf(upstream="server app:3000; server app:3001; keepalive 16;"), ["-R", "60", "-c", "32", "/"],
     {"origin": ("node", TWO, "3000,3001 250 0")}),
    ("b28-retries", "nw", {"B28"}, conf(f"proxy_pass http://app; {KEEP} proxy_next_upstream error timeout http_503;",
                                        upstream="server app:3000 max_fails=0; server app:3001 max_fails=0; server app:3002 max_fails=0; keepalive 16;"),
     ["-R", "100", "-c", "16", "/"], {"origin": ("node", TWO, "3000,3001,3002 0 0.5")}),
    ("b29-stampede", "nw", {"B29"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock off;", http=CACHE), ["-R", "300", "-c", "60", "/1k?delay=300ms"], {}),
    ("b30-lock-polling", "n", {"B30", "P06"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on; proxy_cache_key $uri$second;",
                                            http=CACHE + " map $msec $second { ~^(?<s>[0-9]+) $s; }"), ["-R", "200", "-c", "100", "/1k?delay=300ms"], {}),
    ("b31-not-kept", "nw", {"B31"}, conf(http=CACHE), ["-R", "150", "-c", "16", "/1k?header=Set-Cookie:a=b"], {}),
    ("b33-foreground", "n", {"B33"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on; proxy_cache_use_stale updating;", http=CACHE),
     ["-R", "200", "-c", "32", "/1k?delay=300ms"], {}),
    ("b34-link", "nw", {"B34"}, conf(), ["-c", "16", "/64k"], {"inject": {"hosts": [{"name": "client", "rate_kbit": 20000}]}}),
    ("b34-link-rate", "nw", {"B34"}, conf(), ["-R", "100", "-c", "64", "/64k"], {"inject": {"hosts": [{"name": "client", "rate_kbit": 20000}]}}),
    ("b37-not-saturated", "nw", {None}, conf(), ["-R", "60", "-c", "8", "/1k"], {}),
    ("b40-upgrade", "n", {"B40"}, conf("proxy_pass http://app;"), ["--load", "@WS@"], {}),
    ("b42-read-timeout", "nw", {"B42"}, conf(f"proxy_pass http://app; {KEEP} proxy_read_timeout 500ms;"), ["-R", "20", "-c", "32", "/1k?delay=2s"], {}),
    ("b42-connect-timeout", "n", {"B42", "B22"}, conf("proxy_pass http://app; proxy_connect_timeout 700ms;"), ["-R", "40", "-c", "64", "/", "--warmup", "0"],
     {"origin": ("node", DEAF, ""), "inject": {"actions": [{"at_ms": 0, "deed": {"Stop": "origin0"}}]}}),
    ("p01-refused", "nw", {"P01"}, conf(http="limit_req_zone $binary_remote_addr zone=one:1m rate=50r/s; limit_req zone=one burst=5 nodelay;"),
     ["-R", "200", "-c", "16", "/1k"], {}),
    ("p01-delayed", "nw", {"P01"}, conf(http="limit_req_zone $binary_remote_addr zone=one:1m rate=50r/s; limit_req zone=one burst=900;"),
     ["-R", "70", "-c", "256", "/1k"], {}),
    ("p02-limit-conn", "nw", {"P02"}, conf(http="limit_conn_zone $binary_remote_addr zone=addr:1m; limit_conn addr 5; limit_conn_status 429;"),
     ["-R", "100", "-c", "100", "/1k?delay=200ms"], {}),
    ("p03-limit-rate", "nw", {"P03"}, conf(f"limit_rate 20k; proxy_pass http://app; {KEEP}"), ["-R", "10", "-c", "64", "/64k"], {}),
    ("p04-max-conns", "nw", {"P04"}, conf(upstream="server app:3000 max_conns=2; keepalive 8;", main="worker_processes 1;", http="")
     .replace("upstream app {", "upstream app { zone app 64k;"), ["-R", "50", "-c", "32", "/1k?delay=300ms"], {}),
    ("p09-queue-full", "w", {"P09"}, conf(upstream="server app:3000 max_conns=2; keepalive 8; queue 4;", main="worker_processes 1;", http="")
     .replace("upstream app {", "upstream app { zone app 64k;"), ["-R", "50", "-c", "32", "/1k?delay=300ms"], {}),
    ("p09-queue-late", "w", {"P09"}, conf(upstream="server app:3000 max_conns=2; keepalive 8; queue 100 timeout=500ms;", main="worker_processes 1;", http="")
     .replace("upstream app {", "upstream app { zone app 64k;"), ["-R", "20", "-c", "64", "/1k?delay=300ms"], {}),
    ("p05-deny", "nw", {"P05"}, conf(f"deny all; proxy_pass http://app; {KEEP}"), ["-R", "100", "-c", "16", "/1k"], {}),
    ("p05-return", "nw", {"P05"}, conf("return 503;"), ["-R", "100", "-c", "16", "/1k"], {}),
    ("b49-app-queue", "nw", {"B49", "B22"}, conf("proxy_pass http://app;", upstream="server app:3000;"), ["-R", "60", "-c", "64", "/"], {"origin": ("python3", SLEEPS, "")}),
    ("b49-script", "nw", {"B49", "B22"}, conf("proxy_pass http://app;", upstream="server app:3000;"), ["--load", "@GET60@"], {"origin": ("python3", SLEEPS, "")}),
    ("b37-script", "nw", {None}, conf(), ["--load", "@GET60@"], {}),
    ("b50-names", "nw", {"B50"}, conf("resolver 127.0.0.1 valid=1s ipv6=off; set $name app.test; proxy_pass http://$name:3000;", upstream="server 127.0.0.1:3000;"),
     ["-R", "50", "-c", "128", "/1k"], {"inject": {"processes": [{"name": "names", "host": "edge", "argv": ["python3", "-c", NAMES]}]}}),
    ("b45-localhost", "n", {"B45"}, conf(upstream="server localhost:3000 max_fails=0; keepalive 8;"), ["-R", "100", "-c", "8", "/1k"],
     {"inject": {"names": [["localhost", "::1"]]}}),
    ("b13-imbalance", "n", {"B13"}, conf(WORK, main="worker_processes 2;", events="worker_connections 1024; accept_mutex on; multi_accept on;"),
     ["-c", "8", WORKED, "--edge-cpus", "0-1"], {}),
    ("b14-workers", "nw", {"B14", "B19"}, conf(WORK, main="worker_processes 8;"), ["-c", "32", WORKED], {}),
    ("b17-handshakes", "nw", {"B17"}, conf(http=TLS, listen="8443 ssl"), ["-c", "16", "/1k"], {"needs": "openssl"}),
    ("b21-blocked-loop", "nw", {"B21", "B22"}, conf(), ["-c", "16", "/"], {"origin": ("node", SYNC, ""), "flags": ["--probe", "node"]}),
    ("b22-apache", "nw", {"B22"}, conf(), ["-c", "16", "/slow?delay=40ms"],
     {"origin": ("apache", APACHE, ""), "needs": "apache2"}),
    ("b22-php-fpm", "nw", {"B22"}, conf("include /etc/nginx/fastcgi_params; fastcgi_param SCRIPT_FILENAME @DIR@/x.php; fastcgi_pass app;", upstream="server app:3000;"),
     ["-c", "8", "/x.php"], {"origin": ("php-fpm", FPM, ""), "needs": "php-fpm", "flags": ["--probe", "php-fpm=10.99.255.10:9001"]}),
    ("b22-uwsgi", "nw", {"B22"}, conf("include /etc/nginx/uwsgi_params; uwsgi_pass app;", upstream="server app:3000;"),
     ["-c", "8", "/x"], {"origin": ("uwsgi", WSGI, ""), "needs": "uwsgi", "flags": ["--probe", "uwsgi=10.99.255.10:9191"]}),
    ("b23-pool", "nw", {"B23"}, None, ["-c", "32", "/"], {"stack": ("e3c", "pool_one"), "flags": ["--pool", "app1:POOL=5"], "needs": "node"}),
    ("b24-locks", "nw", {"B24"}, conf(upstream="server 127.0.0.1:3000; keepalive 64;"), ["-c", "8", "/"], {"origin": ("mysql", MYSQL, ""), "needs": "mariadbd"}),
    ("b25-redis-full", "nw", {"B25"}, conf(upstream="server 127.0.0.1:3000; keepalive 64;"), ["-c", "16", "/"], {"origin": ("redis", REDIS, "6379 100000 1"), "needs": "redis-server"}),
    ("b26-shared-lock", "nw", {"B26"}, None, ["-c", "32", "/"], {"stack": ("e3c", "lock_three"), "needs": "node"}),
    ("b29-lock-alone", "n", {"B29"}, conf(f"proxy_pass http://app; {KEEP} proxy_cache_lock on;", http=CACHE), ["-R", "200", "-c", "100", "/1k?delay=300ms"], {}),
    ("b38-stopped", "nw", {"B38"}, conf(), ["-c", "2", "/1k?delay=2ms"],
     {"inject": {"actions": [{"at_ms": 1500, "deed": {"Stop": "edge"}}, {"at_ms": 2700, "deed": {"Continue": "edge"}}]}}),
    ("b41-sessions", "nw", {"B41"}, conf(upstream="server app:3000; server app:3001;"), ["--load", "@POLLING@"], {"origin": ("node", POLL, ""), "needs": "socket.io"}),
    ("b43-heap", "nw", {"B43"}, conf(), ["-c", "8", "/"], {"origin": ("java", HEAP, ""), "needs": "javac"}),
    ("b43-memory", "nw", {"B43", "B44"}, conf(), ["-c", "8", "/"],
     {"origin": ("python3", PAGES, ""), "inject": {"hosts": [{"name": "origin", "memory_mb": 40}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b43-killed", "nw", {"B43"}, conf(), ["-R", "300", "-c", "8", "/", "--warmup", "0"],
     {"origin": ("node", LEAK, ""), "inject": {"hosts": [{"name": "origin", "memory_mb": 120}], "processes": [{"name": "origin0", "is_unlimited": False}]}}),
    ("b44-log-disk", "n", {"B44"}, conf(http="access_log /var/log/nginx/slow.log;"), ["-c", "16", "/1k"],
     {"inject": {"processes": [{"name": "disk", "host": "edge", "is_step": True, "argv": ["sh", "-c",
      "truncate -s 64M /var/log/nginx/disk && mkfs.ext4 -q /var/log/nginx/disk && mkdir -p /var/log/nginx/d && mount -o loop,sync /var/log/nginx/disk /var/log/nginx/d && ln -s /var/log/nginx/d/slow.log /var/log/nginx/slow.log && touch /var/log/nginx/d/slow.log && chmod 666 /var/log/nginx/d/slow.log"]}]}}),
    ("client-quota", "nw", {"no verdict"}, conf(), ["-c", "32", "/1k"], {"inject": {"hosts": [{"name": "client", "cpus": 0.04}], "client": {"is_unlimited": False}}}),
    ("client-quota-rate", "nw", {"no verdict"}, conf(), ["-R", "3000", "-c", "32", "/1k"], {"inject": {"hosts": [{"name": "client", "cpus": 0.04}], "client": {"is_unlimited": False}}}),
]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", default=str(HERE / "target/debug/weir"))
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--minutes", type=float, default=35)
    parser.add_argument("--only", default="")
    parser.add_argument("--skip", default="")
    parser.add_argument("--block", default="8s")
    parser.add_argument("--prove", action="store_true")
    parser.add_argument("--try", dest="tries", action="store_true")
    parser.add_argument("--try-budget", dest="budget", default="3m")
    parser.add_argument("--noisy", action="store_true")
    parser.add_argument("--store", default="")
    options = parser.parse_args()
    weir = str(pathlib.Path(options.weir).resolve())
    store = pathlib.Path(options.store or tempfile.mkdtemp(prefix="weir-faults-runs-"))
    store.mkdir(parents=True, exist_ok=True)
    only = [word for word in options.only.split(",") if word]
    skip = [word for word in options.skip.split(",") if word]
    right = wrongly_proved = proved = all_of_them = none = 0
    left_out, began = [], time.monotonic()
    if "b43-memory" in [row[0] for row in FAULTS] and not options.list:
        pages()
    matrix = {}
    for name, edges, accepted, text, load, extra in FAULTS:
        for edge in edges:
            full = f"{name}-{'nginx' if edge == 'n' else 'weir'}"
            if (only and not any(full.startswith(word) for word in only)) or any(full.startswith(word) for word in skip):
                continue
            if options.list:
                print(f"{full:<28} {'/'.join(sorted(str(rule) for rule in accepted))}")
                continue
            lacks = missing(extra)
            if lacks or time.monotonic() - began > options.minutes * 60:
                left_out.append(f"{full} ({lacks or 'no time'})")
                continue
            got = run(weir, store, name, edge, text, load, extra, options)
            said = "no verdict" if got["word"] == "no verdict" else got["rule"]
            is_right = said in accepted
            all_of_them += 1
            right += is_right
            none += said in ("None", None, "no verdict") and not is_right
            if got["word"] == "PROVED":
                proved += 1
                wrongly_proved += not is_right
            if got["word"] == "SHARED":
                proved += is_right
            expected = "/".join(sorted(str(rule) for rule in accepted))
            matrix.setdefault(expected, {}).setdefault(str(said), 0)
            matrix[expected][str(said)] += 1
            mark = "  " if is_right else "x "
            print(f"{mark}{full:<28} wanted {expected:<10} got {str(said):<10} {got['word']:<14} {got['seconds']:5.0f} s  {got.get('findings', '')} {got['text']}", flush=True)
    if options.list:
        return
    print("\nwanted      said")
    for expected, row in sorted(matrix.items()):
        print(f"{expected:<11} " + ", ".join(f"{said} {count}" for said, count in sorted(row.items())))
    if left_out:
        print("\nleft out: " + ", ".join(left_out))
    minutes = (time.monotonic() - began) / 60
    print(f"\n{right} of {all_of_them} right, {all_of_them - right - none} wrong, {none} with nothing said; {proved} proved, {wrongly_proved} wrongly; "
          f"{minutes:.0f} min; runs in {store}")
    sys.exit(0 if right * 10 >= all_of_them * 9 and not wrongly_proved else 1)


if __name__ == "__main__":
    main()
