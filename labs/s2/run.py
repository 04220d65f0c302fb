#!/usr/bin/env python3
"""Report S2: Express behind nginx.conf, 64 connections by wrk."""
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

chosen = lab.options(__doc__)
edge_name, _ = lab.inside(chosen)
seconds = 2 if chosen.quick else 8
expect = lab.Expectations()
print(f'S2: Express, 64 connections, {seconds} s')
with lab.Origin('express'), lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'nginx.conf') as edge:
    before = edge.cpu_seconds()
    counts = lab.wrk('http://127.0.0.1/', 64, seconds)
    lab.row(edge_name, counts, edge.cpu_seconds() - before)
expect.that(set(counts) == {'200'}, 'every request is answered by 200')
expect.end(chosen.check)
