"""Which pod holds which GPU: read from a real gRPC server on a socket, and from one that is none."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from grpclib.const import Status
from grpclib.exceptions import GRPCError
from grpclib.server import Stream
from hypothesis import given
from hypothesis import strategies as st

from joulie.sources.podresources import GpuHolder, list_gpu_holders
from joulie.sources.podresources.client import LIST
from joulie.sources.podresources.messages import gpu_holders
from joulie.sources.transport import SourceError
from tests.support.grpc_bytes import Answer, always, server
from tests.support.protobuf import field


def devices(resource: str, *ids: str) -> bytes:
    numa = field(3, field(1, field(1, 3)))
    return field(2, field(1, resource) + b"".join(field(2, name) for name in ids) + numa)


def claimed(driver: str, pool: str, device: str) -> bytes:
    return field(5, field(2, "claim") + field(4, field(2, driver) + field(3, pool) + field(4, device)))


def pod(namespace: str, name: str, *held: bytes) -> bytes:
    cpus = field(3, b"\x01\x02\x03")  # packed numbers
    return field(1, field(1, name) + field(2, namespace) + field(3, field(1, "main") + cpus + b"".join(held)))


ANSWER = b"".join(
    [
        pod("team-a", "train", devices("nvidia.com/gpu", "GPU-1", "GPU-2")),
        pod("team-a", "small", devices("nvidia.com/mig-1g.5gb", "MIG-7"), devices("intel.com/qat", "qat-0")),
        pod("team-b", "claims", claimed("gpu.nvidia.com", "node-1", "gpu-3"), claimed("nic.example", "node-1", "n")),
        pod("kube-system", "dns"),
        field(9, "of a newer version") + field(10, 300),
    ]
)
HOLDERS = [
    GpuHolder("team-a", "train", "main", "nvidia.com/gpu", "GPU-1"),
    GpuHolder("team-a", "train", "main", "nvidia.com/gpu", "GPU-2"),
    GpuHolder("team-a", "small", "main", "nvidia.com/mig-1g.5gb", "MIG-7"),
    GpuHolder("team-b", "claims", "main", "gpu.nvidia.com", "node-1/gpu-3"),
]


def asked(socket: Path, answer: Answer, timeout_s: float = 30.0) -> list[GpuHolder]:
    async def ask() -> list[GpuHolder]:
        kubelet = server({LIST: answer})
        await kubelet.start(path=str(socket))
        try:
            return await list_gpu_holders(str(socket), timeout_s)
        finally:
            kubelet.close()
            await kubelet.wait_closed()

    return asyncio.run(ask())


def test_gpus_of_plug_ins_and_of_claims_are_told_with_their_pods(tmp_path: Path) -> None:
    assert asked(tmp_path / "kubelet.sock", always(ANSWER)) == HOLDERS


def test_a_node_without_pods_has_no_holders(tmp_path: Path) -> None:
    assert asked(tmp_path / "kubelet.sock", always(b"")) == []


def test_an_answer_of_many_pods_comes_whole(tmp_path: Path) -> None:
    answer = ANSWER * 2_000  # more than one window of HTTP/2
    assert asked(tmp_path / "kubelet.sock", always(answer)) == HOLDERS * 2_000


async def refuse(_stream: Stream[bytes, bytes]) -> None:
    raise GRPCError(Status.RESOURCE_EXHAUSTED, "rejected by rate limit")


async def say_nothing(_stream: Stream[bytes, bytes]) -> None:
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("answer", "timeout_s", "said"),
    [
        (refuse, 30.0, "rate limit"),
        (say_nothing, 0.5, "did not answer within 0.5 s"),
        (always(ANSWER[:-5]), 30.0, "cannot be read"),
        (always(b"\xff" * 12), 30.0, "cannot be read"),
    ],
)
def test_a_fault_is_one_line_with_its_reason(tmp_path: Path, answer: Answer, timeout_s: float, said: str) -> None:
    with pytest.raises(SourceError, match=said) as caught:
        asked(tmp_path / "kubelet.sock", answer, timeout_s)
    assert "\n" not in str(caught.value)


def test_a_socket_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"kubelet\.sock"):
        asyncio.run(list_gpu_holders(str(tmp_path / "kubelet.sock")))


def test_a_server_that_speaks_something_else_is_a_fault(tmp_path: Path) -> None:
    async def ask() -> None:
        async def greet(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
            await writer.drain()
            writer.close()

        async with await asyncio.start_unix_server(greet, str(tmp_path / "kubelet.sock")):
            await list_gpu_holders(str(tmp_path / "kubelet.sock"), 1.0)

    with pytest.raises(SourceError):
        asyncio.run(ask())


@given(st.binary(max_size=200))
def test_no_bytes_break_the_reader(answer: bytes) -> None:
    try:
        gpu_holders(answer)
    except SourceError:
        return
