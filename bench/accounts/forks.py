"""A process for each connection. Port: the first argument."""

import socketserver
import sys


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        self.rfile.readline()
        total = sum(number * number for number in range(60_000))
        self.wfile.write(b"HTTP/1.0 200 OK\r\n\r\n%d" % total)


class Server(socketserver.ForkingMixIn, socketserver.TCPServer):
    allow_reuse_address = True
    request_queue_size = 64


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
