"""Runs the command line inside the test process, with its own environment, input and output."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import click
from click.testing import CliRunner, Result

from joulie import demo
from joulie.cli.main import run

DEMO = str(demo.example_path())
NOW = ("--now", demo.NOW)


class Outcome(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        return json.loads(self.out)

    @property
    def complaint(self) -> str:
        """The one line on standard error; there must be exactly one, and nothing on standard output."""
        assert self.out == ""
        lines = self.err.splitlines()
        assert len(lines) == 1, self.err
        assert lines[0].startswith("joulie: ")
        assert lines[0].isprintable()
        return lines[0].removeprefix("joulie: ")


def joulie(*arguments: str, stdin: bytes | str = b"", env: Mapping[str, str] | None = None) -> Outcome:
    """One run; the environment holds nothing but what is given."""
    given = stdin.encode() if isinstance(stdin, str) else stdin
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", newline="") for _ in range(2))
    variables = {"PATH": os.environ.get("PATH", ""), **(env or {})}
    with (
        patch.dict(os.environ, variables, clear=True),
        patch.object(sys, "argv", ["joulie", *arguments]),
        patch.object(sys, "stdin", io.TextIOWrapper(io.BytesIO(given))),
        patch.object(sys, "stdout", out),
        patch.object(sys, "stderr", err),
    ):
        code = run(arguments)
        out.flush()
        err.flush()
    return Outcome(code, _text(out), _text(err))


def invoke(command: click.Command, *arguments: str, env: Mapping[str, str] | None = None) -> Result:
    """One command alone; what it raises is raised here, before `main` turns it into a line."""
    result = CliRunner().invoke(command, list(arguments), env=env)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def write(folder: Path, *objects: Any, name: str = "cluster.json") -> str:
    """The objects as a file; its path."""
    path = folder / name
    path.write_text("\n".join(json.dumps(item) for item in objects))
    return str(path)


def node(name: str, cores: int = 64, managed: bool = True, **labels: str) -> dict[str, Any]:
    shown = {f"joulie.io/{key.replace('__', '.').replace('_', '-')}": value for key, value in labels.items()}
    if managed:
        shown["joulie.io/managed"] = "true"
    metadata = {"name": name, "labels": shown}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "status": {"capacity": {"cpu": str(cores)}}}


def pod(name: str, namespace: str = "team", on: str | None = None, cpu: str = "4", **more: Any) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": name, "namespace": namespace, **more}
    spec: dict[str, Any] = {"containers": [{"resources": {"requests": {"cpu": cpu}}}]}
    if on:
        spec["nodeName"] = on
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


PERFORMANCE: dict[str, Any] = {"annotations": {"joulie.io/workload-class": "performance"}}


def _text(stream: io.TextIOWrapper) -> str:
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()
