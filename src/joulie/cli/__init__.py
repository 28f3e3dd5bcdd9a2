"""The command line: reads arguments, calls the layers below and prints the result. It makes no decisions of its own.

`commands` is the table of commands. A command is a module that is imported only when it runs, which keeps
`joulie --help` fast. Each folder holds the commands of one purpose and never imports another folder of commands; what
several of them need lives in `views`, in `installation` or next to this file. An import contract in pyproject.toml
enforces that.
"""
