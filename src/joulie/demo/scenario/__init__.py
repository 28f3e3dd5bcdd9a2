"""What is played: the day, its jobs, the data centre, and how work progresses. Shared by live demo and replays.

May import: `simulator` and below. Reads no clock.
"""
