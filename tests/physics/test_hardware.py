"""What a node is made of, each fact from the first source that has it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from joulie.model.names import CPU_MODEL_LABEL, CPU_SOCKETS_LABEL, GPU_COUNT_LABEL, GPU_MODEL_LABEL
from tests.support.small_clusters import hardware, machine, node, plan

H100_LABELS = {GPU_MODEL_LABEL: "NVIDIA-H100-80GB-HBM3"}


class TestCpu:
    @pytest.mark.parametrize(
        ("labels", "cpu", "max_w"),
        [
            pytest.param(
                {CPU_MODEL_LABEL: "EPYC-9654"}, {"capRange": {"maxWattsPerSocket": 350}}, 350, id="NodeHardware"
            ),
            pytest.param({CPU_MODEL_LABEL: "EPYC-9654"}, None, 400, id="catalogue's highest cTDP"),
            pytest.param({CPU_MODEL_LABEL: "Xeon-Gold-6530"}, None, 270, id="catalogue's TDP"),
            pytest.param({CPU_MODEL_LABEL: "EPYC-9654"}, {"capRange": {"maxWattsPerSocket": 0}}, 400, id="0 is absent"),
            pytest.param(
                {CPU_MODEL_LABEL: "EPYC-9654"}, {"capRange": {"maxWattsPerSocket": -9}}, 400, id="negative too"
            ),
            pytest.param({CPU_MODEL_LABEL: "EPYC-9654"}, {"capRange": {}}, 400, id="an empty range is absent"),
            pytest.param({CPU_MODEL_LABEL: "EPYC-9654", CPU_SOCKETS_LABEL: "2"}, None, 800, id="for each socket"),
            pytest.param(
                {CPU_MODEL_LABEL: "EPYC-9654", CPU_SOCKETS_LABEL: "2"}, {"sockets": 4}, 1600, id="told sockets"
            ),
            pytest.param({CPU_MODEL_LABEL: "EPYC-9654"}, {"sockets": 0}, 400, id="no sockets told counts as one"),
        ],
    )
    def test_maximum(self, labels: dict[str, str], cpu: dict[str, Any] | None, max_w: float) -> None:
        found = machine(node("a", labels), hardware("a", cpu=cpu))
        assert found.cpu_max_w == max_w
        assert found.cpu_max_known

    @pytest.mark.parametrize(("cores", "max_w"), [(0, 150), (42, 150), (43, 150.5), (100, 350), (0.5, 150)])
    def test_of_an_unknown_model_is_guessed_from_the_cores_whatever_the_sockets(
        self, cores: float, max_w: float
    ) -> None:
        found = machine(node("a", {CPU_SOCKETS_LABEL: "4"}, cores=cores))
        assert found.cpu_max_w == max_w
        assert not found.cpu_max_known

    def test_cores_are_those_told_else_the_capacity(self) -> None:
        assert machine(node("a", cores=64)).cores == 64
        assert machine(node("a", cores=64), hardware("a", cpu={"totalCores": 32})).cores == 32
        assert machine(node("a", cores=64), hardware("a", cpu={"totalCores": 0})).cores == 64

    def test_a_pods_share_is_of_the_capacity_else_of_the_told_cores(self) -> None:
        told = hardware("a", cpu={"totalCores": 32})
        assert machine(node("a", cores=64), told).share_cores == 64
        assert machine(node("a", cores=0), told).share_cores == 32

    def test_idle_power_is_the_curves_by_sockets_else_a_fifth_of_the_maximum(self) -> None:
        assert machine(node("a", {CPU_MODEL_LABEL: "EPYC-9654"})).idle_w == 64
        assert machine(node("a", {CPU_MODEL_LABEL: "EPYC-9654", CPU_SOCKETS_LABEL: "4"})).idle_w == 256
        assert machine(node("a", {CPU_MODEL_LABEL: "EPYC-9534"})).idle_w == pytest.approx(60)
        assert machine(node("a", H100_LABELS, nvidia=8)).idle_w == pytest.approx(0.2 * 350 + 0.2 * 5600)


class TestIdentity:
    @pytest.mark.parametrize(
        ("cpu", "label", "family"),
        [
            ({"model": "EPYC 9654", "rawModel": "Other"}, "Third", "EPYC 9654"),
            ({"model": "", "rawModel": "AMD EPYC 9654 96-Core Processor"}, "Third", "EPYC 9654"),
            ({"model": "   ", "rawModel": " Other 1 "}, "Third", "Other 1"),
            ({}, "Third", "Third"),
            ({}, "", "unknown/a"),
            (None, "epyc-9654", "EPYC 9654"),
            ({"model": "Unheard Of", "rawModel": "EPYC 9654"}, "", "Unheard Of"),
        ],
    )
    def test_of_a_node_without_gpu(self, cpu: dict[str, Any] | None, label: str, family: str) -> None:
        assert machine(node("a", {CPU_MODEL_LABEL: label}), hardware("a", cpu=cpu)).family == family

    @pytest.mark.parametrize(
        ("gpu", "labels", "family"),
        [
            ({"model": "L40S", "rawModel": "Other"}, {GPU_MODEL_LABEL: "X"}, "L40S"),
            ({"rawModel": "NVIDIA L40S"}, {GPU_MODEL_LABEL: "X"}, "L40S"),
            (None, {GPU_MODEL_LABEL: "X", "joulie.io/gpu.product": "Y"}, "X"),
            (None, {"joulie.io/gpu.product": "Y", "nvidia.com/gpu.product": "Z"}, "Y"),
            (None, {"amd.com/gpu.family": "AI", "nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}, "H100 SXM"),
            (None, {"amd.com/gpu.family": "AI"}, "AI"),
            (None, {}, "unknown/a"),
        ],
    )
    def test_of_a_gpu_node_is_its_gpu(self, gpu: dict[str, Any] | None, labels: dict[str, str], family: str) -> None:
        of = node("a", {CPU_MODEL_LABEL: "EPYC-9654", **labels}, nvidia=1)
        assert machine(of, hardware("a", gpu=gpu)).family == family

    def test_product_labels_are_asked_in_the_order_of_the_setting(self) -> None:
        of = node("a", {"joulie.io/gpu.product": "Y", "nvidia.com/gpu.product": "Z"}, nvidia=1)
        env = {"GPU_PRODUCT_LABEL_KEYS": "nvidia.com/gpu.product, joulie.io/gpu.product"}
        assert machine(of, None, env).family == "Z"

    def test_a_gpu_name_without_a_gpu_makes_no_gpu_node(self) -> None:
        found = machine(node("a", {**H100_LABELS, CPU_MODEL_LABEL: "X"}))
        assert (found.family, found.gpu_max_w, found.gpu_name) == ("X", 0, None)


class TestGpu:
    @pytest.mark.parametrize(
        ("gpu", "labels", "nvidia", "count"),
        [
            ({"count": 4}, {GPU_COUNT_LABEL: "8"}, 2, 4),
            ({"count": 0}, {GPU_COUNT_LABEL: "8"}, 2, 0),
            ({"present": False, "count": 4}, {GPU_COUNT_LABEL: "8"}, 2, 0),
            ({"present": True}, {GPU_COUNT_LABEL: "8"}, 2, 8),
            (None, {GPU_COUNT_LABEL: "8"}, 2, 8),
            (None, {GPU_COUNT_LABEL: "0"}, 2, 0),
            (None, {GPU_COUNT_LABEL: "many"}, 2, 2),
            (None, {}, 2, 2),
            (None, {}, 0, 0),
        ],
    )
    def test_count(self, gpu: dict[str, Any] | None, labels: dict[str, str], nvidia: float, count: float) -> None:
        assert machine(node("a", labels, nvidia=nvidia), hardware("a", gpu=gpu)).gpu_count == count

    def test_a_label_that_is_no_count_is_passed_over_with_a_warning(self) -> None:
        labels = {GPU_COUNT_LABEL: "many", CPU_SOCKETS_LABEL: "-2"}
        assert plan([node("a", labels)]).warnings == (
            "Node/a: metadata.labels[joulie.io/hw.cpu-sockets]: '-2' is not a count, so it is ignored",
            "Node/a: metadata.labels[joulie.io/hw.gpu-count]: 'many' is not a count, so it is ignored",
        )

    def test_nvidia_and_amd_boards_of_one_node_add_up(self) -> None:
        found = machine(node("a", nvidia=2, amd=3))
        assert (found.gpu_count, found.share_gpus, found.gpu_max_w_each) == (5, 5, 350)

    CONFIGURED = json.dumps({"H100 SXM": {"minCapWatts": 300, "maxCapWatts": 650}, "Own": {"maxCapWatts": 500}})

    @pytest.mark.parametrize(
        ("cap_range", "model", "configured", "expected"),
        [
            pytest.param({"minWatts": 100, "maxWatts": 600}, "H100 SXM", True, (100, 600), id="NodeHardware"),
            pytest.param({}, "H100 SXM", True, (300, 650), id="GPU_MODEL_CAPS_JSON"),
            pytest.param({}, "NVIDIA-H100-80GB-HBM3", True, (300, 650), id="under another name of the model"),
            pytest.param({}, "H100 SXM", False, (200, 700), id="catalogue"),
            pytest.param({"minWatts": 0, "maxWatts": -1}, "H100 SXM", False, (200, 700), id="useless ends are absent"),
            pytest.param({"maxWatts": 600}, "H100 SXM", True, (300, 600), id="each end by itself"),
            pytest.param({"minWatts": 90}, "H100 SXM", False, (90, 700), id="each end by itself, the other way"),
            pytest.param({}, "Own", True, (0, 500), id="a model outside the catalogue"),
            pytest.param({}, " Own ", True, (0, 500), id="trimmed"),
        ],
    )
    def test_range(
        self, cap_range: dict[str, float], model: str, configured: bool, expected: tuple[float, float]
    ) -> None:
        env = {"GPU_MODEL_CAPS_JSON": self.CONFIGURED} if configured else {}
        found = machine(node("a", nvidia=1), hardware("a", gpu={"model": model, "capRangePerGpu": cap_range}), env)
        assert (found.gpu_min_w_each, found.gpu_max_w_each) == expected
        assert found.gpu_max_known

    @pytest.mark.parametrize(
        ("gpu", "labels", "capacity", "max_w"),
        [
            pytest.param({}, {}, {"nvidia": 1}, 350, id="NVIDIA by resource"),
            pytest.param({}, {}, {"amd": 1}, 400, id="AMD by resource"),
            pytest.param({}, {}, {"nvidia": 1, "amd": 1}, 350, id="both resources"),
            pytest.param({"vendor": "AMD"}, {}, {"nvidia": 1}, 400, id="the told vendor wins"),
            pytest.param({"vendor": "Advanced Micro Devices, Inc."}, {}, {"nvidia": 1}, 400, id="in full"),
            pytest.param({"vendor": "nvidia"}, {}, {"amd": 1}, 350, id="the told vendor wins, the other way"),
            pytest.param({"vendor": "Plain"}, {}, {"amd": 1}, 350, id="other vendors count as NVIDIA"),
            pytest.param({"model": "Radeon X"}, {}, {"nvidia": 1}, 400, id="by name"),
            pytest.param({}, {"amd.com/gpu.product": "X"}, {"nvidia": 1}, 400, id="by the label that names it"),
            pytest.param({"count": 1}, {}, {}, 350, id="nothing known of it"),
        ],
    )
    def test_maximum_of_an_unknown_model_depends_on_the_vendor(
        self, gpu: dict[str, Any], labels: dict[str, str], capacity: dict[str, float], max_w: float
    ) -> None:
        found = machine(node("a", labels, **capacity), hardware("a", gpu=gpu))  # type: ignore[arg-type]
        assert found.gpu_max_w_each == max_w
        assert not found.gpu_max_known


def test_whole_numbers_and_decimals_read_the_same() -> None:
    def told(one: float, two: float) -> Any:
        cpu = {"sockets": two, "totalCores": two, "capRange": {"minWattsPerSocket": one, "maxWattsPerSocket": two}}
        return hardware("a", cpu=cpu, gpu={"count": one, "capRangePerGpu": {"minWatts": one, "maxWatts": two}})

    assert machine(node("a"), told(1, 2)) == machine(node("a"), told(1.0, 2.0))
