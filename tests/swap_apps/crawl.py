"""Clients that use an application through an edge, and the access log of their requests."""
import datetime
import http.client
import random
import re
import time

# The fields of a request that the log has, after those of `combined`. `weir swap` reads them by this format.
NOTED = ["Accept-Encoding", "Range", "If-None-Match", "If-Modified-Since", "Cookie", "X-Forwarded-For"]
FORMAT = ('$remote_addr - - [$time_iso8601] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $host $msec '
          + " ".join(f'"$http_{name.lower().replace("-", "_")}"' for name in NOTED))
COMBINED = '$remote_addr - - [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent"'
AGENTS = ["Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0", "Mozilla/5.0 (Macintosh; Intel Mac OS X 15_0) AppleWebKit/605.1.15 Safari/605.1.15",
          "Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/141.0 Safari/537.36", "curl/8.11.0", "Googlebot/2.1 (+http://www.google.com/bot.html)"]
ANSWER_SECONDS = 30


class Traffic:
    """The requests of all visitors, in the order in which they were sent."""

    def __init__(self, port, host):
        self.port, self.host, self.lines, self.combined, self.statuses, self.visitors = port, host, [], [], {}, 0

    def visitor(self, **fields):
        # A recording knows clients by the first three numbers of their addresses.
        self.visitors += 1
        return Visitor(self, f"127.0.{self.visitors}.1", {"User-Agent": AGENTS[self.visitors % len(AGENTS)], "Accept-Encoding": "gzip, deflate, br", **fields})

    def note(self, visitor, method, target, fields, status, size):
        now, local = time.time(), datetime.datetime.now(datetime.timezone.utc)
        value = {name.lower(): text for name, text in fields.items()}
        begin, request = visitor.address, f'"{method} {target} HTTP/1.1" {status} {size}'
        ends = f'"{value.get("referer", "-")}" "{value["user-agent"]}"'
        more = " ".join('"' + value.get(name.lower(), "-").replace('"', "\\x22") + '"' for name in NOTED)
        self.lines.append(f'{begin} - - [{local.isoformat(timespec="seconds")}] {request} {ends} {self.host} {now:.3f} {more}')
        self.combined.append(f'{begin} - - [{local.strftime("%d/%b/%Y:%H:%M:%S +0000")}] {request} {ends}')
        self.statuses[status] = self.statuses.get(status, 0) + 1


class Visitor:
    """One client with an address and cookies of its own."""

    def __init__(self, traffic, address, fields):
        self.traffic, self.address, self.fields, self.cookies, self.last = traffic, address, fields, {}, None

    def get(self, target, method="GET", **more):
        """Sends a request, notes it, and returns the answer: status, fields, text."""
        fields = {"Host": self.traffic.host, **self.fields, **{name.replace("_", "-"): value for name, value in more.items()}}
        fields = {name: value for name, value in fields.items() if value is not None}
        if self.cookies:
            fields["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
        if self.last:
            fields["Referer"] = f"http://{self.traffic.host}{self.last}"
        connection = http.client.HTTPConnection("127.0.0.1", self.traffic.port, timeout=ANSWER_SECONDS, source_address=(self.address, 0))
        connection.request(method, target, None, fields)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        for name, value in answer.getheaders():
            if name.lower() == "set-cookie":
                key, _, content = value.partition(";")[0].partition("=")
                self.cookies[key] = content
        self.traffic.note(self, method, target, fields, answer.status, len(body))
        self.last = target
        return answer.status, answer.headers, body

    def page(self, target, links=3, seed=0):
        """Gets a page without compression, and follows some links of it on the same host."""
        status, _, body = self.get(target, Accept_Encoding=None)
        found = sorted({link.replace("&amp;", "&").replace("&#038;", "&") for link in re.findall(r'(?:href|src)=["\']([^"\'#]+)', body.decode(errors="replace"))})
        local = [re.sub(rf"^https?://{re.escape(self.traffic.host)}", "", link) for link in found]
        local = [link for link in local if link.startswith("/") and not link.startswith("//")]
        for link in random.Random(seed).sample(local, min(links, len(local))):
            self.get(link)
        return status
