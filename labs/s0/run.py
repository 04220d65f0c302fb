#!/usr/bin/env python3
"""Report S0: Socket.IO behind nginx.conf. Clients connect, emit, and await each acknowledgement."""
import json, subprocess, sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

chosen = lab.options(__doc__)
edge_name, _ = lab.inside(chosen)
clients, seconds = (40, 2) if chosen.quick else (200, 8)
expect = lab.Expectations()
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
