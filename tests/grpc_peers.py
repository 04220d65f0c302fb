#!/usr/bin/env python3
"""A gRPC server and a client, both grpcio's, for tests/grpc.rs: messages are bytes, so that nothing is generated.

    grpc_peers.py server PORT [CERTIFICATE KEY]    serves weir.Test; prints "ready"
    grpc_peers.py client TARGET [CERTIFICATE]      runs every check against TARGET; prints a line each
"""

import sys
import threading
import time
from concurrent import futures

import grpc


def unary(request, context):
    context.set_trailing_metadata((("x-trailer", "behind"),))
    return request[::-1]


def fail(request, context):
    context.abort(grpc.StatusCode.FAILED_PRECONDITION, "no: " + request.decode())


def server_stream(request, context):
    for number in range(int(request)):
        yield b"%d" % number


def client_stream(requests, context):
    return b"%d" % sum(len(request) for request in requests)


def both(requests, context):
    for request in requests:
        yield request.upper()


cancelled = threading.Event()


def hang(request, context):
    context.add_callback(cancelled.set)
    yield b"begun"
    while context.is_active():
        time.sleep(0.01)


def was_cancelled(request, context):
    return b"yes" if cancelled.wait(5) else b"no"


def health(request, context):
    """grpc.health.v1.Health/Check, by hand: its two messages have one field each."""
    service = request[2:].decode()
    if service not in ("", "weir.Test", "weir.Sick"):
        context.abort(grpc.StatusCode.NOT_FOUND, "no such service")
    return b"\x08\x02" if service == "weir.Sick" else b"\x08\x01"


def serve(port, certificate=None, key=None):
    # Few streams a connection: calls that are under way together need several.
    options = [("grpc.max_concurrent_streams", 16)]
    server = grpc.server(futures.ThreadPoolExecutor(max_workers=64), options=options)
    handlers = {
        "Unary": grpc.unary_unary_rpc_method_handler(unary),
        "Fail": grpc.unary_unary_rpc_method_handler(fail),
        "ServerStream": grpc.unary_stream_rpc_method_handler(server_stream),
        "ClientStream": grpc.stream_unary_rpc_method_handler(client_stream),
        "Both": grpc.stream_stream_rpc_method_handler(both),
        "Hang": grpc.unary_stream_rpc_method_handler(hang),
        "WasCancelled": grpc.unary_unary_rpc_method_handler(was_cancelled),
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("weir.Test", handlers),))
    checks = {"Check": grpc.unary_unary_rpc_method_handler(health)}
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("grpc.health.v1.Health", checks),))
    if certificate:
        pair = (open(key, "rb").read(), open(certificate, "rb").read())
        bound = server.add_secure_port("127.0.0.1:" + port, grpc.ssl_server_credentials([pair]))
    else:
        bound = server.add_insecure_port("127.0.0.1:" + port)
    if bound == 0:
        sys.exit("no such port: " + port)
    server.start()
    print("ready", flush=True)
    server.wait_for_termination()


def same(what, got, wanted):
    if got != wanted:
        sys.exit("%s: %r, and not %r" % (what, got, wanted))
    print(what, flush=True)


def check(target, certificate=None):
    if certificate:
        credentials = grpc.ssl_channel_credentials(open(certificate, "rb").read())
        channel = grpc.secure_channel(target, credentials)
    else:
        channel = grpc.insecure_channel(target)
    name = "/weir.Test/"
    call = channel.unary_unary(name + "Unary")

    answer, done = call.with_call(b"abc", timeout=5)
    same("unary", answer, b"cba")
    same("trailers", dict(done.trailing_metadata()).get("x-trailer"), "behind")
    big = bytes(range(256)) * 4000
    same("unary of a megabyte", call(big, timeout=20), big[::-1])

    try:
        channel.unary_unary(name + "Fail")(b"why", timeout=5)
        sys.exit("a failure that did not fail")
    except grpc.RpcError as error:
        same("status", (error.code(), error.details()), (grpc.StatusCode.FAILED_PRECONDITION, "no: why"))

    stream = channel.unary_stream(name + "ServerStream")(b"1000", timeout=20)
    same("server streaming", [int(piece) for piece in stream], list(range(1000)))

    sent = channel.stream_unary(name + "ClientStream")(iter([b"x" * 1000] * 500), timeout=20)
    same("client streaming", sent, b"500000")

    # Each message goes out only when the answer to the one before it is here.
    turn = threading.Semaphore(1)

    def messages():
        for number in range(50):
            turn.acquire()
            yield b"message %d" % number

    answers = []
    for answer in channel.stream_stream(name + "Both")(messages(), timeout=20):
        answers.append(answer)
        turn.release()
    same("both ways in turn", answers, [b"MESSAGE %d" % number for number in range(50)])

    try:
        list(channel.unary_stream(name + "Hang")(b"", timeout=0.3))
        sys.exit("a deadline that did not come")
    except grpc.RpcError as error:
        same("deadline", error.code(), grpc.StatusCode.DEADLINE_EXCEEDED)
    asked = channel.unary_unary(name + "WasCancelled")
    same("the deadline ends it at the server", asked(b"", timeout=10), b"yes")

    hanging = channel.unary_stream(name + "Hang")(b"", timeout=20)
    same("a stream that hangs", next(hanging), b"begun")
    hanging.cancel()
    same("cancel", hanging.code(), grpc.StatusCode.CANCELLED)

    calls = [call.future(b"%d" % number, timeout=20) for number in range(200)]
    same("200 at once", [one.result() for one in calls], [(b"%d" % number)[::-1] for number in range(200)])


if __name__ == "__main__":
    {"server": serve, "client": check}[sys.argv[1]](*sys.argv[2:])
