"""Whether the remedy of a verdict removes the fault that the generator put in: it knows what it put in."""

import re

HELPS, CANNOT, UNKNOWN = "helps", "cannot help", "unknown"
# The lab's words for a remedy that it tried in pairs of blocks.
TRIED = {"helps": HELPS, "does not help": CANNOT, "makes it worse": CANNOT}

MORE_CPU = r"more CPUs|add a CPU|larger quota|own CPUs|application server|reduce its computation|for each request"
# Of each kind, the rules whose remedy removes its fault, and words that such a remedy has: one that names something else cannot help.
KNOWN: dict[str, dict[str, str]] = {
    # More CPU time for who computes, or less to compute.
    "edge-cpu": {"B19": r"more CPUs", "B12": r"worker_processes|more CPUs"},
    "edge-one-worker": {"B12": r"worker_processes [2-9]"},
    "edge-workers": {"B14": r"worker_processes 1", "B19": r"more CPUs"},
    "edge-quota": {"B15": r"larger quota for edge"},
    "edge-neighbour": {"B18": r"own CPUs", "B19": r"more CPUs"},
    "edge-handshakes": {"B17": r"keepalive_timeout [1-9].*ECDSA|ECDSA", "B19": r"more CPUs"},
    "edge-compresses": {"B19": r"gzip_comp_level 1|more CPUs", "B12": r"worker_processes [2-9]|more CPUs"},
    "clients-close": {"B17": r"keepalive_requests 1000", "B19": r"more CPUs"},
    "app-thread": {"B21": MORE_CPU, "B20": MORE_CPU},
    "app-interpreter": {"B21": MORE_CPU, "B20": MORE_CPU},
    "app-cpus": {"B20": MORE_CPU},
    "app-quota": {"B15": r"larger quota for application"},
    "app-neighbour": {"B18": r"own CPUs", "B20": MORE_CPU, "B21": MORE_CPU},
    "app-compresses": {"B21": MORE_CPU, "B20": MORE_CPU},
    "app-bursts": {"B21": MORE_CPU, "B20": MORE_CPU},
    "backend-tls": {"B21": MORE_CPU, "B20": MORE_CPU, "B03": r"keepalive \d"},
    "app-blocked": {"B21": r"asynchronous", "B22": r"find the resource"},
    "app-heap": {"B43": r"heap", "B21": MORE_CPU, "B20": MORE_CPU},
    "app-heap-java": {"B43": r"heap"},
    "app-memory": {"B43": r"limit", "B44": r"faster disk"},
    "app-killed": {"B43": r"limit|heap"},
    "redis-full": {"B25": r"fewer|join", "B21": MORE_CPU},
    "backend-computes": {"B21": MORE_CPU, "B20": MORE_CPU},
    # Limits of the edge.
    "ports": {"B01": r"keepalive \d"},
    "slots": {"B05": r"worker_connections \d", "B06": r"worker_connections \d"},
    "recycled": {"B05": r"worker_connections \d", "B06": r"worker_connections \d"},
    "slow-clients": {"B05": r"worker_connections \d", "B06": r"worker_connections \d"},
    "files": {"B07": r"worker_rlimit_nofile \d"},
    "backlog": {"B10": r"find the work", "B11": r"backlog"},
    "log-reader": {"B66": r"reads the log as fast"},
    "edge-names": {"B50": r"nearer name server|addresses instead"},
    "cookies": {"P07": r"large_client_header_buffers|cookies"},
    "rewritten": {"P07": r"edge's error log"},
    # Policies: to send less, or to raise the limit.
    "policy-req": {"P01": r"--rate|raise rate"},
    "policy-conn": {"P02": r"raise the limit"},
    "policy-rate": {"P03": r"raise limit_rate"},
    "policy-max-conns": {"P04": r"raise max_conns", "P09": r"raise max_conns|longer"},
    "servers-out": {"P10": r"larger max_fails"},
    "check-fails": {"P10": r"health check"},
    # Pools and what is behind the application.
    "pool-told": {"B23": r"POOL=\d"},
    "pool-deaf": {"B22": r"find the resource"},
    "workers-kept": {"B22": r"add workers", "B49": r"keeps the application"},
    "proxy-between": {"B22": r"find the resource"},
    "app-files": {"B22": r"find the resource", "B63": r"open files"},
    "shared-backend": {"B26": r"measure the shared resource"},
    "disk": {"B44": r"fsync"},
    # The way to the upstream.
    "retries": {"B28": r"next_upstream"},
    "dead-server": {"B27": r"repair or remove|proxy_next_upstream error"},
    "takes-nothing": {"B27": r"repair or remove|proxy_next_upstream error", "B42": r"full queue", "B22": r"find the resource", "B49": r"keeps the application"},
    "slow-server": {"B27": r"least_conn"},
    "inert": {"B02": r"proxy_http_version 1\.1", "B03": r"keepalive \d"},
    "no-pool": {"B03": r"keepalive \d"},
    "hangs-up": {"B04": r"above the edge's"},
    "drops": {"B63": r"why it ends requests", "B28": r"next_upstream"},
    "cut": {"B68": r"why it ends answers"},
    "fat-head": {"B67": r"proxy_buffer_size \d+k; proxy_buffers"},
    "garbled": {"B67": r"valid fields"},
    "not-trusted": {"B67": r"proxy_ssl_name"},
    "nobody": {"B64": r"start the servers"},
    "late": {"B42": r"application|longer|proxy_read_timeout", "B39": r"longer"},
    "localhost": {"B45": r"instead of localhost"},
    "uploads": {"B34": r"smaller uploads"},
    "link-client": {"B34": r"smaller answers|faster link"},
    "link-origin": {"B34": r"compress|faster link|smaller"},
    "auth-slow": {"B70": r"answers of the check"},
    "mirror-slow": {"B71": r"answers at once"},
    "rate-field": {"P03": r"X-Accel-Limit-Rate|limit_rate"},
    # Inside of programs.
    "libuv-pool": {"B50": r"UV_THREADPOOL_SIZE|nearer name server"},
    "fpm-script": {"B22": r"add workers|pm\.max_children|faster"},
    "mysql-rows": {"B24": r"shorter transaction|transaction|lock"},
    "mysql-scan": {"B24": r"index", "B20": r"index|database"},
    "redis-keys": {"B25": r"SCAN|KEYS|fewer"},
    "redis-script": {"B25": r"script|EVAL|fewer"},
    # Work that comes and goes, and what grows.
    "batch-edge": {"B73": r"own CPUs|CPUs of its own|lower priority"},
    "batch-app": {"B73": r"own CPUs|CPUs of its own|lower priority"},
    "runtime-pauses": {"B73": r"what stops all|find the work"},
    "runtime-collects": {"B73": r"what stops all|find the work"},
    "disk-flush": {"B73": r"disk|find the work|find what", "B44": r"fsync|disk"},
    "leak-files": {"B74": r"does not close"},
    "leak-memory": {"B43": r"limit|heap", "B74": r"keeps of each request"},
    "leak-memory-slow": {"B75": r"keeps of each request", "B74": r"keeps of each request"},
    "grows-longer": {"B75": r"makes longer", "B74": r"makes longer"},
    # The cache.
    "stampede": {"B29": r"use_stale updating|background_update"},
    "cache-lock": {"B30": r"lock|use_stale|key", "P06": r"use_stale"},
    "key-differs": {"B31": r"proxy_cache_key"},
    "not-kept": {"B31": r"Set-Cookie"},
    # The application says it, and its log says why.
    "app-errors": {"P08": r"application's log"},
    "bucket-refuses": {"P08": r"application's log"},
    "own-ports": {"P08": r"application's log"},
    "calls-itself": {"P08": r"application's log"},
}
# True beside any kind: several servers share what limits them, or the edge has no pool of connections. The truth of the stack says where.
BESIDE = {"B26": r"measure the shared resource", "B03": r"keepalive \d"}


def worth(kind: str, rule: str | None, remedy: str, tried: str | None = None, is_right: bool = True) -> str:
    """`helps`, `cannot help`, or `unknown` where the generator does not say. `is_right`: the verdict's rule is one of the truth."""
    if tried in TRIED:
        return TRIED[tried]
    known = KNOWN.get(kind)
    if is_right and rule in BESIDE and rule not in (known or {}):
        return HELPS if re.search(BESIDE[rule], remedy) else CANNOT
    if known is None:
        return UNKNOWN
    return HELPS if rule in known and re.search(known[rule], remedy) else CANNOT
