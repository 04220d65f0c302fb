"""How often `weir lab ab` cries, with real processes: a configuration beside itself, and one with an answer 10 % later.

    python3 bench/alarms.py --weir target/dist/weir              # 40 and 20 labs, about two hours
    python3 bench/alarms.py --weir target/dist/weir --quick      # 4 and 2

The machine has to be quiet, and the user root: blocks that other work spoils are run again, and then give no verdict, which is
counted apart. Exit 1 if of 40 more than 2 cried, of 20 fewer than 16 were found, or one was called faster. The statistics
themselves are tested by simulation (`cargo test -p weir-lab --lib verdict`); this is about the machine.
"""

import argparse, json, subprocess, sys, tempfile
from collections import Counter
from pathlib import Path

CONF = """worker_processes 1;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    upstream app {{ server 127.0.0.1:18493; keepalive 64; }}
    server {{
        listen 18492;
        location / {{ proxy_pass http://app/1k?delay={delay}ms; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
"""


def lab(chosen, place, files):
    """The name of the verdict of one lab, and its text."""
    store = place / 'runs'
    command = [chosen.weir, 'lab', 'ab', '--edge', chosen.edge, *files, '/', '--connections', '24', '--pairs', str(chosen.pairs),
               '--block', chosen.block, '--warmup', chosen.warmup, '--store', str(store)]
    if chosen.noisy:
        command.append('--noisy')
    known = set(store.glob('*.json'))
    done = subprocess.run(command, capture_output=True, text=True)
    new = set(store.glob('*.json')) - known
    if len(new) != 1:
        sys.exit(f'no run: exit status {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}')
    verdict = json.loads(new.pop().read_text())['verdict']
    print(f'  {verdict["text"]}', flush=True)
    return verdict['name']


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--weir', default='target/dist/weir')
    parser.add_argument('--edge', default='weir', help='weir, or the path of an nginx')
    parser.add_argument('--same', type=int, default=40)
    parser.add_argument('--slower', type=int, default=20)
    parser.add_argument('--pairs', type=int, default=8)
    parser.add_argument('--block', default='4s')
    parser.add_argument('--warmup', default='2s', help='of each block')
    parser.add_argument('--noisy', action='store_true', help='use spoiled blocks: to try the script, not to believe it')
    parser.add_argument('--quick', action='store_true')
    chosen = parser.parse_args()
    chosen.weir = str(Path(chosen.weir).resolve())
    same, slower = (4, 2) if chosen.quick else (chosen.same, chosen.slower)
    with tempfile.TemporaryDirectory(prefix='weir-alarms-') as directory:
        place = Path(directory)
        (place / 'a.conf').write_text(CONF.format(delay=20))
        (place / 'b.conf').write_text(CONF.format(delay=22))
        print(f'{same} labs of a configuration beside itself')
        alone = Counter(lab(chosen, place, ['--aa', str(place / 'a.conf')]) for _ in range(same))
        print(f'{slower} labs with answers 10 % later')
        other = Counter(lab(chosen, place, [str(place / 'a.conf'), str(place / 'b.conf')]) for _ in range(slower))
    cried = alone['better'] + alone['worse'] + alone['trade-off']
    print(f'beside itself: {cried} of {same} cried; {dict(alone)}\n10 % later: {other["worse"]} of {slower} found; {dict(other)}')
    is_good = cried <= max(2, same // 20) and other['worse'] >= 0.8 * slower and not other['better']
    sys.exit(0 if is_good else 1)


if __name__ == '__main__':
    main()
