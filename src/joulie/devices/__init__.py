"""What can be read from and written to hardware: a package a backend, behind `interface`, listed in `backends`.

May import: `control` (dvfs), `catalogue`, `settings`, `model`, `errors`. Decides nothing: the agent says what to set,
keeps the journal of what was found, and puts it back.
"""
