#!/usr/bin/env python3
"""Report S2: Express behind nginx.conf, 64 connections by wrk."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

chosen = lab.options(__doc__, scripted=True)
edge_name, _ = lab.inside(chosen)
seconds = 2 if chosen.quick else 8
expect = lab.Expectations()


def scripted():
    """The report's load, by an Artillery script."""
    users = 20 if chosen.quick else {'short': 200, 'full': 1800}[chosen.load]
    print(f'S2: Express, {users} users of load.yml, 100 requests each')
    with lab.Origin('express'), lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'nginx.conf') as edge:
        before = edge.cpu_seconds()
        report = lab.weir_load(chosen, HERE / 'load.yml', edge_name)
        cpu = edge.cpu_seconds() - before
    counters = report['aggregate']['counters']
    lab.load_row(edge_name, report, counters.get('http.responses', 0), 'answers', cpu)
    expect.that(counters.get('vusers.completed') == users, f'{users} users come to their end')
    expect.that(counters.get('http.codes.200') == counters.get('http.requests') == users * 100, 'every request is answered by 200')
    expect.that(not report['weir']['dropped'] and not counters.get('vusers.failed'), 'none failed, none was dropped')
    expect.end(chosen.check)


if chosen.load:
    scripted()
print(f'S2: Express, 64 connections, {seconds} s')
with lab.Origin('express'), lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'nginx.conf') as edge:
    before = edge.cpu_seconds()
    counts = lab.wrk('http://127.0.0.1/', 64, seconds)
    lab.row(edge_name, counts, edge.cpu_seconds() - before)
expect.that(set(counts) == {'200'}, 'every request is answered by 200')
expect.end(chosen.check)
