"""Calls that may block: they end by Ctrl-C, and their handles live until the last of them has ended."""
from __future__ import annotations

import os
import queue
import threading
from typing import Any, Callable, TypeVar

from .errors import ClosedError

T = TypeVar("T")
_ABORT_AGAIN_SECONDS = 0.05


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
            while not ended.acquire(timeout=_ABORT_AGAIN_SECONDS):
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
    """An object of libdtf. Freed when it is closed and no call uses it: `with handle as pointer`.

    After os.fork() it belongs to the parent, whose threads serve it: a child can neither use nor free it. `forks`: it has no
    threads, connections or files, and a child has a copy of its own.
    """

    def __init__(self, pointer: Any, free: Callable[[Any], None], what: str, *, forks: bool = False):
        self._pointer, self._free, self._what = pointer, free, what
        self._changed, self._users, self._closed = threading.Condition(threading.Lock()), 0, False
        self._process = 0 if forks else os.getpid()

    def __enter__(self) -> Any:
        if self._is_of_the_parent():  # a lock of the parent may be held for ever
            raise ClosedError(f"the {self._what} was opened before fork: open a {self._what} in the child")
        with self._changed:
            if self._closed:
                raise ClosedError(f"the {self._what} is closed: make another")
            self._users += 1
            return self._pointer

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._users -= 1
            is_last = self._closed and self._users == 0
            if self._closed:
                self._changed.notify_all()
        if is_last:
            self._free(self._pointer)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self, abort: Callable[[Any], object] | None = None) -> None:
        """No call begins from now on. With `abort`, which ends the calls that run, it waits for them; without, the last of them
        frees the object."""
        if self._is_of_the_parent():
            self._closed = True
            return
        with self._changed:
            if self._closed:
                return
            self._closed = True
            self._users += 1  # this call, so that the pointer is good until its end
        try:
            while abort is not None and self._users > 1:
                abort(self._pointer)  # again and again: a call may have entered, and not begun to wait
                with self._changed:
                    self._changed.wait_for(lambda: self._users == 1, _ABORT_AGAIN_SECONDS)
        finally:
            self.__exit__()

    def _is_of_the_parent(self) -> bool:
        return self._process not in (0, os.getpid())

    def __del__(self) -> None:
        self.close()
