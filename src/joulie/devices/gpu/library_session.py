"""A vendor's C library behind its Python binding: loaded late, started when needed, its failures given names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

from joulie.devices.interface import DeviceError, DeviceFaultError

Answer = TypeVar("Answer")
Meaning = tuple[type[DeviceError], str]  # the error to raise, and what a person can do
NO_MEANING: Meaning = (DeviceFaultError, "the driver failed")


class LibrarySession:
    """A session that is opened when first needed, reopened after it was lost, and otherwise kept."""

    library: ClassVar[str]
    meanings: ClassVar[Mapping[str, Meaning]]  # by the library's own name for the failure, without its prefix
    # What a new session can cure. Nothing else ends one: boards may lose their limits with it.
    session_lost: ClassVar[tuple[str, ...]]

    def __init__(self) -> None:
        self._binding: Any = None
        self._is_open = False

    def close(self) -> None:
        """Let go of the library; the binding stays loaded."""
        if self._is_open:
            self._abandon()

    def _ask(self, what: str, work: Callable[[Any], Answer]) -> Answer:
        """The result of `work` on the binding, within a session; every failure is a DeviceError about `what`."""
        if self._binding is None:
            self._binding = self._load()
        while True:
            was_open = self._is_open
            try:
                if not was_open:
                    self._start(self._binding)
                    self._is_open = True
                return work(self._binding)
            except DeviceError:
                raise
            except Exception as error:  # noqa: BLE001 - bindings raise what they like
                if self._is_lost(error):
                    self._abandon()
                    if was_open:
                        continue
                raise self._named(error, what) from None

    def _abandon(self) -> None:
        self._is_open = False
        try:
            self._stop(self._binding)
        except Exception:  # noqa: BLE001 - it was lost already
            return

    def _is_lost(self, error: Exception) -> bool:
        return self._is_one_of(self.session_lost, error)

    def _named(self, error: Exception, what: str) -> DeviceError:
        kind, hint = next(
            (meaning for name, meaning in self.meanings.items() if self._is_one_of((name,), error)), NO_MEANING
        )
        said = " ".join(str(error).split()) or type(error).__name__
        return kind(f"{what}: {hint} ({self.library} says: {said})")

    def _load(self) -> Any:
        raise NotImplementedError

    def _start(self, binding: Any) -> None:
        raise NotImplementedError

    def _stop(self, binding: Any) -> None:
        raise NotImplementedError

    def _is_one_of(self, names: tuple[str, ...], error: Exception) -> bool:
        raise NotImplementedError
