#!/usr/bin/env python3
"""Report S0's full connection table (lab.md, E0e): 60 clients at once, an application that takes a second.

With worker_connections 32 a worker has room for 15 proxied requests: 32 places, less one for the listening socket and one
for the channel to the master, two a request. weir means the same by the directive, and has no such table without it.
"""
import sys
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

CLIENTS, ROOM = 60, 15

chosen = lab.options(__doc__)
edge_name, conf = lab.inside(chosen, variants=('full-table', 'defaults'))
expect = lab.Expectations()
print(f'E0e: {CLIENTS} clients at once, {conf}.conf')
with lab.Origin('express', DELAY='1000'), lab.Edge(edge_name, getattr(chosen, edge_name), HERE / f'{conf}.conf') as edge:
    counts = Counter(lab.at_once(CLIENTS, lambda _: lab.get('127.0.0.1')))
    alerts = edge.log_lines(r'\[alert\].*worker_connections are not enough')
print(f'  {edge_name:6} {"  ".join(f"{kind}: {count}" for kind, count in counts.most_common())}   alerts: {alerts}')
answered = ROOM if conf == 'full-table' else CLIENTS
expect.that(counts['200'] == answered, f'{answered} of {CLIENTS} are answered')
expect.end(chosen.check)
