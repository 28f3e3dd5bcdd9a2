"""A node's watts become caps of its devices: whole watts, within their range, never more than it was given."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from joulie.catalogue.lookup import Catalogue
from joulie.control.budget.envelopes import Pair, ceiling_of, envelope_of, split
from joulie.control.caps import Caps
from joulie.model.api import NodeHardware
from joulie.model.api.hardware import CpuHardware, GpuCapRange, GpuHardware, NodeHardwareStatus, SocketCapRange
from joulie.model.kubernetes import ObjectMeta
from joulie.model.snapshot import Node
from joulie.physics.hardware import Machine, machine_of
from joulie.settings import DecisionSettings

SETTINGS = DecisionSettings().hardware


def machine(node: Node, *, gpus: int = 0, cpu_max_w: float | None = 200.0) -> Machine:
    cpu = CpuHardware(sockets=2, total_cores=64, cap_range=SocketCapRange(60, cpu_max_w))
    gpu = GpuHardware(present=True, count=gpus, cap_range_per_gpu=GpuCapRange(100, 400)) if gpus else None
    return machine_of(node, NodeHardware(ObjectMeta(), None, NodeHardwareStatus(cpu, gpu)), SETTINGS, Catalogue())


@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 1), st.floats(0, 6_000))
def test_caps_of_a_nodes_devices_count_at_most_what_it_was_given(
    cpu: float, gpu: float, cpu_top: float, gpu_top: float, given_w: float
) -> None:
    low, high = np.array([[60.0, 100.0]]), np.array([[200.0, 400.0]])
    ceiling = np.floor(low + (high - low) * [[cpu_top, gpu_top]])
    demand = low + (ceiling - low) * [[cpu, gpu]]
    per_watt = np.array([[2.0, 4 * 1.28]])
    least = float((low * per_watt).sum())
    caps = split(np.array([given_w]), low, demand, ceiling, per_watt)
    assert float((caps * per_watt).sum()) <= max(given_w, least) + 1e-9
    assert (caps == np.floor(caps)).all()
    assert ((low <= caps) & (caps <= ceiling)).all()
    if given_w >= float((ceiling * per_watt).sum()):
        assert (caps == ceiling).all()


def test_the_devices_that_work_get_the_watts() -> None:
    low, high, per_watt = np.array([[60.0, 100.0]]), np.array([[200.0, 400.0]]), np.array([[1.0, 1.0]])
    assert split(np.array([400.0]), low, np.array([[60.0, 340.0]]), high, per_watt).tolist() == [[60, 339]]
    assert split(np.array([300.0]), low, np.array([[200.0, 100.0]]), high, per_watt).tolist() == [[199, 100]]


def test_a_gpu_nodes_rest_follows_its_boards_unless_the_budget_states_it() -> None:
    node = Node("n", {})
    envelope = envelope_of(node, machine(node, gpus=4))
    assert (envelope.floor, envelope.top, envelope.devices) == (Pair(60, 100), Pair(200, 400), Pair(2, 4))
    assert envelope.rest_w == 0.196 * 1600
    assert envelope.per_watt(rest_follows=True) == Pair(2, 4 * 1.28)
    assert envelope.per_watt(rest_follows=False) == Pair(2, 4 * 1.05)
    assert envelope_of(node, machine(node)).rest_w == 0.15 * 400


def test_an_unknown_maximum_may_stand_in_a_label() -> None:
    bare, labelled, wrong = (
        Node("n", labels) for labels in ({}, {"joulie.io/max-watts": "900"}, {"joulie.io/max-watts": "nan"})
    )
    assert not envelope_of(bare, machine(bare, cpu_max_w=None)).is_known
    assert not envelope_of(wrong, machine(wrong, cpu_max_w=None)).is_known
    stated = envelope_of(labelled, machine(labelled, cpu_max_w=None))
    assert (stated.is_known, stated.top) == (True, Pair(450, 0))


def test_a_ceiling_is_what_the_policy_gives_in_whole_watts() -> None:
    node = Node("n", {})
    board = machine(node, gpus=4)
    assert ceiling_of(board, Caps(cpu_pct=60.0, gpu_pct=61.9), envelope_of(node, board)) == Pair(120, 247)
