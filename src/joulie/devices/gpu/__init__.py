"""What GPU backends share: boards and their ranges, one capper for all of them, calls into drivers with a time limit.

May import: `interface`. Knows no vendor: `nvidia` and `amd` bring their own way to the boards.
"""
