"""Which agent of a pool owns which node."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from joulie.agent.shards import Shard, fnv1a_32, shard_of, share_of
from joulie.errors import SettingError
from joulie.settings import AgentSettings, load


@pytest.mark.parametrize(
    ("text", "value"),
    [("", 0x811C9DC5), ("a", 0xE40C292C), ("foobar", 0xBF9CF968)],  # published test vectors
)
def test_the_hash_is_fnv_1a_of_32_bits(text: str, value: int) -> None:
    assert fnv1a_32(text) == value


@given(st.text(), st.integers(1, 50))
def test_every_node_has_exactly_one_owner(node: str, shards: int) -> None:
    owners = [number for number in range(shards) if Shard(number, shards).owns(node)]
    assert owners == [fnv1a_32(node) % shards]


def test_shards_are_about_equal() -> None:
    counts = Counter(fnv1a_32(f"node-{number:05d}") % 4 for number in range(10_000))
    assert max(counts.values()) < 1.2 * min(counts.values())


def test_names_are_spread_evenly_over_an_interval() -> None:
    counts = Counter(int(share_of(f"node-{number:05d}") * 20) for number in range(10_000))
    assert len(counts) == 20
    assert max(counts.values()) < 1.3 * min(counts.values())


def test_the_ordinal_of_the_pod_is_its_shard() -> None:
    shard = shard_of(load(AgentSettings, {"POOL_SHARDS": "3", "POD_NAME": "joulie-agent-pool-2"}))
    assert (shard.number, shard.shards) == (2, 3)


def test_the_shard_that_is_set_beats_the_ordinal() -> None:
    env = {"POOL_SHARDS": "3", "POD_NAME": "joulie-agent-pool-2", "POOL_SHARD_ID": "1"}
    assert shard_of(load(AgentSettings, env)).number == 1


@pytest.mark.parametrize(
    ("env", "variable"),
    [
        ({"POOL_SHARDS": "2", "POOL_SHARD_ID": "2"}, "POOL_SHARD_ID='2'"),
        ({"POOL_SHARDS": "2"}, "POD_NAME=''"),
        ({"POOL_SHARDS": "2", "POD_NAME": "agent-x7k2p"}, "POD_NAME='agent-x7k2p'"),
        ({"POOL_SHARDS": "2", "POD_NAME": "agent-5"}, "POD_NAME='agent-5'"),
    ],
)
def test_a_shard_that_cannot_be_stops_the_start_with_the_variable(env: dict[str, str], variable: str) -> None:
    with pytest.raises(SettingError) as refused:
        shard_of(load(AgentSettings, env))
    assert str(refused.value).startswith(variable)


def test_a_single_agent_needs_no_number() -> None:
    assert shard_of(load(AgentSettings, {"POD_NAME": "agent-x7k2p"})).owns("any")
