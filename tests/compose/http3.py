"""One request over HTTP/3, on a connection of its own."""
import asyncio
import contextlib
import ssl

import aioquic.asyncio.protocol
import aioquic.h3.connection
import aioquic.h3.events
import aioquic.quic.configuration
import aioquic.quic.connection
import aioquic.quic.events

# Fields that belong to a connection of HTTP/1 (RFC 9114, section 4.2), and those that this client says in another way.
HOPS = ("connection", "upgrade", "keep-alive", "transfer-encoding", "http2-settings", "expect", "host")


class Stream(aioquic.asyncio.protocol.QuicConnectionProtocol):
    """Fills the record of the one request."""

    def __init__(self, quic, record, arrived):
        super().__init__(quic)
        self.link = aioquic.h3.connection.H3Connection(quic)
        # aioquic compares the length of an answer to HEAD with its body.
        self.link._check_content_length = lambda stream: None
        self.record, self.arrived, self.is_over = record, arrived, asyncio.Event()

    def quic_event_received(self, event):
        match event:
            case aioquic.quic.events.ConnectionTerminated():
                if self.record["end"] == "cut short" and event.error_code != aioquic.h3.connection.ErrorCode.H3_NO_ERROR:
                    self.record["end"] = "gone"
                    self.record["malformed"] = event.reason_phrase
                self.is_over.set()
            case aioquic.quic.events.StreamReset(stream_id=0):
                self.record["end"] = "reset"
                self.is_over.set()
            case _:
                for news in self.link.handle_event(event):
                    self.take(news)

    def take(self, news):
        record = self.record
        match news:
            case aioquic.h3.events.HeadersReceived(stream_id=0):
                fields = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in news.headers]
                status = dict(fields).get(":status")
                if status is None:
                    record["trailers"] = "\n".join(f"{name}: {value}" for name, value in fields)
                elif status.startswith("1"):
                    record["before"].append(" ".join(["HTTP/3", *(f"{name}: {value}" for name, value in fields)]))
                else:
                    record["status"] = f"HTTP/3 {status}"
                    record["headers"] = [(name, value) for name, value in fields if not name.startswith(":")]
            case aioquic.h3.events.DataReceived(stream_id=0):
                record["body"] += news.data
                if news.data:
                    self.arrived(news.data)
            case _:
                return
        if news.stream_ended:
            record["end"] = "ended"
            self.is_over.set()


def head(ask, number, host):
    target = ask.target if ask.target.startswith(("/", "*")) else "/" + ask.target.split("/", 3)[-1]
    fields = [(":method", ask.method), (":scheme", "https"), (":authority", host), (":path", target)]
    fields += [(name.lower(), value) for name, value in ask.fields if name.lower() not in HOPS] + [("x-n", number)]
    if ask.body is not None and not ask.is_chunked:
        fields.append(("content-length", str(len(ask.body))))
    return encoded(fields)


def encoded(fields):
    return [(name.encode("latin-1"), value.encode("latin-1")) for name, value in fields]


async def exchange(ask, number, port, record, arrived, late_s):
    """Asks, and fills the record; `arrived` gets the bytes of the body."""
    host = ask.given("Host") or "x.test"
    settings = aioquic.quic.configuration.QuicConfiguration(
        is_client=True, alpn_protocols=aioquic.h3.connection.H3_ALPN, verify_mode=ssl.CERT_NONE, server_name=host.partition(":")[0] or "x.test")
    quic = aioquic.quic.connection.QuicConnection(configuration=settings)
    wire, stream = await asyncio.get_running_loop().create_datagram_endpoint(lambda: Stream(quic, record, arrived), local_addr=("127.0.0.1", 0))
    try:
        stream.connect(("127.0.0.1", port))
        await stream.wait_connected()
        stream.link.send_headers(0, head(ask, number, host), end_stream=ask.body is None)
        if ask.is_late:
            stream.transmit()
            await asyncio.sleep(late_s)
        # aioquic takes no more of a body whose stream the edge has stopped, or whose answer is whole.
        with contextlib.suppress(RuntimeError, aioquic.h3.connection.FrameUnexpected):
            if ask.body is not None:
                stream.link.send_data(0, ask.body, end_stream=not ask.trailers)
                if ask.trailers:
                    stream.link.send_headers(0, encoded([(name.lower(), value) for name, value in ask.trailers]), end_stream=True)
        stream.transmit()
        await stream.is_over.wait()
    finally:
        stream.close()
        wire.close()
