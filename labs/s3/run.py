#!/usr/bin/env python3
"""Report S3: three Express servers behind nginx.conf, one worker, 64 connections by wrk; `--tls`: published.conf, Spring Boot."""
import http.client, json, sys
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab
import tls

SERVERS = ('127.0.0.2', '127.0.0.3', '127.0.0.4')


def ask(port, path):
    """One request: status, Location and body."""
    connection = http.client.HTTPConnection('127.0.0.1', port, timeout=5)
    connection.request('GET', path, headers={'Host': 'gyural.shop'})
    answer = connection.getresponse()
    return answer.status, answer.getheader('Location'), answer.read()


chosen = lab.options(__doc__, tls=True)
if chosen.tls:
    tls.run(chosen)
edge_name, _ = lab.inside(chosen)
seconds = 2 if chosen.quick else 8
expect = lab.Expectations()
print(f'S3: three Express servers, 64 connections, {seconds} s')
with ExitStack() as stack:
    for address in SERVERS:
        stack.enter_context(lab.Origin('express', address, 8080))
    edge = stack.enter_context(lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'nginx.conf'))
    before = edge.cpu_seconds()
    counts = lab.wrk('http://127.0.0.1:443/', 64, seconds)
    lab.row(edge_name, counts, edge.cpu_seconds() - before)
    shares = Counter(json.loads(ask(443, '/')[2])['from'] for _ in range(30))
    redirect = ask(80, '/a?b')[:2]
expect.that(set(counts) == {'200'}, 'every request is answered by 200')
expect.that(all(shares[address] == 10 for address in SERVERS), 'the servers take turns')
expect.that(redirect == (301, 'https://gyural.shop/a?b'), 'port 80 points to https')
expect.end(chosen.check)
