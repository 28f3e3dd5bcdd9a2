"""What people see of a cluster: page, terminal and `doctor` say the same because they ask here.

Pure: a snapshot and the time go in, frozen views come out that encode to JSON as they are. Imports model, settings,
physics and control; never does I/O, reads no clock, formats nothing for a particular screen.
"""
