#!/usr/bin/env python3
"""Report S4: WordPress direct, proxied, cached for a second, with lock and stale; ten clients by ab, as reported."""
import os, re, subprocess, sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import lab
import wordpress

RUNGS = ('1-proxied', '2-cached', '3-stale')
CLIENTS = 10
# The largest number of requests ab takes; the time ends a run.
REQUESTS = 10_000_000


def load(address, seconds):
    """`ab -c 10 -k` for some seconds: requests, requests a second, p99 and worst in ms, answers that are no page."""
    command = ['ab', '-q', '-k', '-c', str(CLIENTS), '-t', str(seconds), '-n', str(REQUESTS), '-H', f'Host: {wordpress.HOST}',
               f'http://{address}/']
    said = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 60).stdout

    def number(pattern):
        found = re.search(pattern, said)
        return float(found[1]) if found else 0.0

    if not (complete := number(r'Complete requests: +(\d+)')):
        raise RuntimeError(f'ab: nothing was answered\n{said}')
    return {'requests': int(complete), 'rate': number(r'Requests per second: +([\d.]+)'), 'p99': number(r'99% +(\d+)'),
            'worst': number(r'100% +(\d+)'), 'bad': int(number(r'Non-2xx responses: +(\d+)')),
            'bytes': number(r'Document Length: +(\d+)')}


def rung(site, name, address, seconds, direct_rate, cpu=lambda: 0.0):
    """Loads one rung and prints its line."""
    fetched, used = site.fetches(), cpu()
    found = load(address, seconds)
    found['fetches'] = site.fetches() - fetched
    found['cpu'] = (cpu() - used) / found['requests'] * 1e6
    times = found['rate'] / direct_rate if direct_rate else 1.0
    print(f'  {edge_name:6} {name:10} {found["rate"]:9.1f} req/s ({times:6.1f} x)   p99 {found["p99"]:5.0f} ms   '
          f'worst {found["worst"]:5.0f} ms   {found["fetches"]:6} fetched from WordPress   '
          f'{found["cpu"]:7.1f} µs of the edge each   {found["bad"]} without a page', flush=True)
    return found


chosen = lab.options(__doc__)
if absent := wordpress.missing():
    print(f'skipped: not installed here: {", ".join(absent)} (labs/s4/wordpress.py names the packages)')
    sys.exit(77)
edge_name, _ = lab.inside(chosen)
seconds = 3 if chosen.quick else 15
expect = lab.Expectations()
print(f'S4: WordPress 6.1, {CLIENTS} clients, {seconds} s a rung')
found = {}
os.makedirs('/tmp/cache', exist_ok=True)
with wordpress.WordPress() as site:
    load(wordpress.ADDRESS, 1)  # PHP's first requests compile it.
    direct = rung(site, 'direct', wordpress.ADDRESS, seconds, None)
    for name in RUNGS:
        lab.run_quietly(['mount', '-t', 'tmpfs', 'tmpfs', '/tmp/cache'])
        with lab.Edge(edge_name, getattr(chosen, edge_name), HERE / f'{name}.conf') as edge:
            found[name] = rung(site, name, '127.0.0.1', seconds, direct['rate'], edge.cpu_seconds)
        lab.run_quietly(['umount', '/tmp/cache'])
expect.that(direct['bytes'] > 10_000, 'WordPress gives a page')
expect.that(not any(rung['bad'] for rung in found.values()), 'every request is answered by a page')
expect.that(found['1-proxied']['fetches'] >= found['1-proxied']['requests'], 'without a cache every request is fetched')
expect.that(found['3-stale']['rate'] > 20 * direct['rate'], 'the cache gives twenty times the requests or more')
# One fill at the start, then at most one for each second that the answer lives.
expect.that(found['3-stale']['fetches'] <= seconds + 2, 'with lock and stale one fetch an expiry')
expect.end(chosen.check)
