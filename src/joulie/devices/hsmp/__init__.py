"""Power limits of AMD EPYC sockets through HSMP: its hwmon files, else its mailbox.

May import: what all backends share (`interface`, `sysfs`, `package_watts`). Never another backend.
"""
