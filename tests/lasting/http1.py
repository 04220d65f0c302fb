"""Clients of HTTP/1.1: one exchange at a time."""

import asyncio

import answers


class Unanswered(Exception):
    """The connection ended before the first byte of the answer."""


class Cut(Exception):
    """The answer ended before its end, or is no answer."""


class Connection:
    """A connection of a client."""

    def __init__(self, reader, writer, heads):
        self.reader, self.writer, self.heads, self.exchanges, self.is_open = reader, writer, heads, 0, True

    @classmethod
    async def connect(cls, edge):
        return cls(*await asyncio.open_connection("127.0.0.1", edge.port, limit=1 << 20), edge.heads)

    async def ask(self, method, path, body=b"", pause=0):
        """One exchange: the status, the fields and the body of the answer."""
        length = f"Content-Length: {len(body)}\r\n" if body else ""
        try:
            self.writer.write(f"{method} {path} HTTP/1.1\r\nHost: lasting\r\n{length}\r\n".encode() + body)
            first = await self.reader.readexactly(1)
        except (ConnectionError, asyncio.IncompleteReadError) as error:
            raise Unanswered(type(error).__name__) from error
        try:
            status, fields = head(first + await self.reader.readuntil(b"\r\n\r\n"))
            self.heads[status] += 1
            answer = await self.body(fields, pause)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError) as error:
            raise Cut(type(error).__name__) from error
        self.exchanges += 1
        self.is_open = fields.get("connection", "").lower() != "close"
        return status, fields, answer

    async def body(self, fields, pause):
        if "content-length" not in fields:
            return await self.chunks()
        pieces, left = [], int(fields["content-length"])
        while left:
            piece = await self.reader.read(min(left, 65536))
            if not piece:
                raise Cut(f"{left} bytes are missing")
            pieces.append(piece)
            left -= len(piece)
            if pause:
                await asyncio.sleep(pause)
        return b"".join(pieces)

    async def chunks(self):
        pieces = []
        while size := int((await self.reader.readuntil(b"\r\n"))[:-2], 16):
            pieces.append((await self.reader.readexactly(size + 2))[:-2])
        await self.reader.readuntil(b"\r\n")
        return b"".join(pieces)

    def close(self):
        self.writer.close()


def head(data):
    """The status and the fields of an answer's head."""
    line, *lines = data.decode("latin-1")[:-4].split("\r\n")
    version, status = line.split(" ")[:2]
    if version != "HTTP/1.1":
        raise ValueError(line)
    return int(status), {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in lines)}


class Client:
    """A client of the load: it goes on until the load is over."""

    # Exchanges under way at one time.
    at_once = 1

    def __init__(self, load, kind):
        self.load, self.kind, self.is_over, self.has_ended, self.turns = load, kind, False, False, 0
        self.turned = asyncio.Event()

    async def run(self):
        try:
            while not self.load.is_over and not self.is_over:
                await self.turn()
        finally:
            self.is_over = self.has_ended = True
            self.turned.set()
            self.close()

    def served(self):
        """An exchange has ended well."""
        self.turns += 1
        self.turned.set()

    async def serves_again(self):
        """Waits for two exchanges that end well: the second has begun after this call."""
        until = self.turns + 2
        while self.turns < until and not self.is_over:
            self.turned.clear()
            try:
                await asyncio.wait_for(self.turned.wait(), 2 * self.load.patience)
            except TimeoutError:
                return self.load.lose(self.load.tally.lost, self.kind, "is not served any more")

    def close(self):
        pass


class Kept(Client):
    """A client that keeps its connection."""

    method, pause, slowness = "GET", 0.005, 0

    def __init__(self, load, kind):
        super().__init__(load, kind)
        self.connection = None

    def request(self):
        """The path, the body, and the right answer."""
        path = f"/work/{self.load.next()}"
        return path, b"", answers.answer(path)

    async def turn(self):
        path, body, right = self.request()
        self.load.tally.requests += 1
        try:
            async with asyncio.timeout(self.load.patience):
                fault = await self.exchange(path, body, right)
        except TimeoutError:
            fault = f"no whole answer in {self.load.patience} s to {path}"
        if fault is None:
            self.served()
        elif fault:
            self.load.lose(self.load.tally.lost, self.kind, fault)
        if fault is not None:
            self.close()
            # A client that is refused does not try again at once.
            await asyncio.sleep(0.02)
        await asyncio.sleep(self.pause)

    async def exchange(self, path, body, right):
        """Why the request is lost; `None` if it is not, and an empty text if it was refused."""
        while True:
            had = self.connection.exchanges if self.connection else 0
            try:
                if self.connection is None:
                    self.connection = await Connection.connect(self.load.edge)
                status, _, answer = await self.connection.ask(self.method, path, body, self.slowness)
                break
            except Unanswered as error:
                self.close()
                if await self.load.has_seen(path):
                    return f"closed without an answer ({error}) to {path}, which the origin had"
                if "closed" in self.load.allows:
                    self.load.tally.refused["closed"] += 1
                    return ""
                if not had:
                    return f"closed without an answer ({error}) to {path}, on a new connection"
                self.load.tally.reopened += 1
            except Cut as error:
                return f"the answer to {path} is cut: {error}"
            except OSError as error:
                return f"no connection: {error}"
        if not self.connection.is_open:
            self.close()
        if status >= 500 and "status" in self.load.allows:
            self.load.tally.refused[status] += 1
            return ""
        if status != 200:
            return f"status {status} to {path}"
        return None if answer == right else f"another body to {path}: {answer[:60]}"

    def close(self):
        if self.connection:
            self.connection.close()
            self.connection = None


class Fresh(Kept):
    """A client that opens a connection for each request."""

    async def turn(self):
        await super().turn()
        self.close()


class Cached(Kept):
    """A client that asks for one of ten answers, which the cache keeps for a second. The key is without the query, so only the first request
    of a second reaches the origin."""

    pause = 0.01

    def request(self):
        path = f"/cached/{self.load.next() % 10}"
        return f"{path}?{self.load.next()}", b"", answers.answer(path)


class Upload(Kept):
    """A client that uploads 64 KiB now and then."""

    method, pause = "PUT", 0.1

    def request(self):
        path = f"/upload/{self.load.next()}"
        body = (path.encode() * 65536)[:65536]
        return path, body, answers.receipt(path, body)


class Large(Kept):
    """A client that reads a large answer slowly: the edge has to put it somewhere."""

    slowness = 0.01

    def request(self):
        path = f"/large/{self.load.next()}"
        return path, b"", answers.answer(path)
