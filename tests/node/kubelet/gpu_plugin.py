"""A device plug-in that advertises boards that do not exist: what NVIDIA's does, as far as kubelet can tell.

Run within the node: `python -m tests.node.kubelet.gpu_plugin GPU-1 GPU-2`.
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from grpclib.client import Channel, UnaryUnaryMethod
from grpclib.server import Stream

from tests.support.grpc_bytes import Answer, PlainBytes, always, server
from tests.support.protobuf import field

KUBELET = Path("/var/lib/kubelet/device-plugins/kubelet.sock")
OWN = KUBELET.with_name("fake-gpu.sock")
RESOURCE = "nvidia.com/gpu"


def boards(names: list[str]) -> Answer:
    async def answer(stream: Stream[bytes, bytes]) -> None:
        await stream.recv_message()
        await stream.send_message(b"".join(field(1, field(1, name) + field(2, "Healthy")) for name in names))
        await asyncio.Event().wait()  # they never change

    return answer


async def register() -> None:
    kubelet = Channel(path=str(KUBELET), codec=PlainBytes())
    ask: UnaryUnaryMethod[bytes, bytes] = UnaryUnaryMethod(kubelet, "/v1beta1.Registration/Register", bytes, bytes)
    await ask(field(1, "v1beta1") + field(2, OWN.name) + field(3, RESOURCE))
    kubelet.close()


async def main(names: list[str]) -> None:
    service = "/v1beta1.DevicePlugin/"
    answers = {
        f"{service}GetDevicePluginOptions": always(b""),
        f"{service}ListAndWatch": boards(names),
        f"{service}Allocate": always(field(1, b"")),  # one container, which needs nothing
    }
    while True:  # a kubelet that starts removes the sockets of plug-ins, which are to register anew
        if KUBELET.exists() and not OWN.exists():
            await server(answers).start(path=str(OWN))
            await register()
        await asyncio.sleep(0.2)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
