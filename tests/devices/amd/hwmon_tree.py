"""The part of /sys that the amdgpu driver serves, in a temporary folder with the links of a real one."""

from __future__ import annotations

import os
from pathlib import Path

W = 1_000_000
ACCELERATOR, DISPLAY = "0x120000", "0x030000"


class AmdgpuTree:
    """PCI devices with hwmon folders, and the class folder that points to them."""

    def __init__(self, root: Path) -> None:
        self.sys = root / "sys"
        (self.sys / "class" / "hwmon").mkdir(parents=True)
        (self.sys / "module" / "amdgpu").mkdir(parents=True)
        self._numbers = 0

    def other(self, name: str) -> None:
        """A sensor chip that is no GPU."""
        self._hwmon(self.sys / "devices" / "platform" / name, name)

    def board(
        self, address: str, pci_class: str = ACCELERATOR, product: str = "AMD Instinct MI210", /, **watts: int
    ) -> None:
        """A board whose `power1_*` files hold these watts."""
        device = self.device(address)
        device.mkdir(parents=True)
        (device / "class").write_text(f"{pci_class}\n")
        if product:
            (device / "product_name").write_text(f"{product}\n")
        folder = self._hwmon(device, "amdgpu")
        for name, value in watts.items():
            (folder / f"power1_{name}").write_text(f"{value * W}\n")

    def device(self, address: str) -> Path:
        return self.sys / "devices" / f"pci{address[:7]}" / address

    def file(self, address: str, name: str) -> Path:
        return next(self.device(address).glob("hwmon/hwmon*")) / name

    def renumber(self, address: str) -> None:
        """As when the driver is loaded anew: the same board, another hwmon number."""
        old = next(self.device(address).glob("hwmon/hwmon*"))
        (self.sys / "class" / "hwmon" / old.name).unlink()
        new = old.rename(old.with_name(f"hwmon{self._numbers}"))
        self._numbers += 1
        self._link(new)

    def remove(self, address: str) -> None:
        """The board falls off the bus."""
        folder = next(self.device(address).glob("hwmon/hwmon*"))
        (self.sys / "class" / "hwmon" / folder.name).unlink()
        self.device(address).rename(self.sys.parent / f"gone-{address}")

    def _hwmon(self, device: Path, name: str) -> Path:
        folder = device / "hwmon" / f"hwmon{self._numbers}"
        self._numbers += 1
        folder.mkdir(parents=True)
        (folder / "name").write_text(f"{name}\n")
        (folder / "device").symlink_to(Path("..") / "..", target_is_directory=True)
        self._link(folder)
        return folder

    def _link(self, folder: Path) -> None:
        classes = self.sys / "class" / "hwmon"
        (classes / folder.name).symlink_to(os.path.relpath(folder, classes), target_is_directory=True)
