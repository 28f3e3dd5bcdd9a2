"""Which agent of a pool owns which node: by the node's name alone, so no two ever need to talk."""

from __future__ import annotations

import re

from joulie.errors import SettingError
from joulie.settings import AgentSettings

_ORDINAL = re.compile(r"-(\d{1,6})$", re.ASCII)
_OFFSET_BASIS, _PRIME, _32_BITS = 0x811C9DC5, 0x01000193, 0xFFFFFFFF


def fnv1a_32(text: str) -> int:
    """The 32-bit FNV-1a hash of the text's UTF-8 bytes."""
    value = _OFFSET_BASIS
    for byte in text.encode():
        value = ((value ^ byte) * _PRIME) & _32_BITS
    return value


def share_of(text: str) -> float:
    """A place in [0, 1) that belongs to this name: spreads what all nodes do over time.

    The hash's bits are mixed once more: names that differ in their last digit alone share their high bits.
    """
    mixed = fnv1a_32(text)
    mixed = ((mixed ^ (mixed >> 16)) * 0x45D9F3B) & _32_BITS
    mixed = ((mixed ^ (mixed >> 16)) * 0x45D9F3B) & _32_BITS
    return (mixed ^ (mixed >> 16)) / 2**32


class Shard:
    """One of `shards` equal parts of all nodes."""

    def __init__(self, number: int, shards: int) -> None:
        self.number = number
        self.shards = shards

    def owns(self, node: str) -> bool:
        return self.shards == 1 or fnv1a_32(node) % self.shards == self.number


def shard_of(settings: AgentSettings) -> Shard:
    """The shard that the settings name, or that the ordinal of a StatefulSet's pod names."""
    number, shards = settings.pool_shard_id, settings.pool_shards
    if number is not None:
        if number >= shards:
            raise SettingError("POOL_SHARD_ID", str(number), f"below POOL_SHARDS ({shards})")
        return Shard(number, shards)
    if shards == 1:
        return Shard(0, 1)
    ordinal = _ORDINAL.search(settings.pod_name)
    if ordinal is None:
        allowed = "a name that ends in an ordinal such as agent-0, where POOL_SHARD_ID is not set"
        raise SettingError("POD_NAME", settings.pod_name, allowed)
    if int(ordinal[1]) >= shards:
        raise SettingError("POD_NAME", settings.pod_name, f"an ordinal below POOL_SHARDS ({shards})")
    return Shard(int(ordinal[1]), shards)
