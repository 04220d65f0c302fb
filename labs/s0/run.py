#!/usr/bin/env python3
"""Report S0: Socket.IO behind nginx.conf. Clients connect, emit, and await each acknowledgement."""
import json, subprocess, sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

chosen = lab.options(__doc__, scripted=True)
edge_name, _ = lab.inside(chosen)
clients, seconds = (40, 2) if chosen.quick else (200, 8)
expect = lab.Expectations()


def scripted():
    """The same kind of load as an Artillery script."""
    users, messages = (40, 2) if chosen.quick else {'short': (930, 9), 'full': (930, 18)}[chosen.load]
    print(f'S0: Socket.IO, {users} users of load.yml, {messages} messages each')
    with lab.Origin('socketio'), lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'nginx.conf') as edge:
        before = edge.cpu_seconds()
        report = lab.weir_load(chosen, HERE / 'load.yml', edge_name)
        cpu = edge.cpu_seconds() - before
    counters = report['aggregate']['counters']
    acknowledged = report['aggregate']['summaries'].get('socketio.response_time', {}).get('count', 0)
    lab.load_row(edge_name, report, acknowledged, 'messages acknowledged', cpu)
    expect.that(counters.get('vusers.completed') == users, f'{users} users connect and come to their end')
    expect.that(counters.get('socketio.emit') == acknowledged == users * messages, 'every message is acknowledged')
    expect.that(not report['weir']['dropped'] and not counters.get('vusers.failed'), 'none failed, none was dropped')
    expect.end(chosen.check)


if chosen.load:
    scripted()
print(f'S0: Socket.IO, {clients} clients, {seconds} s')
with lab.Origin('socketio'), lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'nginx.conf') as edge:
    before = edge.cpu_seconds()
    command = ['node', str(lab.LABS / 'apps/socketio.load.mjs'), 'http://127.0.0.1', str(clients), str(seconds)]
    seen = json.loads(subprocess.run(command, capture_output=True, text=True, check=True, timeout=60 + seconds).stdout)
    cpu = edge.cpu_seconds() - before
print(f'  {edge_name:6} {seen["connected"]}/{clients} connected, {seen["websocket"]} of them by WebSocket; '
      f'{seen["emitted"]} messages, {seen["acknowledged"]} acknowledged; '
      f'CPU of the edge {cpu / max(seen["acknowledged"], 1) * 1e6:.1f} µs/message; errors: {seen["errors"] or "none"}')
expect.that(seen['connected'] == seen['websocket'] == clients, 'every client connects and ends up on a WebSocket')
expect.that(seen['emitted'] == seen['acknowledged'] and not seen['errors'], 'every message is acknowledged')
expect.end(chosen.check)
