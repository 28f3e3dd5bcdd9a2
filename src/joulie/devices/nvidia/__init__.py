"""Power limits of NVIDIA boards through NVML.

May import: `gpu`, `interface`. Never another backend. Loads the vendor's binding only when first asked.
"""
