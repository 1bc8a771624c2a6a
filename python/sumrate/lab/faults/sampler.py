"""Something that is looked at regularly while a `with` block runs."""

import threading
from abc import ABC, abstractmethod
from typing import Self


class Sampler(ABC):
    """Calls `sample` in a thread of its own, from the beginning of a `with` block to its end."""

    def __init__(self, interval_s: float) -> None:
        """Prepares it; `with` starts and ends it."""
        self._interval_s = interval_s
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @abstractmethod
    def sample(self) -> None:
        """Looks once."""

    def __enter__(self) -> Self:
        """Starts sampling."""
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        """Ends it."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.wait(self._interval_s):
            self.sample()
