"""Known CPUs and GPUs, their limits and power curves, and where each number comes from.

May import: `model` and `errors`. Never does I/O: a catalogue file is read by a shell and handed to `parse`.
"""
