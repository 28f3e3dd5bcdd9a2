"""Power limits of AMD boards: the files of the amdgpu driver, else AMD SMI.

May import: `gpu`, `sysfs`, `interface`. Never another backend. Loads the vendor's binding only when first asked.
"""
