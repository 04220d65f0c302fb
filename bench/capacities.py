#!/usr/bin/env python3
"""What `weir lab capacity` says of services with a known ceiling.

    python3 bench/capacities.py --weir target/dist/weir [--only slow,batch] [--noisy]

Each service is `capacities_origin.py` behind weir. Its ceiling is known by its construction: so many places, each for so long; a pool; batches; a link; CPU
time; a policy of the edge. `near` is a figure within 5 % of the ceiling. A run takes two to four minutes. Exit code 1: more than one of twelve is not near.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PORT = 18195
NEAR = 0.05

# Requests a second, the latency that 95 % keep to, and the words of the location.
SERVICES = {
    "places": (100, "600ms", ""),
    "short-places": (100, "400ms", ""),
    "random-places": (100, "900ms", ""),
    "slow": (75, "3500ms", ""),
    "one-second": (60, "2000ms", ""),
    "pool": (150, "400ms", ""),
    "two-stages": (90, "600ms", ""),
    "batch": (100, "500ms", ""),
    "link": (80, "400ms", ""),
    "cpu": (50, "400ms", ""),
    "policy": (90, "400ms", "limit_req zone=all burst=10;"),
    "connections": (120, "900ms", "limit_conn held 30;"),
}

CONF = """
worker_processes 1;
events { worker_connections 4096; }
http {
    access_log off;
    limit_req_zone $server_name zone=all:1m rate=90r/s;
    limit_conn_zone $server_name zone=held:1m;
    upstream app { server 127.0.0.1:@port@; keepalive 256; }
    server {
        listen 127.0.0.1:18196;
        location / { @words@ proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; }
    }
}
"""


def measured(name: str, slo: str, words: str, args, work: Path) -> tuple[float | None, str]:
    """The rate that was found, and the sentence."""
    conf = work / f"{name}.conf"
    conf.write_text(CONF.replace("@port@", str(PORT)).replace("@words@", words))
    origin = f"exec {sys.executable} {HERE / 'capacities_origin.py'} {name} {PORT}"
    argv = [args.weir, "lab", "capacity", str(conf), "--slo", f"p95={slo}", "--from", "40", "--block", "8s", "--warmup", "3s", "-c", "1024",
            "--origin", origin, "--plain", "--store", str(work / name)]
    done = subprocess.run(argv + (["--noisy"] if args.noisy else []), capture_output=True, text=True, timeout=1200)
    runs = sorted((work / name).rglob("*.json"))
    if not runs:
        return None, "".join((done.stdout + done.stderr).strip().splitlines()[-1:])
    verdict = json.loads(runs[-1].read_text())["verdict"]
    return verdict.get("rate"), verdict.get("text", "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--weir", required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[])
    parser.add_argument("--noisy", action="store_true")
    args = parser.parse_args()
    far = 0
    with tempfile.TemporaryDirectory(prefix="weir-capacities-") as work:
        for name, (ceiling, slo, words) in SERVICES.items():
            if args.only and name not in args.only:
                continue
            rate, text = measured(name, slo, words, args, Path(work))
            is_near = rate is not None and abs(rate / ceiling - 1) <= NEAR
            far += not is_near
            print(f"{name:14} ceiling {ceiling:4} {'found ' + format(rate, '7.2f') if rate else 'no figure'} {'near' if is_near else 'FAR'}   {text}", flush=True)
    raise SystemExit(1 if far > 1 else 0)


if __name__ == "__main__":
    main()
