"""A throttle of CPU cores through the kernel's frequency policies, where no power limit can be set.

May import: `interface`, `sysfs`, and of `control` the rule that turns percent into a frequency. Never another backend.
"""
