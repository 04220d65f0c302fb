#!/usr/bin/env python3
"""The alert rules and the dashboards of package/monitoring, read by Prometheus.

  tests/prometheus.py --weir BIN [--ports A,B,C,D,E] [rules] [dashboards] [live]

  rules       promtool accepts the rules and their unit tests; each alert has a test in which it fires and stays silent
  dashboards  both files are current, have the same queries, use metrics that exist, and are dashboards by Grafana's own schema
  live        Prometheus reads a loaded edge with a failing upstream: each query of a panel and of a rule returns data, and alerts fire

Prints a line for each thing that holds; exit code 1 at the first that does not. Prometheus and promtool are in PATH. The schema is
PyPI's grafana-foundation-sdk (tests/grafana.txt). Without --ports, the live part takes free ports.
"""
import argparse
import enum
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import typing
import urllib.error
import urllib.parse
import urllib.request

import prometheus_peers
from ports import free_port

ROOT = pathlib.Path(__file__).resolve().parent.parent
HERE = ROOT / "package/monitoring"
RULES, UNIT_TESTS = HERE / "weir.rules.yml", HERE / "weir.rules.test.yml"
DASHBOARDS = [HERE / "weir.json", HERE / "weir.ko.json"]
GUIDE = ROOT / "docs/guide/monitoring.md"

# How long the live part may wait for one thing, and for the data of all queries.
PATIENCE_S = 25
# The alerts that the live edge causes. WeirDown is for a second target, on which nothing listens.
EXPECTED = {"WeirDown", "WeirPeerDown", "WeirUpstreamDown", "WeirManyRequestsFail", "WeirUpstreamQueueFull", "WeirCertificateEndsSoon", "WeirSpansLost"}
# The servers that WeirPeerDown names: group and address.
DOWN = {"app 127.0.0.1", "checked 127.0.0.1", "gone 127.0.0.1", "gone 127.0.0.2"}
# Queries that may return nothing, by a part of them, with the reason.
MAY_BE_EMPTY = {
    "deriv(": "no limit need be on its way to its end",
    'kind="cpu_quota"': "the machine may have no CPU quota",
    'kind="cpu_credits"': "the hypervisor may take no CPU time",
    'kind="tx_link"': "loopback reports no speed, and a container's device may report none",
}

CONF = """
daemon off; user root; pid {dir}/pid; error_log {dir}/error.log info; worker_processes 2; dashboard off;
events {{ worker_connections 512; }}
stream {{
    upstream tcp {{ server 127.0.0.1:{origin}; server 127.0.0.1:{closed} max_fails=0; }}
    server {{ listen 127.0.0.1:{tcp}; proxy_pass tcp; }}
}}
http {{
    access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
    otel_exporter {{ endpoint 127.0.0.1:{closed}; interval 1s; batch_size 2; batch_count 1; }}
    resolver 127.0.0.1:{closed};
    limit_req_zone $server_name zone=perip:1m rate=1r/s;
    limit_conn_zone $server_name zone=few:1m;
    proxy_cache_path {dir}/cache keys_zone=pages:1m max_size=10m;
    acme_issuer authority {{ uri https://127.0.0.1:{closed}/directory; state_path {dir}/acme; accept_terms_of_service; }}
    upstream app {{ server 127.0.0.1:{origin}; server 127.0.0.1:{closed} max_fails=1 fail_timeout=3s; keepalive 4; }}
    upstream gone {{ server 127.0.0.1:{closed} max_fails=1 fail_timeout=3s; server 127.0.0.2:{closed} max_fails=1 fail_timeout=3s; }}
    upstream checked {{ zone checked 64k; server 127.0.0.1:{origin}; server 127.0.0.1:{closed}; }}
    upstream queued {{ server 127.0.0.1:{origin} max_conns=1; queue 1 timeout=500ms; }}
    proxy_http_version 1.1; proxy_set_header Connection "";
    server {{
        listen 127.0.0.1:{http}; server_name shop.example;
        location / {{ proxy_pass http://127.0.0.1:{origin}; }}
        location /app/ {{ proxy_pass http://app/; }}
        location /gone/ {{ proxy_pass http://gone; }}
        location /checked/ {{ proxy_pass http://checked; health_check interval=1s; }}
        location /queued/ {{ proxy_pass http://queued/; }}
        location /cached/ {{ proxy_cache pages; proxy_cache_valid 1m; proxy_pass http://127.0.0.1:{origin}; }}
        location /traced/ {{ otel_trace on; return 204; }}
        location /limited/ {{ limit_req zone=perip; return 204; }}
        location /single/ {{ limit_conn few 1; return 204; }}
        location /ws {{ proxy_set_header Upgrade $http_upgrade; proxy_set_header Connection upgrade; proxy_pass http://127.0.0.1:{origin}; }}
    }}
    server {{
        listen 127.0.0.1:{https} ssl; server_name localhost;
        ssl_certificate {dir}/localhost.crt; ssl_certificate_key {dir}/localhost.key; return 200 "";
    }}
    server {{
        listen 127.0.0.1:{https} ssl; server_name renewed.example;
        acme_certificate authority; ssl_certificate $acme_certificate; ssl_certificate_key $acme_certificate_key;
    }}
    include metrics.conf;
}}
"""


def holds(what, is_so, more=""):
    if not is_so:
        sys.exit(f"does not hold: {what}\n{more}")
    print(f"holds: {what}", flush=True)


def promtool(*words):
    done = subprocess.run(["promtool", *words], cwd=HERE, capture_output=True, text=True)
    holds(f"promtool {' '.join(words)}", done.returncode == 0, done.stdout + done.stderr)


def alerts():
    """Name and text of each alert."""
    parts = re.split(r"\n      - (?=alert:|record:)", RULES.read_text())
    return {part.split()[1]: part for part in parts if part.startswith("alert:")}


# rules

def rules():
    promtool("check", "rules", RULES.name)
    promtool("test", "rules", UNIT_TESTS.name)
    fired, lonely = {}, set()
    for test in UNIT_TESTS.read_text().split("\n  - interval:")[1:]:
        for labels in re.findall(r"- \{labels: 'ALERTS\{(.*?)\}', value: 1\}", test):
            labels = dict(re.findall(r'(\w+)="(.*?)"', labels))
            fired.setdefault(labels["alertname"], set()).update(labels)
            if labels["instance"] != "bad" or 'instance="good"' not in test:
                lonely.add(labels["alertname"])
    holds("each alert has a unit test", fired.keys() == alerts().keys(), fired.keys() ^ alerts().keys())
    holds("in each test, the alert is for the bad edge, and the good one is there", not lonely, lonely)
    for name, text in alerts().items():
        used = set(re.findall(r"\$labels\.(\w+)", text))
        # An empty label is a missing label: `of` of the machine's own limits.
        lacks = used - fired[name] - {"of"} | {"summary:", "description:", "severity:"} - set(re.findall(r"\w+:", text))
        if lacks:
            holds(f"{name} has a summary of its own labels, and a remedy", False, lacks)
    table = re.findall(r"^\| `(Weir\w+)` \| (\w+) \|", GUIDE.read_text(), re.M)
    severities = [(name, re.search(r"severity: (\w+)", text)[1]) for name, text in alerts().items()]
    holds("the guide lists the alerts", table == severities, set(table) ^ set(severities))


# dashboards

def all_panels(dashboard):
    for panel in dashboard["panels"]:
        yield panel
        yield from panel.get("panels", [])


def queries(dashboard):
    """Title and query of each target, and of each annotation."""
    found = [(panel["title"], target["expr"]) for panel in all_panels(dashboard) for target in panel.get("targets", [])]
    return found + [(one["name"], one["expr"]) for one in dashboard["annotations"]["list"]]


def dashboards():
    done = subprocess.run([sys.executable, HERE / "dashboard.py", "--check"], capture_output=True, text=True)
    holds("the dashboards are what the table says", done.returncode == 0, done.stderr)
    english, korean = (json.loads(file.read_text()) for file in DASHBOARDS)
    holds("both dashboards have the same queries", [text for _, text in queries(english)] == [text for _, text in queries(korean)])
    foreign = [panel["title"] for panel in all_panels(korean) if not re.search("[가-힣]", panel["title"] + panel.get("description", ""))]
    # The word is the same in both languages.
    holds("the Korean dashboard is in Korean", foreign == ["WebSocket"], foreign)
    known = set(re.findall(r"^\| `(weir_\w+)`", (ROOT / "docs/reference/metrics.md").read_text(), re.M))
    used = set(re.findall(r"\bweir_\w+", " ".join(text for _, text in queries(english)) + re.sub(r"(?m)\w+:weir_\w+:\w+|#.*", "", RULES.read_text())))
    used = {re.sub(r"_(sum|count)$", "", name) for name in used}
    holds("dashboard and rules use metrics that weir has", used <= known, used - known)
    numbers = [panel["id"] for panel in all_panels(english)]
    holds("each panel has its own number", len(numbers) == len(set(numbers)))
    for dashboard in (english, korean):
        schema(dashboard)


def schema(dashboard):
    """Grafana's schema reads the dashboard, and writes back everything that it read: it drops keys that it does not know."""
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.cog.plugins import register_default_plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    register_default_plugins()
    lost = []

    def compare(ours, theirs, path):
        if isinstance(ours, dict) and isinstance(theirs, dict):
            for key, value in ours.items():
                compare(value, theirs[key], f"{path}.{key}") if key in theirs else lost.append(f"{path}.{key}")
        elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
            for at, value in enumerate(ours):
                compare(value, theirs[at], f"{path}[{at}]")
        elif ours != theirs:
            lost.append(f"{path}: {ours!r} != {theirs!r}")

    model = Dashboard.from_json(json.loads(json.dumps(dashboard)))
    read = json.loads(JSONEncoder().encode(model))
    compare({key: value for key, value in dashboard.items() if not key.startswith("__")}, read, "dashboard")
    # The schema has no words for these: the export's own fields of a variable and of an annotation.
    lost = [path for path in lost if not re.search(r"\.(definition|titleFormat)$", path)]
    holds(f"Grafana's schema knows each key of \"{dashboard['title']}\"", not lost, "\n".join(lost))
    wrong = list(misfits(model, "dashboard"))
    holds("and the type of each value", not wrong, "\n".join(wrong))


def misfits(value, path):
    """The values below an object of the schema that have another type than the schema says."""
    if isinstance(value, list):
        for at, one in enumerate(value):
            yield from misfits(one, f"{path}[{at}]")
    elif hasattr(type(value), "__annotations__") and not isinstance(value, enum.Enum):
        for name, hint in typing.get_type_hints(type(value)).items():
            inner = getattr(value, name, None)
            if fits(inner, hint):
                yield from misfits(inner, f"{path}.{name}")
            else:
                yield f"{path}.{name} is {inner!r}, not {hint}"


def fits(value, hint):
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Union:
        return any(fits(value, one) for one in inner)
    if origin is typing.Literal:
        return value in inner
    if origin is list:
        return isinstance(value, list) and all(fits(one, inner[0]) for one in value)
    if origin is dict:
        return isinstance(value, dict)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return value in [one.value for one in hint]
    if hint is float:
        return isinstance(value, (int, float))
    # The schema leaves some lists of objects as they came.
    return isinstance(value, hint) or (isinstance(value, dict) and hasattr(hint, "from_json"))


# live

class Prometheus:
    """A Prometheus whose rules wait for seconds where the shipped ones wait for minutes."""

    def __init__(self, folder, port, targets):
        self.base = f"http://127.0.0.1:{port}"
        text = re.sub(r"(?m)^( +for:) \d+[mh]$", r"\1 2s", RULES.read_text())
        (folder / "weir.rules.yml").write_text(text)
        conf = of_guide(
            "yaml\nscrape_configs:",
            ("scrape_interval: 15s", "scrape_interval: 1s"),
            ('["127.0.0.1:9113"]', json.dumps(targets)),
            ("/usr/share/weir/prometheus/weir.rules.yml", "weir.rules.yml"),
        )
        (folder / "prometheus.yml").write_text("global: {evaluation_interval: 1s}\n" + conf)
        words = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
        words.append(f"--web.listen-address={self.base.removeprefix('http://')}")
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=open(folder / "prometheus.log", "w"))

    def ask(self, path, **arguments):
        with urllib.request.urlopen(f"{self.base}/api/v1/{path}?{urllib.parse.urlencode(arguments)}", timeout=10) as answer:
            return json.load(answer)["data"]

    def values(self, query):
        """The samples of a query now, without those that are no number."""
        try:
            found = self.ask("query", query=query)["result"]
        except urllib.error.HTTPError as error:
            sys.exit(f"Prometheus refuses {query}: {error.read().decode()}")
        return [sample for sample in found if sample["value"][1] != "NaN"]


def of_guide(begin, *changes):
    """A block of the guide, which begins with its language and these words, with changes."""
    _, rest = GUIDE.read_text().split(f"```{begin}")
    text = begin.split("\n", 1)[1] + rest.split("```")[0]
    for old, new in changes:
        if old not in text:
            holds(f"the guide's block has {old}", False, text)
        text = text.replace(old, new)
    return text


def within(what, is_so, more=lambda: "", seconds=PATIENCE_S):
    begun = time.monotonic()
    while not is_so():
        if time.monotonic() - begun > seconds:
            holds(f"within {seconds} s: {what}", False, more())
        time.sleep(0.2)
    holds(what, True)


def end(process):
    if process.poll() is None:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()


def live(weir, given):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-prometheus-"))
    os.chmod(folder, 0o755)
    started = []
    try:
        make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "3"]
        make += ["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost", "-keyout", "localhost.key", "-out", "localhost.crt"]
        subprocess.run(make, cwd=folder, check=True, capture_output=True)
        # This port stays bound and does not listen, so that connecting is refused.
        closed = socket.socket()
        closed.bind(("127.0.0.1", 0))
        ports = dict(zip(("http", "https", "tcp", "metrics", "prometheus"), given or [free_port() for _ in range(5)], strict=True))
        ports |= {"closed": closed.getsockname()[1], "origin": prometheus_peers.origin()}
        (folder / "nginx.conf").write_text(CONF.format(dir=folder, **ports))
        listen = f"listen 127.0.0.1:{ports['metrics']};"
        (folder / "metrics.conf").write_text(of_guide("nginx\nserver {", ("listen 9113;", listen)))
        edge = subprocess.Popen([weir, "edge", "-p", folder, "-c", "nginx.conf", "-e", folder / "error.log"], stderr=subprocess.DEVNULL)
        started.append(edge)
        within("weir serves its metrics", lambda: is_served(ports["metrics"]), lambda: end_of(folder / "error.log"))
        prometheus = Prometheus(folder, ports["prometheus"], [f"127.0.0.1:{ports['metrics']}", f"127.0.0.1:{ports['closed']}"])
        started.append(prometheus.process)
        within("Prometheus reads the edge", lambda: is_read(prometheus), lambda: end_of(folder / "prometheus.log"))
        load = prometheus_peers.Load(ports)
        # A reload, which the dashboard marks.
        edge.send_signal(signal.SIGHUP)
        watch(prometheus, f"127.0.0.1:{ports['metrics']}")
        load.stop()
    finally:
        for process in started:
            end(process)
        shutil.rmtree(folder)


def end_of(file):
    return file.read_text()[-2000:]


def is_served(port):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
            return answer.status == 200
    except OSError:
        return False


def is_read(prometheus):
    try:
        return prometheus.ask("query", query="weir_up")["result"]
    except OSError:
        return False


def watch(prometheus, edge):
    asked = [(title, dashboard_query(text, edge)) for title, text in queries(json.loads(DASHBOARDS[0].read_text()))]
    groups = prometheus.ask("rules")["groups"]
    for rule in (rule for group in groups for rule in group["rules"]):
        # An alert returns nothing while nothing is wrong, so ask for the series that it reads.
        texts = selectors(rule["query"]) if rule["type"] == "alerting" else [rule["query"], rule["name"]]
        asked += [(rule["name"], text) for text in texts]
    holds("Prometheus has all rules", alerts().keys() <= {name for name, _ in asked} and len(asked) > 120, len(asked))
    with_data(prometheus, asked)
    within(f"alerts fire: {', '.join(sorted(EXPECTED))}", lambda: EXPECTED <= names(firing(prometheus)), lambda: names(firing(prometheus)))
    pending = {sample["metric"]["alertname"] for sample in prometheus.values('last_over_time(ALERTS{alertstate="pending"}[5m])')}
    holds("an alert of a server that is down was pending before", {"WeirPeerDown", "WeirUpstreamDown"} <= pending, pending)
    within("and it names the servers that are down", lambda: down(prometheus) == DOWN, lambda: down(prometheus))
    for alert in firing(prometheus):
        said = alert["annotations"]["summary"]
        holds(said, not re.search(r"<|no value|\s{2}|\son\s*\.", said) and alert["annotations"]["description"])
    states = [rule for group in prometheus.ask("rules")["groups"] for rule in group["rules"] if rule["health"] != "ok"]
    holds("Prometheus evaluates every rule", not states, states)


def with_data(prometheus, asked):
    """Each query returns a number, or may be empty for a named reason."""
    waiting = [one for one in asked if not any(part in one[1] for part in MAY_BE_EMPTY)]
    for title, text in [one for one in asked if one not in waiting]:
        prometheus.values(text)

    def all_answered():
        waiting[:] = [one for one in waiting if not prometheus.values(one[1])]
        return not waiting

    within(f"{len(waiting)} of {len(asked)} queries return data, the others may be empty", all_answered, lambda: "\n".join(map(str, waiting)))


def dashboard_query(text, edge):
    """A query as Grafana sends it."""
    for old, new in (("$__rate_interval", "10s"), ("$instance", re.escape(edge).replace("\\", "\\\\")), ("$zone", ".*"), ("$upstream", ".*")):
        text = text.replace(old, new)
    return text


def selectors(query):
    """The series that a query reads."""
    return re.findall(r"(?:\bweir_\w+|\b\w+:weir_\w+:\w+|\bup)\b(?:\{.*?\})?", query)


def firing(prometheus):
    return [one for one in prometheus.ask("alerts")["alerts"] if one["state"] == "firing"]


def down(prometheus):
    found = [one["labels"] for one in firing(prometheus) if one["labels"]["alertname"] == "WeirPeerDown"]
    return {f"{labels['upstream']} {labels['peer'].split(':')[0]}" for labels in found}


def names(found):
    return {one["labels"]["alertname"] for one in found}


PARTS = {"rules": lambda *_: rules(), "dashboards": lambda *_: dashboards(), "live": live}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--weir", required=True, type=pathlib.Path)
    parser.add_argument("--ports", type=lambda text: [int(port) for port in text.split(",")])
    parser.add_argument("names", nargs="*", choices=[*PARTS, []])
    asked = parser.parse_args()
    for name in asked.names or PARTS:
        PARTS[name](asked.weir.resolve(), asked.ports)


if __name__ == "__main__":
    main()
