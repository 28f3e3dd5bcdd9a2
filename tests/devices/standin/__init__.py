"""Small C libraries that stand in for NVML and AMD SMI, so that the real Python bindings can be driven without a GPU.

A binding loads its library once in a process, so each test drives one in a process of its own (`driver`), and plays
what happens to the boards by appending lines to a file that the library reads at every call (`play`).
"""
