"""Names for the numbers by which ARM CPUs identify themselves (MIDR: implementer and part)."""

from __future__ import annotations

_VENDORS = {
    0x41: "ARM",
    0x43: "Cavium",
    0x46: "Fujitsu",
    0x48: "HiSilicon",
    0x4E: "NVIDIA",
    0x50: "APM",
    0x51: "Qualcomm",
    0x61: "Apple",
    0x6D: "Microsoft",
    0xC0: "Ampere",
}
_MODELS = {
    (0x41, 0xD08): "Cortex-A72",
    (0x41, 0xD0B): "Cortex-A76",
    (0x41, 0xD0C): "Neoverse-N1",
    (0x41, 0xD40): "Neoverse-V1",
    (0x41, 0xD49): "Neoverse-N2",
    (0x41, 0xD4F): "Neoverse-V2",
    (0x41, 0xD84): "Neoverse-V3",
    (0x41, 0xD8E): "Neoverse-N3",
    (0x43, 0x0AF): "ThunderX2",
    (0x46, 0x001): "A64FX",
    (0x48, 0xD01): "Kunpeng-920",
    (0x6D, 0xD49): "Cobalt-100",
    (0xC0, 0xAC3): "Ampere-1",
    (0xC0, 0xAC4): "Ampere-1A",
}


def arm_model(implementer: str, part: str) -> tuple[str | None, str | None]:
    """Model and vendor; numbers without a name are shown as they are."""
    try:
        vendor_id, part_id = int(implementer, 16), int(part, 16)
    except ValueError:
        return None, None
    vendor = _VENDORS.get(vendor_id, f"implementer {vendor_id:#x}")
    return _MODELS.get((vendor_id, part_id), f"{vendor} part {part_id:#x}"), vendor
