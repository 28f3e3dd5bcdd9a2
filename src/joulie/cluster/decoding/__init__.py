"""Kubernetes objects as JSON or plain data to the model that decisions read, with errors that name the field.

May import: `port`, and `control` and everything below it. Reads no files and calls no server.
"""
