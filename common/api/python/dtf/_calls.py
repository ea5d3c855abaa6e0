"""Calls that may block: they end by Ctrl-C, and their handles live until the last of them has ended."""
from __future__ import annotations

import os
import queue
import threading
from typing import Any, Callable, TypeVar

from .errors import ClosedError

T = TypeVar("T")


class _Helper:
    """A thread for calls of the main thread, which waits for them in Python: only there Ctrl-C becomes KeyboardInterrupt."""

    def __init__(self) -> None:
        self.work: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        threading.Thread(target=self._serve, name="dtf-call", daemon=True).start()

    def _serve(self) -> None:
        while True:
            self.work.get()()


_idle: list[_Helper] = []  # append() and pop() are atomic
os.register_at_fork(after_in_child=_idle.clear)  # a child has no threads but its own


def _in_helper(call: Callable[[], T]) -> tuple[threading.Lock, list[Any]]:
    """Starts a call. Returns a lock that is released at its end, and its outcome: ("value", value), or ("error", error)."""
    try:
        helper = _idle.pop()
    except IndexError:
        helper = _Helper()
    ended, outcome = threading.Lock(), []  # type: ignore[var-annotated]
    ended.acquire()

    def work() -> None:
        try:
            outcome[:] = ["value", call()]
        except BaseException as error:  # raised by the waiting thread
            outcome[:] = ["error", error]
        ended.release()
        _idle.append(helper)

    helper.work.put(work)
    return ended, outcome


def interruptible(call: Callable[[], T], abort: Callable[[], None] | None = None) -> T:
    """Runs a call that blocks in C. An exception of a signal's handler, as KeyboardInterrupt, leaves it: `abort` is to end the
    call; without it, or at a second Ctrl-C, the call goes on in its thread, and its result is dropped."""
    if threading.current_thread() is not threading.main_thread():
        return call()  # signals are handled in the main thread alone
    ended, outcome = _in_helper(call)
    try:
        ended.acquire()
    except BaseException:
        if abort is not None:
            abort()
            while not ended.acquire(timeout=0.05):
                abort()  # it may not have begun before
        raise
    kind, result = outcome
    outcome.clear()
    if kind == "error":
        try:
            raise result
        finally:
            del result  # its traceback would hold this frame, and this frame it
    return result  # type: ignore[no-any-return]


class Handle:
    """An object of libdtf. Freed when it is closed and no call uses it: `with handle as pointer`."""

    def __init__(self, pointer: Any, free: Callable[[Any], None], what: str):
        self._pointer, self._free, self._what = pointer, free, what
        self._lock, self._users, self._closed = threading.Lock(), 0, False

    def __enter__(self) -> Any:
        with self._lock:
            if self._closed:
                raise ClosedError(f"the {self._what} is closed: make another")
            self._users += 1
            return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._users -= 1
            is_last = self._closed and self._users == 0
        if is_last:
            self._free(self._pointer)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._lock:
            is_last = not self._closed and self._users == 0
            self._closed = True
        if is_last:
            self._free(self._pointer)

    def __del__(self) -> None:
        self.close()
