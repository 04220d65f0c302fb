"""nginx and weir side by side: each with its origins and its client, in a network of its own with the same addresses."""
import os
import pickle
import re
import struct
import subprocess
import sys
import tempfile

import edge
import grammar

HERE = os.path.dirname(os.path.abspath(__file__))
PLACE = re.compile(r" in \S*nginx\.conf:(\d+)")
UNKNOWN = re.compile(r'unknown directive "(\S+)"')
# Statements that a file may lose before nginx takes it.
REPAIRS = 40


class Lost(Exception):
    """A side ended."""


class Side:
    def __init__(self, binary, room, pair, *more):
        words = ["unshare", *([] if os.geteuid() == 0 else ["-r"]), "-m", "-n", "-p", "-f", "--mount-proc", "--kill-child", sys.executable, os.path.join(HERE, "side.py")]
        self.process = subprocess.Popen([*words, os.path.realpath(binary), room, pair, *more], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def tell(self, *command):
        data = pickle.dumps(command)
        self.process.stdin.write(struct.pack(">I", len(data)) + data)
        self.process.stdin.flush()

    def hear(self):
        size = self.process.stdout.read(4)
        if len(size) < 4:
            raise Lost("a side of the comparison ended; its message is above")
        return pickle.loads(self.process.stdout.read(struct.unpack(">I", size)[0]))

    def close(self):
        self.process.stdin.close()
        self.process.terminate()
        self.process.wait()


def refusal(verdict):
    """The line with which an edge refuses the file."""
    return next((line for line in verdict.split("\n") if "[emerg]" in line), verdict)


class Pair:
    """Both sides. `with` ends them."""

    def __init__(self, nginx, weir, added="", has_canary=False):
        # A statement of `http` for weir alone: it must change nothing that a client, an origin or a log sees.
        self.added = added
        self.folder = tempfile.TemporaryDirectory(prefix="compose.")
        self.room = self.folder.name + "/room"
        os.mkdir(self.room)
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30", "-subj", "/CN=x.test", "-keyout", self.folder.name + "/key.pem", "-out", self.folder.name + "/cert.pem"], check=True, capture_output=True)
        # Words that nginx said it does not have: they depend on nothing but its build.
        self.absent = set()
        self.sides = [Side(nginx, self.room, self.folder.name), Side(weir, self.room, self.folder.name, *["canary"] * has_canary)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for side in self.sides:
            side.close()
        self.folder.cleanup()

    def whole(self, tree):
        """The text of the file, and the place of the statement of each line."""
        lines = [*(edge.FRAME.replace("@USER@", "user root;") + "http {\n" + edge.HTTP).split("\n")[:-1]]
        places, is_open = {}, True
        for line, place in grammar.written(tree, 1):
            if is_open and tree[place[0]].name == "stream":
                lines.append("}")
                is_open = False
            lines.append(line)
            places[len(lines)] = place
        return "\n".join(lines + ["}"] * is_open) + "\n", places

    def start(self, text):
        """Starts both; what each says if it does not start."""
        for number, side in enumerate(self.sides):
            side.tell("start", self.of(number, text))
        return [side.hear() for side in self.sides]

    def start_one(self, number, text):
        self.sides[number].tell("start", self.of(number, text))
        return self.sides[number].hear()

    def of(self, number, text):
        """The text for a side. The added statement takes no line, so that places in messages stay."""
        return text.replace("http {\n", f"http {{ {self.added}\n", 1) if number and self.added else text

    def stop(self, verdicts):
        for side, verdict in zip(self.sides, verdicts):
            if verdict is None:
                side.tell("stop")
                side.hear()

    def repaired(self, tree):
        """The file without the statements that nginx refuses; the refusals; both verdicts, and both edges run if they took the file."""
        tree, refusals = grammar.only(tree, lambda statement: statement.name not in self.absent), []
        while True:
            text, lines = self.whole(tree)
            # Only a file that nginx takes is one for both.
            verdict = self.start_one(0, text)
            found = PLACE.search(refusal(verdict or ""))
            if not verdict or len(refusals) >= REPAIRS or not found or int(found[1]) not in lines:
                return tree, refusals, [verdict, self.start_one(1, text)]
            place = lines[int(found[1])]
            refusals.append((grammar.at(tree, place), verdict))
            if word := UNKNOWN.search(refusal(verdict)):
                self.absent.add(word[1])
                tree = grammar.only(tree, lambda statement: statement.name not in self.absent)
            else:
                tree = grammar.without(tree, {place})

    def play(self, asks, streams=()):
        for side in self.sides:
            side.tell("play", list(asks), list(streams))
        return [side.hear() for side in self.sides]
