"""Which container holds which GPU, from kubelet's pod resources API: one question over a Unix socket, never a write."""

from joulie.sources.podresources.client import list_gpu_holders
from joulie.sources.podresources.messages import GpuHolder

__all__ = ["GpuHolder", "list_gpu_holders"]
