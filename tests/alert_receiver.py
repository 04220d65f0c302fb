#!/usr/bin/env python3
"""A receiver of webhooks: it writes each request to a file, a JSON object a line, and answers 200 after some failures. It
answers 404 to /gone.

    alert_receiver.py PORT FILE [--fail N] [--certificate PEM --key PEM]
"""

import argparse, json, ssl
from http.server import BaseHTTPRequestHandler, HTTPServer

parser = argparse.ArgumentParser()
parser.add_argument('port', type=int)
parser.add_argument('file')
parser.add_argument('--fail', type=int, default=0, help='answer so many requests with 503')
parser.add_argument('--certificate')
parser.add_argument('--key')
chosen = parser.parse_args()


class Receiver(BaseHTTPRequestHandler):
    left = chosen.fail

    def do_POST(self):
        body = self.rfile.read(int(self.headers['Content-Length']))
        if self.path == '/gone':
            status = 404
        else:
            status = 503 if Receiver.left > 0 else 200
            Receiver.left -= 1
        with open(chosen.file, 'a') as out:
            out.write(json.dumps({'path': self.path, 'status': status, 'type': self.headers['Content-Type'],
                                  'body': json.loads(body)}) + '\n')
        self.send_response(status)
        self.send_header('Content-Length', '0')
        self.end_headers()

    def log_message(self, *_):
        pass


server = HTTPServer(('127.0.0.1', chosen.port), Receiver)
if chosen.certificate:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(chosen.certificate, chosen.key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
