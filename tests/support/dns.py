"""A DNS server over UDP and TCP: dns.py ADDRESS RECORDS LOG.

RECORDS is read anew for each question. A line is NAME TYPE DATA…: A and AAAA an address, CNAME a name, SRV the priority,
weight, port and name; SERVFAIL and SILENT instead of a type are what happens to any question for the name, TRUNCATED
sends who asks over UDP to TCP. All else is NXDOMAIN, or no data where the name is known. The time to live is TTL=N of a
line, or 60. LOG gets a line per question: udp|tcp NAME TYPE.
"""

import ipaddress
import signal
import socket
import struct
import sys
import threading

TYPES = {"A": 1, "CNAME": 5, "AAAA": 28, "SRV": 33}


def wire(name):
    return b"".join(bytes([len(label)]) + label.encode() for label in name.split(".")) + b"\0"


def data(kind, words):
    if kind in ("A", "AAAA"):
        return ipaddress.ip_address(words[0]).packed
    if kind == "CNAME":
        return wire(words[0])
    return struct.pack("!HHH", *map(int, words[:3])) + wire(words[3])


def answer(question, over, records, log):
    at, labels = 12, []
    while length := question[at]:
        labels.append(question[at + 1 : at + 1 + length].decode())
        at += 1 + length
    name, (kind,) = ".".join(labels).lower(), struct.unpack("!H", question[at + 1 : at + 3])
    with open(log, "a") as lines:
        lines.write(f"{over} {name} {next((word for word, code in TYPES.items() if code == kind), kind)}\n")
    with open(records) as lines:
        rows = [line.split() for line in lines if line.split() and line.split()[0] == name]
    words = {row[1] for row in rows}
    if "SILENT" in words:
        return None
    flags, found = 0x8180, []
    if "TRUNCATED" in words and over == "udp":
        flags |= 0x0200
    elif "SERVFAIL" in words:
        flags |= 2
    elif not rows:
        flags |= 3
    else:
        for row in rows:
            if row[1] in TYPES and (TYPES[row[1]] == kind or row[1] == "CNAME"):
                ttl = next((int(word[4:]) for word in row if word.startswith("TTL=")), 60)
                content = data(row[1], row[2:])
                found.append(wire(name) + struct.pack("!HHIH", TYPES[row[1]], 1, ttl, len(content)) + content)
    return question[:2] + struct.pack("!HHHHH", flags, 1, len(found), 0, 0) + question[12 : at + 5] + b"".join(found)


def serve_tcp(listener, records, log):
    while True:
        client, _ = listener.accept()
        with client:
            reply = answer(client.recv(4096)[2:], "tcp", records, log)
            if reply:
                client.sendall(struct.pack("!H", len(reply)) + reply)


def main():
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    address, records, log = sys.argv[1:]
    host, port = address.rsplit(":", 1)
    udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    udp.bind((host, int(port)))
    tcp = socket.create_server((host, int(port)))
    threading.Thread(target=serve_tcp, args=(tcp, records, log), daemon=True).start()
    print("ready", flush=True)
    while True:
        question, peer = udp.recvfrom(4096)
        reply = answer(question, "udp", records, log)
        if reply:
            udp.sendto(reply, peer)


main()
