"""A thread for each connection. Port: the first argument."""

import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        total = sum(number * number for number in range(60_000))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(total).encode())

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
