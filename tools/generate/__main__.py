"""`python -m tools.generate`: bring every generated file up to date, or with `--check` list the outdated ones."""

from tools.generate.files import command

command()
