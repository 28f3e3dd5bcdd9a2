"""Everything that a release consists of, made into one folder: image, chart, wheel, kubectl plug-in, SBOM, checksums.

The same commit gives the same bytes, wherever it is built.
"""
