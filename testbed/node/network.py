"""The node's own network: a bridge for pods that leads nowhere, names of services, and one way in from the machine."""

from __future__ import annotations

import asyncio
import socket
import struct
import subprocess
import threading
from pathlib import Path

from testbed.api import Api, ApiError

NODE_IP = "10.244.0.1"
POD_NETWORK = "10.244.0.0/24"
BRIDGE = "cni0"
DOMAIN = "cluster.local"
PORT = 53
TTL_S = 5
TYPE_A, CLASS_IN = 1, 1
NO_SUCH_NAME, SERVER_FAILED = 3, 2
CHUNK = 256 * 1024


def make_network() -> None:
    """A network that leads nowhere: loopback, and the bridge that pods are put on."""
    for command in (
        "link set lo up",
        f"link add {BRIDGE} type bridge",
        f"addr add {NODE_IP}/24 dev {BRIDGE}",
        f"link set {BRIDGE} up",
        f"route add default dev {BRIDGE}",  # else programs of the node itself could not ask for a service
    ):
        subprocess.run(["ip", *command.split()], check=True, capture_output=True)
    for setting in ("ipv4/ip_forward", "bridge/bridge-nf-call-iptables"):
        Path("/proc/sys/net", setting).write_text("1")


def serve_names(address: str, api: Api) -> None:
    """In a thread, for as long as the process lives."""
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((address, PORT))
    threading.Thread(target=_answer_all, args=(server, api), daemon=True).start()


def _answer_all(server: socket.socket, api: Api) -> None:
    while True:
        query, client = server.recvfrom(4096)
        server.sendto(answer(query, api), client)


def answer(query: bytes, api: Api) -> bytes:
    """The reply to one question, as RFC 1035 lays it out."""
    name, end = _name(query)
    kind = struct.unpack_from("!H", query, end)[0]
    question = query[12 : end + 4]
    try:
        address = _address(name, api)
    except (OSError, ApiError) as error:
        missing = isinstance(error, ApiError) and error.status == 404
        return _header(query, NO_SUCH_NAME if missing else SERVER_FAILED, 0) + question
    if address is None:
        return _header(query, NO_SUCH_NAME, 0) + question
    if kind != TYPE_A:  # the name exists, but not with an address of that kind
        return _header(query, 0, 0) + question
    record = struct.pack("!HHHIH", 0xC00C, TYPE_A, CLASS_IN, TTL_S, 4) + socket.inet_aton(address)
    return _header(query, 0, 1) + question + record


def _address(name: str, api: Api) -> str | None:
    service = name.removesuffix(f".svc.{DOMAIN}")
    if service == name or service.count(".") != 1:
        return None
    own_name, namespace = service.split(".")
    found: str = api.get(f"/api/v1/namespaces/{namespace}/services/{own_name}")["spec"]["clusterIP"]
    return found if found != "None" else None


def _name(query: bytes) -> tuple[str, int]:
    """The name that is asked for, and where it ends."""
    labels, position = [], 12
    while length := query[position]:
        labels.append(query[position + 1 : position + 1 + length].decode("ascii", "replace"))
        position += 1 + length
    return ".".join(labels).lower(), position + 1


def _header(query: bytes, code: int, answers: int) -> bytes:
    flags = 0x8480 | (query[2] & 1) << 8 | code  # an authoritative answer; recursion "available" where it was asked for
    return query[:2] + struct.pack("!HHHHH", flags, 1, answers, 0, 0)


def relay(listener: socket.socket, port: int) -> None:
    """In a thread, for as long as the process lives."""
    threading.Thread(target=asyncio.run, args=(_relay(listener, port),), daemon=True).start()


async def _relay(listener: socket.socket, port: int) -> None:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            there = await asyncio.open_connection("127.0.0.1", port)
        except OSError:  # the API server is down: then this connection ends, too
            writer.transport.abort()
            return
        try:
            await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))
        except OSError:
            pass
        finally:
            writer.transport.abort()
            there[1].transport.abort()

    server = await asyncio.start_server(carry, sock=listener)
    await server.serve_forever()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(CHUNK):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
