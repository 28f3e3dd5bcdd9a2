"""What can be read from and written to hardware: one file for each backend, all behind `interface`.

May import: `control` (dvfs), `catalogue`, `settings`, `model`, `errors`. Decides nothing: the agent says what to set,
keeps the journal of what was found, and puts it back.
"""
