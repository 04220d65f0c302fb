#!/usr/bin/env python3
"""Report S2's exhausted ports (lab.md, E2b): 200 local ports, connections to the upstream not kept by the configuration.

nginx opens a connection per request, closes it first, and each port then rests for a minute: 200 requests are answered,
then 502. weir keeps connections unless told not to, and a request that finds no port waits for one.
"""
import subprocess, sys, threading, urllib.request
from collections import Counter
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab

PORTS = 200
ADDRESSES = ('127.0.0.1', '127.0.0.2', '127.0.0.3')


def load(connections, seconds):
    """wrk from three addresses' worth of ports, since clients too have only 200 towards one."""
    shares, results = [connections // len(ADDRESSES)] * len(ADDRESSES), []
    threads = [threading.Thread(target=lambda a=address, c=share: results.append(lab.wrk(f'http://{a}/', c, seconds)))
               for address, share in zip(ADDRESSES, shares)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sum(results, Counter())


def opened():
    """Connections the application has seen, asked through the edge: there may be no port to ask directly."""
    with urllib.request.urlopen('http://127.0.0.4/connections', timeout=5) as answer:
        return int(answer.read())


chosen = lab.options(__doc__)
edge_name, connections = lab.inside(chosen, variants=('60', '300'))
connections = int(connections)
lab.set_kernel('net.ipv4.ip_local_port_range', f'50000 {50000 + PORTS - 1}')
# 2, the usual value, would let loopback, and loopback alone, use resting ports again after a second.
lab.set_kernel('net.ipv4.tcp_tw_reuse', 0)
seconds = 1 if chosen.quick else 8
expect = lab.Expectations()
print(f'E2b: Express, {PORTS} local ports, {connections} client connections, {seconds} s')
with lab.Origin('express'), lab.Edge(edge_name, getattr(chosen, edge_name), HERE / 'nginx.conf') as edge:
    before = edge.cpu_seconds()
    counts = load(connections, seconds)
    lab.row(edge_name, counts, edge.cpu_seconds() - before)
    if edge_name == 'nginx':
        print(f'         {edge.first_log_line("failed .99:")}')
        expect.that(counts['502'] > 0 and 0 < counts['200'] <= PORTS, '200 until the ports are used up, then 502')
    else:
        print(f'         requests that waited for a port: {edge.log_lines("waiting for a kept connection")}; '
              f'connections to the application: {opened()}')
        expect.that(set(counts) == {'200'}, 'every request is answered by 200')
expect.end(chosen.check)
