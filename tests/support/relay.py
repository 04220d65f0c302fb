"""Takes TLS off: relay.py LISTEN ORIGIN NAME, with NAME.pem and NAME.key. Bytes pass as they come, both ways.

Ends at SIGQUIT, as the servers of the scripts do.
"""

import signal
import socket
import ssl
import sys
import threading


def address(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def pump(source, sink):
    try:
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        for side in (source, sink):
            side.close()


def serve(client, origin, context):
    try:
        inner = context.wrap_socket(client, server_side=True)
        outer = socket.create_connection(origin)
    except OSError:
        client.close()
        return
    threading.Thread(target=pump, args=(inner, outer), daemon=True).start()
    pump(outer, inner)


def main():
    listen, origin, name = sys.argv[1:]
    signal.signal(signal.SIGQUIT, lambda *_: sys.exit(0))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(f"{name}.pem", f"{name}.key")
    listener = socket.create_server(address(listen))
    print("ready", flush=True)
    while True:
        client, _ = listener.accept()
        threading.Thread(target=serve, args=(client, address(origin), context), daemon=True).start()


main()
