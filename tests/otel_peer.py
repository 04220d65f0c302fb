"""otel_peer.py PORT HTTP_PORT [CERTIFICATE KEY]: an OpenTelemetry collector of grpcio and OpenTelemetry's own protobuf
classes, over gRPC and over HTTP; with a certificate both are TLS. Prints "ready", then a line of JSON for each export.

Over HTTP, a path that ends in /busy/ is answered 503 the first time; one that ends in /no/, 400.
"""
import concurrent.futures
import http.server
import json
import ssl
import sys
import threading

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2 as messages
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc as service

lock = threading.Lock()


def plain(value):
    """An AnyValue as Python has it."""
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [plain(one) for one in value.array_value.values]
    return getattr(value, kind)


def attributes(of):
    return {one.key: plain(one.value) for one in of}


def shown(span):
    return {
        "name": span.name,
        "trace": span.trace_id.hex(),
        "span": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "state": span.trace_state,
        "kind": span.kind,
        "start": span.start_time_unix_nano,
        "end": span.end_time_unix_nano,
        "status": span.status.code,
        "attributes": attributes(span.attributes),
        "events": [
            {"name": e.name, "time": e.time_unix_nano, "attributes": attributes(e.attributes)} for e in span.events
        ],
    }


def tell(request, by, fields):
    (resource,) = request.resource_spans
    (scope,) = resource.scope_spans
    line = {
        "by": by,
        "fields": fields,
        "resource": attributes(resource.resource.attributes),
        "scope": scope.scope.name,
        "spans": [shown(span) for span in scope.spans],
    }
    with lock:
        print(json.dumps(line), flush=True)


class Traces(service.TraceServiceServicer):
    def Export(self, request, context):
        tell(request, "grpc", dict(context.invocation_metadata()))
        return messages.ExportTraceServiceResponse()


class Posts(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    was_busy = False

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 200
        if self.path.endswith("/no/"):
            status = 400
        elif self.path.endswith("/busy/") and not Posts.was_busy:
            Posts.was_busy, status = True, 503
        if status == 200:
            assert self.headers["Content-Type"] == "application/x-protobuf"
            tell(messages.ExportTraceServiceRequest.FromString(body), self.path, dict(self.headers))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


port, http_port = int(sys.argv[1]), int(sys.argv[2])
server = grpc.server(concurrent.futures.ThreadPoolExecutor(4))
service.add_TraceServiceServicer_to_server(Traces(), server)
posts = http.server.ThreadingHTTPServer(("127.0.0.1", http_port), Posts)
if len(sys.argv) > 3:
    certificate, key = sys.argv[3:5]
    pair = (open(key, "rb").read(), open(certificate, "rb").read())
    server.add_secure_port(f"127.0.0.1:{port}", grpc.ssl_server_credentials([pair]))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    posts.socket = context.wrap_socket(posts.socket, server_side=True)
else:
    server.add_insecure_port(f"127.0.0.1:{port}")
server.start()
threading.Thread(target=posts.serve_forever, daemon=True).start()
print("ready", flush=True)
server.wait_for_termination()
