"""The image, built by the real Dockerfile without a daemon, and kept in the user's cache by what went into it.

buildah and a stand-in for the base image come from Debian's packages, unpacked and not installed.
"""
