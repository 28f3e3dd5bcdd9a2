"""The command line: reads arguments, calls the layers below, prints. Decides nothing itself.

Each command is a module that is imported only when it runs, so that `joulie --help` starts at once.
"""
