"""A canary of the same file beside the edge: it must change nothing that a client, an origin or a log sees."""
import asyncio
import json
import subprocess
import zlib

# Seconds for the beginning and for the end.
PATIENCE_S = 6


class Canary:
    """The canary of the edge in a room. All requests have one address: nearly always its client gets the second configuration."""

    def __init__(self, weir, room):
        self.weir, self.room, self.promotes, self.orders = weir, room, False, []

    async def begin(self, text):
        """Starts it on this text; what weir says if it does not start."""
        self.promotes = bool(zlib.crc32(text.encode("latin-1")) & 1)
        (self.room / "canary.conf").write_text(text, "latin-1")
        def is_split(state):
            return state["phase"] == "running" and state["workers"] > 0

        return await self.order(is_split, self.room / "canary.conf", "--share", "99%", "--look", "1s", "--anyway")

    async def decide(self):
        """Promotes it or rolls it back."""
        end = "promoted" if self.promotes else "rolled_back"
        return await self.order(lambda state: state["phase"] == end, "promote" if self.promotes else "rollback")

    async def order(self, is_done, *words):
        words = [self.weir, "canary", *words, "-p", self.room, "-c", self.room / "nginx.conf"]
        order = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.orders.append(order)
        for _ in range(int(PATIENCE_S / 0.004)):
            state = self.state()
            if state and is_done(state):
                return None
            if order.poll():
                break
            await asyncio.sleep(0.004)
        order.kill()
        return f"canary {words[2]}: {order.stdout.read()}"

    def state(self):
        """The state that the keeper writes."""
        try:
            return json.loads((self.room / "nginx.pid.canary").read_bytes())["canary"]
        except FileNotFoundError:
            return None

    def stop(self):
        for order in self.orders:
            order.kill()
            order.wait()
            order.stdout.close()
        self.orders = []
        (self.room / "nginx.pid.canary").unlink(missing_ok=True)
