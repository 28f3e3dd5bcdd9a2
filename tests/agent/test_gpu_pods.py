"""Metrics of which pod holds which GPU: as kubelet last said, and nothing where it says nothing."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from joulie.agent.gpu_pods import GpuPods
from joulie.sources.podresources import GpuHolder
from joulie.sources.transport import SourceError

HOLDER = GpuHolder("team-a", 'tr"ain', "main", "nvidia.com/gpu", "GPU-1")
SERIES = (
    'joulie_agent_gpu_pod_info{node="n1",namespace="team-a",pod="tr\\"ain",container="main",'
    'resource="nvidia.com/gpu",device="GPU-1"} 1\n'
)


def test_what_is_known_is_forgotten_when_kubelet_falls_silent() -> None:
    said: list[Sequence[GpuHolder] | SourceError] = [[HOLDER], SourceError("gone"), []]

    async def ask(_socket: str) -> Sequence[GpuHolder]:
        answer = said.pop(0)
        if isinstance(answer, SourceError):
            raise answer
        return answer

    pods = GpuPods("n1", "/kubelet.sock", ask)
    assert 'joulie_agent_podresources_up{node="n1"} 0\n' in pods.text()
    asyncio.run(pods.refresh())
    assert SERIES in pods.text()
    assert 'joulie_agent_podresources_up{node="n1"} 1\n' in pods.text()
    asyncio.run(pods.refresh())
    assert "joulie_agent_gpu_pod_info{" not in pods.text()
    assert 'joulie_agent_podresources_up{node="n1"} 0\n' in pods.text()
    asyncio.run(pods.refresh())
    assert 'joulie_agent_podresources_up{node="n1"} 1\n' in pods.text()


def test_nothing_is_asked_or_shown_unless_a_socket_is_named() -> None:
    assert GpuPods("n1", "").text() == ""
