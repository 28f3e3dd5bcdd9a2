"""A name that only a cluster knows, for a program outside of one: an HTTP proxy that sends it where the test says."""

from __future__ import annotations

import threading
from http.client import HTTPConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import NamedTuple, Self
from urllib.parse import urlsplit


class Asked(NamedTuple):
    """One request as the client wrote it."""

    url: str
    body: bytes


class NamedHosts:
    """`HTTP_PROXY` for a client; requests for any other host than `name` are refused."""

    def __init__(self, name: str, port: int) -> None:
        self.asked: list[Asked] = []
        hosts = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                url = urlsplit(self.path)
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hosts.asked.append(Asked(self.path, body))
                status, answer = 502, b""
                if url.netloc == name:
                    connection = HTTPConnection("127.0.0.1", port, timeout=30)
                    try:
                        connection.request("POST", url.path, body, {"Content-Type": self.headers["Content-Type"]})
                        reply = connection.getresponse()
                        status, answer = reply.status, reply.read()
                    except OSError:
                        status = 502
                    finally:
                        connection.close()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, format: str, *args: object) -> None:
                """Tests look at `asked`."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
