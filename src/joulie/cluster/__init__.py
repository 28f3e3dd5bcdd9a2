"""Where objects live: files (`manifests`) and their form (`wire`: JSON to and from the model).

May import: `control` and everything below it. Decides nothing itself.
"""
