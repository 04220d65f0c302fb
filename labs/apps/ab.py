"""argv: clients, seconds, URL, and what ab takes besides. Loads by Apache's `ab -k`, and prints what it says as a line of JSON."""
import json, re, subprocess, sys

clients, seconds, url, *more = sys.argv[1:]
# The largest number of requests that ab takes: time ends it, which `-t` alone would do after 50,000.
command = ['ab', '-q', '-k', '-c', clients, '-t', seconds, '-n', '10000000', *more, url]
said = subprocess.run(command, capture_output=True, text=True, timeout=int(seconds) + 60)


def number(pattern):
    """The number that a line has, 0 where ab leaves the line out."""
    found = re.search(pattern, said.stdout)
    return float(found[1]) if found else 0.0


if not number(r'Complete requests: +(\d+)'):
    sys.exit(f'ab: nothing was answered: {said.stdout}{said.stderr}')
print(json.dumps({
    'requests': number(r'Complete requests: +(\d+)'),
    'rate': number(r'Requests per second: +([\d.]+)'),
    'kept': number(r'Keep-Alive requests: +(\d+)'),
    'failed': number(r'Failed requests: +(\d+)'),
    'bad': number(r'Non-2xx responses: +(\d+)'),
    'bytes': number(r'Document Length: +(\d+)'),
    'sd': number(r'Total: +\d+ +\d+ +([\d.]+)'),
    'p50': number(r' 50% +(\d+)'),
    'p99': number(r' 99% +(\d+)'),
    'max': number(r'100% +(\d+)'),
}))
