"""Power limits and energy counters of CPU packages through the kernel's powercap files.

May import: what all backends share (`interface`, `sysfs`, `package_watts`). Never another backend.
"""
