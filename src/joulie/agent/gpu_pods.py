"""Which pod holds which GPU of the agent's node, asked of kubelet again and again; opt-in by `PODRESOURCES_SOCKET`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from joulie.logs import Log
from joulie.metrics import Described, escaped, head
from joulie.sources.podresources import GpuHolder, list_gpu_holders
from joulie.sources.transport import SourceError

UP = Described("joulie_agent_podresources_up", "gauge", "1 while kubelet says which pod holds which GPU.", ("node",))
INFO = Described(
    "joulie_agent_gpu_pod_info",
    "gauge",
    "1 for each GPU, or slice of one, that a container holds; devices as their plug-in names them.",
    ("node", "namespace", "pod", "container", "resource", "device"),
)


class GpuPods:
    """What kubelet last said. Where it says nothing nothing is known, so that no pod is blamed for another's watts."""

    def __init__(
        self, node: str, socket_path: str, ask: Callable[[str], Awaitable[Sequence[GpuHolder]]] = list_gpu_holders
    ) -> None:
        self._node, self._socket_path, self._ask = node, socket_path, ask
        self.holders: tuple[GpuHolder, ...] = ()
        self.fault: str | None = "not asked yet"
        self._log = Log("agent")

    async def run(self, interval_s: float) -> None:
        """For ever; at once where no socket is named."""
        while self._socket_path:
            await self.refresh()
            await asyncio.sleep(interval_s)
        await asyncio.Event().wait()

    async def refresh(self) -> None:
        """Ask once; a fault is said when it begins and when it ends."""
        before = self.fault
        try:
            self.holders, self.fault = tuple(sorted(await self._ask(self._socket_path))), None
        except SourceError as error:
            self.holders, self.fault = (), str(error)
        if self.fault is None and before is not None:
            self._log.info("kubelet says which pod holds which GPU", node=self._node, gpus=len(self.holders))
        elif self.fault is not None and self.fault != before:
            self._log.warning("it is not known which pod holds which GPU", node=self._node, reason=self.fault)

    def text(self) -> str:
        """The metrics; none where kubelet is not asked."""
        if not self._socket_path:
            return ""
        node = f'node="{escaped(self._node)}"'
        series = "".join(f"{INFO.name}{{{node},{_labels(holder)}}} 1\n" for holder in self.holders)
        up = f"{UP.name}{{{node}}} {int(self.fault is None)}\n"
        return f"{head(*UP[:3])}{up}{head(*INFO[:3])}{series}"


def _labels(holder: GpuHolder) -> str:
    return ",".join(f'{name}="{escaped(value)}"' for name, value in holder._asdict().items())
