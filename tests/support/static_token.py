"""A bearer token that never changes, for tests that were handed one."""

from __future__ import annotations


class StaticToken:
    """Authorization that the API server of a test accepts until its end."""

    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    async def header(self) -> str | None:
        return self._header

    def forget(self) -> None:
        """There is no other."""
