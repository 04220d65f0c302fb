"""Scenarios in which a peer that the edge needs besides its origin says nothing any more."""

import asyncio
import json
import shutil
import socket
import sys
import urllib.request
from pathlib import Path

from edge import Setting
from ports import free_ports
from processes import within
from scenario import Scenario

DNS = Path(__file__).resolve().parent.parent / "support/dns.py"
TIMED_OUT = "could not be resolved (110: Operation timed out)"


async def start_dns(stage):
    stage.edge.places["dns"], = free_ports(1)
    (stage.edge.room / "records").write_text("app.test A 127.0.0.1 TTL=1\n")
    await stage.start("dns", sys.executable, DNS, f"127.0.0.1:{stage.edge.places['dns']}", "records", "dns.log", prints=True)


async def dns_gone(stage):
    """The group keeps its addresses; a name of a request gets 502 once its answer is too old."""
    edge, number = stage.edge, 0

    async def by_name():
        nonlocal number
        number += 1
        return (await edge.ask(f"/by/{number}", 5))[0]
    assert await by_name() == 200, "the name of a request is not resolved"
    stage.signal("dns", "STOP")
    async with asyncio.timeout(20):
        while (status := await by_name()) == 200:
            await asyncio.sleep(0.1)
    assert status == 502, f"status {status} while the name server is silent"
    assert TIMED_OUT in edge.log(), f"the log lacks {TIMED_OUT}"
    await stage.load.run_for(2)
    stage.signal("dns", "CONT")
    async with asyncio.timeout(20):
        while await by_name() != 200:
            await asyncio.sleep(0.1)


async def start_redis(stage):
    stage.edge.places["redis"], = free_ports(1)
    await stage.start("redis", "redis-server", "--port", stage.edge.places["redis"], "--bind", "127.0.0.1", "--save", "", "--appendonly", "no")
    await within("redis-server listens", 10, lambda: answers(stage.edge.places["redis"]))


def answers(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def purge(edge):
    """Orders a purge: the status."""
    request = urllib.request.Request(f"http://127.0.0.1:{edge.port}/purge", json.dumps({"key": "none"}).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return answer.status
    except urllib.error.HTTPError as answer:
        return answer.code


async def redis_hangs(stage):
    """Only the API of purges waits for Redis, and only for its `timeout`; a reload does not."""
    async def purged(wanted):
        async with asyncio.timeout(20):
            while (status := await asyncio.to_thread(purge, stage.edge)) not in wanted:
                await asyncio.sleep(0.1)
        return status
    await purged((200,))
    stage.signal("redis", "STOP")
    status = await purged((202, 503))
    await stage.load.run_for(2)
    await stage.edge.reload(10)
    await stage.load.run_for(1)
    stage.signal("redis", "CONT")
    await purged((200,))
    stage.notes.append(f"a purge gets {status} while Redis hangs, and 200 afterwards")


async def start_authority(stage):
    """An authority that accepts connections and says nothing."""
    await start_dns(stage)
    asked = stage.asked = []

    async def serve(reader, writer):
        asked.append(await reader.read(1))
        await reader.read()
        writer.close()
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    stage.servers.append(server)
    stage.edge.places["ca"] = server.sockets[0].getsockname()[1]
    stage.edge.places["tls"], = free_ports(1)
    (stage.edge.room / "acme").mkdir()
    (stage.edge.room / "acme").chmod(0o777)


async def authority_hangs(stage):
    await within("weir asks the authority", 20, lambda: stage.asked)
    await stage.load.run_for(2)
    await stage.edge.reload(10)
    await stage.load.run_for(1)
    stage.notes.append(f"{len(stage.asked)} connections to the authority")


def needs_redis():
    return None if shutil.which("redis-server") else "needs redis-server"


OWN = "weir's own"
RESOLVED = Setting(
    upstream="zone origin 64k; server app.test:{origin} resolve;",
    http="resolver 127.0.0.1:{dns} valid=1s ipv6=off; resolver_timeout 1s;",
    server="location /by/ { set $name app.test; proxy_pass http://$name:{origin}; }")
PURGED = Setting(
    http="cache_purge_log redis://127.0.0.1:{redis} edge=lasting timeout=1s;",
    server="location = /purge { cache_purge_api; allow 127.0.0.1; deny all; }")
CERTIFIED = Setting(
    http="""resolver 127.0.0.1:{dns}; acme_issuer silent { uri https://127.0.0.1:{ca}/directory; state_path ROOM/acme; ssl_verify off; accept_terms_of_service; }""",
    more="""server { listen 127.0.0.1:{tls} ssl; server_name a.test; acme_certificate silent; ssl_certificate $acme_certificate;
                     ssl_certificate_key $acme_certificate_key; }""")

SCENARIOS = [
    Scenario("dns-gone", "the name server is silent: `server … resolve` keeps its addresses, a name of a request gets 502 after `valid=`, and 200 again", dns_gone,
             setting=RESOLVED, prepare=start_dns),
    Scenario("redis-hangs", "the Redis of the purge log is stopped, and weir is reloaded meanwhile", redis_hangs, setting=PURGED, prepare=start_redis,
             needs=needs_redis, only_weir=OWN),
    Scenario("ca-hangs", "the authority of ACME accepts connections and says nothing, and weir is reloaded meanwhile", authority_hangs, setting=CERTIFIED,
             prepare=start_authority, only_weir=OWN),
]
