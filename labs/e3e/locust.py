"""argv: Locust's program, users, seconds. Loads TARGET by one process of it, and prints what it says as a line of JSON."""
import json, os, subprocess, sys

program, users, seconds = sys.argv[1:]
file = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'locustfile.py')
command = [program, '-f', file, '--headless', '--only-summary', '--json', '-u', users, '-r', users, '-t', seconds + 's',
           '-H', 'http://' + os.environ['TARGET']]
# What Locust thinks of itself is a warning on standard error, "CPU usage above 90%!"; a quota keeps it below.
said = subprocess.run(command, capture_output=True, text=True, timeout=int(seconds) + 90)
pages = json.loads(said.stdout or '[]')
if not pages or not pages[0]['num_requests']:
    sys.exit(f'locust: nothing was answered: {said.stdout}{said.stderr}')
page = pages[0]
taken = page['last_request_timestamp'] - page['start_time']
print(json.dumps({
    'requests': page['num_requests'],
    'failed': page['num_failures'],
    'rate': page['num_requests'] / taken,
    'warned': 'CPU usage' in said.stderr,
}))
