"""Runs a GPU capper in a process of its own: a JSON array `[method, arguments…]` a line in, its answer a line out."""

from __future__ import annotations

import asyncio
import importlib
import sys
import threading
from typing import Any

import msgspec

from joulie.devices.amd.boards import AmdBoards
from joulie.devices.amd.smi import AmdSmi
from joulie.devices.gpu.capper import GpuCapper
from joulie.devices.interface import DeviceError, Knob, Value
from joulie.devices.nvidia.nvml import Nvml
from joulie.devices.sysfs import SysFs

Found = list[tuple[Knob, Value]]


def capper(which: str, call_limit_s: float, sysfs: str) -> GpuCapper:
    match which:
        case "nvidia":
            return GpuCapper(Nvml(), call_limit_s)
        case "amdsmi":
            return GpuCapper(AmdSmi(), call_limit_s)
        case _:
            return GpuCapper(AmdBoards(SysFs(sysfs)), call_limit_s)


async def answer(gpus: GpuCapper, method: str, arguments: list[Any]) -> Any:
    match method:
        case "settings":
            target, found = arguments
            return gpus.settings(float(target), dict(msgspec.convert(found, Found)))
        case "restoring":
            return gpus.restoring(dict(msgspec.convert(arguments[0], Found)))
        case "read" | "write":
            return await getattr(gpus, method)(Knob(*arguments[0]), *arguments[1:])
        case "threads":
            return threading.active_count()
        case "imported":
            return arguments[0] in sys.modules
        case "hide":  # as if the package were not installed
            sys.modules[arguments[0]] = None  # type: ignore[assignment]
            importlib.invalidate_caches()
            return None
        case _:
            return await getattr(gpus, method)()


async def converse(gpus: GpuCapper) -> None:
    for line in sys.stdin:
        method, *arguments = msgspec.json.decode(line)
        try:
            said: Any = {"answer": await answer(gpus, method, arguments)}
        except DeviceError as error:
            said = {"error": type(error).__name__, "message": str(error)}
        sys.stdout.write(msgspec.json.encode(said).decode() + "\n")
        sys.stdout.flush()


asyncio.run(converse(capper(sys.argv[1], float(sys.argv[2]), sys.argv[3])))
