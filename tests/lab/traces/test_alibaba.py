"""Alibaba's GPU trace of 2023, by its columns; the rows are made up."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from joulie.catalogue.lookup import Catalogue
from joulie.errors import InputError
from joulie.lab.model.setup import ClusterSetup, NodeGroup
from joulie.lab.traces.formats.alibaba_nodes import as_toml, node_groups
from joulie.lab.traces.reading import read_trace
from joulie.lab.traces.remarks import Remarks

HEADER = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time"
ROWS = (
    "pod-a,6000,8192,1,500,,LS,Succeeded,1000,4600,1010",
    "pod-b,48000,65536,4,1000,X1|X2,BE,Running,1060,200000,1060",
    "pod-c,1500,1024,0,0,,Burstable,Succeeded,1060,1060,1060",
    "pod-d,2000,1024,1,1000,,LS,Pending,1070,1090,",
    "pod-e,8000,4096,1,1000,X1,BE,Failed,900,1200,950",
)


def put(path: Path, *rows: str, header: str = HEADER) -> str:
    path.write_text("\n".join([header, *rows]) + "\n")
    return str(path)


def test_pods_become_jobs_in_the_order_of_their_creation(tmp_path: Path) -> None:
    remarks = Remarks()
    jobs = read_trace(put(tmp_path / "openb_pod_list_made.csv", *ROWS), cluster=ClusterSetup(), remarks=remarks)

    assert list(jobs.ids) == ["pod-e", "pod-a", "pod-b", "pod-c"]
    assert jobs.submit_s.tolist() == [0, 100, 160, 160]
    assert jobs.reference_s.tolist() == [250, 3590, 198_940, 1], "more than two days, and less than a second"
    assert jobs.cores.tolist() == [8, 6, 48, 1.5]
    assert jobs.gpus.tolist() == [1, 1, 4, 0]
    assert jobs.gpu_units.tolist() == [250, 3590, 4 * 198_940, 0]
    assert jobs.gpu_utilisation.tolist() == pytest.approx([0.9, 0.45, 0.9, 0.9])
    assert jobs.performance.tolist() == [False, True, False, False]
    assert [note.partition(": ")[2] for note in remarks.notes] == [
        "left out 1 pods that were never scheduled or not deleted",
        "1 pods share a board; here each holds one, as busy as its share",
        "2 pods want a GPU model (gpu_spec); here they take any board",
    ]


BAD = {
    "no number": ("x,many,1,1,1000,,LS,Running,1,2,1", "cpu_milli: 'many' is not a number"),
    "no creation": ("x,1000,1,1,1000,,LS,Running,,2,1", "creation_time: is empty"),
    "odd time": ("x,1000,1,1,1000,,LS,Running,1,soon,1", "deletion_time: 'soon' is not a number"),
    "before it came": ("x,1000,1,1,1000,,LS,Running,5,9,1", "scheduled_time: is before creation_time"),
    "before it ran": ("x,1000,1,1,1000,,LS,Running,1,5,9", "deletion_time: is before scheduled_time"),
    "too long": (
        "x,1000,1,1,1000,,LS,Running,1,9999999999,9",
        "deletion_time: is above ten years of run time",
    ),
    "half a GPU": ("x,1000,1,0.5,1000,,LS,Running,1,5,1", "num_gpu: is not a number of GPUs"),
    "too many GPUs": ("x,1000,1,65,1000,,LS,Running,1,5,1", "num_gpu: is not a number of GPUs"),
    "odd share": ("x,1000,1,1,1200,,LS,Running,1,5,1", "gpu_milli: is not from 1 to 1000"),
    "no share": ("x,1000,1,1,0,,LS,Running,1,5,1", "gpu_milli: is not from 1 to 1000"),
    "negative": ("x,-1,1,1,1000,,LS,Running,1,5,1", "cpu_milli: is not from 0 to 65,536,000"),
    "nothing": ("x,0,1,0,0,,LS,Running,1,5,1", "cpu_milli: asks for neither CPU nor GPU"),
    "no name": (",1000,1,1,1000,,LS,Running,1,5,1", "name: is empty"),
    "again": ("pod-a,1000,1,1,1000,,LS,Running,1,5,1", "name: 'pod-a' is in line 2 already"),
    "few cells": ("x,1000,1", "3 fields, but the header names 11"),
}


@pytest.mark.parametrize(("row", "said"), BAD.values(), ids=BAD)
def test_a_bad_line_is_named_with_file_line_and_field(tmp_path: Path, row: str, said: str) -> None:
    path = put(tmp_path / "openb_pod_list_made.csv", ROWS[0], row, ROWS[1])

    with pytest.raises(InputError) as error:
        read_trace(path)

    assert str(error.value) == f"{path}:3: {said}"
    remarks = Remarks(skip_bad=True)
    assert list(read_trace(path, remarks=remarks).ids) == ["pod-a", "pod-b"]
    assert (remarks.bad_lines, remarks.listed) == (1, [f"{path}:3: {said}"])


def test_a_column_that_is_missing_is_named(tmp_path: Path) -> None:
    path = put(tmp_path / "pods.csv", *ROWS, header=HEADER.replace("qos", "class"))

    with pytest.raises(InputError, match=r"pods\.csv:1: qos: missing in the header"):
        read_trace(path)


def test_columns_may_stand_in_any_order_and_none_but_pods_that_never_ran_is_no_job(tmp_path: Path) -> None:
    names = HEADER.split(",")
    cells = ROWS[0].split(",")
    path = put(tmp_path / "pods.csv", ",".join(reversed(cells)), header=",".join(reversed(names)))
    assert list(read_trace(path).ids) == ["pod-a"]

    with pytest.raises(InputError, match=r"never\.csv: holds no job"):
        read_trace(put(tmp_path / "never.csv", ROWS[3]))


NODES = "sn,cpu_milli,memory_mib,gpu,model"


def test_a_node_list_becomes_groups_of_like_nodes(tmp_path: Path) -> None:
    rows = ("a,96000,786432,8,L40S", "b,64000,262144,0,", "c,96000,786432,8,L40S", "d,128000,1,8,X9", "e,900000,1,0,")
    groups = node_groups(Path(put(tmp_path / "nodes.csv", *rows, header=NODES)), Catalogue())

    assert groups[0] == NodeGroup(2, "EPYC 9654", 1, "L40S", 8)
    assert [(one.count, one.gpus, one.gpu) for one in groups[1:]] == [(1, 0, ""), (1, 8, "X9"), (1, 0, "")]
    assert (groups[1].cpu, groups[1].sockets) == ("EPYC 9534", 1)
    assert (groups[3].cpu, groups[3].sockets) == ("EPYC 9965", 5)
    text = as_toml(groups, Catalogue())
    assert text.startswith("# Not in the catalogue, to be added with settings.HARDWARE_CATALOG_PATH: X9\n")
    assert tomllib.loads(text)["cluster"]["nodes"][0] == {
        "count": 2,
        "cpu": "EPYC 9654",
        "sockets": 1,
        "gpu": "L40S",
        "gpus": 8,
    }


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("x,0,1,0,", "cpu_milli: is not above 0 and up to 6,144,000"),
        ("x,many,1,0,", "cpu_milli: 'many' is not a number"),
        ("x,1000,1,1.5,L40S", "gpu: is not a number of GPUs"),
        ("x,1000,1,1,", "model: is empty, but the node has GPUs"),
    ],
)
def test_a_bad_node_is_named_with_file_line_and_field(tmp_path: Path, row: str, said: str) -> None:
    path = put(tmp_path / "nodes.csv", "a,1000,1,0,", row, header=NODES)
    with pytest.raises(InputError) as error:
        node_groups(Path(path), Catalogue())
    assert str(error.value) == f"{path}:3: {said}"


def test_a_node_list_without_nodes_or_that_is_not_there_is_said_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nodes\.csv: holds no node$"):
        node_groups(Path(put(tmp_path / "nodes.csv", header=NODES)), Catalogue())
    with pytest.raises(InputError, match=r"gone\.csv: cannot be read: No such file"):
        node_groups(tmp_path / "gone.csv", Catalogue())
