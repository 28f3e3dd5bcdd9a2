"""A server with TLS that sends a stream in pieces and ends it in every way that a server, a proxy or a network has."""

from __future__ import annotations

import contextlib
import random
import socket
import ssl
import struct
import threading
import time
from collections.abc import Iterator

_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
_RESET = struct.pack("ii", 1, 0)
_PART_OF_A_RECORD = b"\x17\x03\x03\x10\x00abc"
ENDINGS = ("end and keep", "end and part", "part", "close", "reset", "broken record", "half closed")


@contextlib.contextmanager
def cutting_server(tls: ssl.SSLContext, seed: int) -> Iterator[int]:
    """Its port. Each client has a thread, and luck of its own."""
    luck = random.Random(seed)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:

        def accept() -> None:
            with contextlib.suppress(OSError):  # closed
                while True:
                    client, _ = listener.accept()
                    threading.Thread(target=_serve, args=(client, tls, luck.random()), daemon=True).start()

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield listener.getsockname()[1]
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def _serve(plain: socket.socket, tls: ssl.SSLContext, seed: float) -> None:
    luck = random.Random(seed)
    with contextlib.suppress(OSError), tls.wrap_socket(plain, server_side=True) as client:
        client.settimeout(5.0)
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        while client.recv(65536):  # the same connection may be used again
            client.sendall(_HEAD)
            for _ in range(luck.choice([0, 1, 2, 5, 20])):
                piece = b"x" * luck.choice([1, 1_000, 20_000, 200_000]) + b"\n"
                client.sendall(b"%x\r\n%b\r\n" % (len(piece), piece))
                time.sleep(luck.choice([0, 0, 0.0005, 0.002]))
            if not _end(client, luck.choice(ENDINGS)):
                return


def _end(client: ssl.SSLSocket, how: str) -> bool:
    """Whether the connection goes on."""
    if how.startswith("end"):
        client.sendall(b"0\r\n\r\n")
    if how == "end and keep":
        return True
    if how.endswith("part"):
        client.unwrap()
        return False
    with socket.socket(fileno=client.detach()) as bare:  # without the goodbye of TLS
        if how == "reset":
            bare.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        elif how == "broken record":
            bare.sendall(_PART_OF_A_RECORD)
        elif how == "half closed":
            bare.shutdown(socket.SHUT_WR)
            time.sleep(0.05)
    return False
