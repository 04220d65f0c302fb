"""Connections that live long: WebSockets that get numbered frames back, and sessions of TCP that get numbered lines back."""

import asyncio
import base64
import os

from http1 import Client, head

# Between two frames.
PAUSE = 0.02


class Ended(Exception):
    """The connection ended, or something else came back."""


class Live(Client):
    """A connection that stays: its end is a loss, and the client opens another one."""

    def __init__(self, load, kind):
        super().__init__(load, kind)
        self.wire, self.number = None, 0

    async def turn(self):
        self.number += 1
        try:
            async with asyncio.timeout(self.load.patience):
                if self.wire is None:
                    self.wire = await self.connect()
                await self.echo(b"%d" % self.number)
            self.served()
        except TimeoutError:
            self.lose(f"number {self.number} did not come back in {self.load.patience} s")
        except (Ended, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            self.lose(f"ended at number {self.number}: {type(error).__name__} {error}")
        await asyncio.sleep(PAUSE)

    def lose(self, why):
        self.load.lose(self.account(), self.kind, why)
        self.close()

    def close(self):
        if self.wire:
            self.wire[1].close()
            self.wire = None


class Socket(Live):
    """A WebSocket."""

    def account(self):
        return self.load.tally.sockets

    async def connect(self):
        reader, writer = await asyncio.open_connection("127.0.0.1", self.load.edge.port)
        key = base64.b64encode(os.urandom(16)).decode()
        writer.write(f"GET /socket HTTP/1.1\r\nHost: lasting\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                     f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode())
        status, _ = head(await reader.readuntil(b"\r\n\r\n"))
        self.load.edge.heads[status] += 1
        if status != 101:
            writer.close()
            raise Ended(f"status {status}")
        return reader, writer

    async def echo(self, text):
        reader, writer = self.wire
        mask = os.urandom(4)
        writer.write(bytes([0x81, 0x80 | len(text)]) + mask + bytes(byte ^ mask[at % 4] for at, byte in enumerate(text)))
        kind, length = await reader.readexactly(2)
        came = await reader.readexactly(length)
        if (kind, came) != (0x81, text):
            raise Ended(f"frame {kind:#x} {came} came back")
        self.load.tally.frames += 1


class Session(Live):
    """A session of TCP through `stream`."""

    def account(self):
        return self.load.tally.sessions

    async def connect(self):
        wire = await asyncio.open_connection("127.0.0.1", self.load.edge.tcp)
        self.load.tally.opened += 1
        return wire

    async def echo(self, text):
        reader, writer = self.wire
        writer.write(text + b"\n")
        line = await reader.readuntil(b"\n")
        if line != text + b"\n":
            raise Ended(f"{line} came back")
        self.load.tally.lines += 1
