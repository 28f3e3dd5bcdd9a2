"""What to do: classification, policies, transitions, caps, scores, the DVFS loop, and `decide`, which ties them.

May import: `physics`, `catalogue`, `model`, `settings`, `errors`. Never does I/O, reads a clock, the environment or a
plug-in registry, and never logs: time is an argument, plug-ins are handed in, and every result carries its reason.
"""
