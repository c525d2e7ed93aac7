"""Hold signals back while processes are started or ended, so that none is leaked."""

from __future__ import annotations

import contextlib
import signal
import threading
from collections.abc import Iterator
from types import FrameType

__all__ = ["held_signals"]

_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR1)


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Inside, SIGINT, SIGTERM, SIGQUIT and SIGUSR1 are only recorded; they are raised at the end, under the previous handlers.

    An ignored signal stays ignored, and outside the main thread, which alone runs handlers, nothing is held. The handlers are exchanged
    and the signals not blocked, because a child would inherit a blocked signal.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    came: list[int] = []

    def note(number: int, frame: FrameType | None) -> None:
        del frame
        came.append(number)

    formers = {number: signal.getsignal(number) for number in _ENDING}
    held = {number: former for number, former in formers.items() if former not in (None, signal.SIG_IGN)}
    # Blocked for the moment of the exchange: a handler that raises in the middle of it would leave the others exchanged.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, held)
    for number in held:
        signal.signal(number, note)
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_BLOCK, held)
        for number, former in held.items():
            signal.signal(number, former)
        for noted in dict.fromkeys(came):
            signal.raise_signal(noted)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
