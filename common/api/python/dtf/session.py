"""Sessions run any part of a graph, on tasks that serve or in this process."""
from __future__ import annotations

import contextlib
import ctypes
from typing import Any, Callable, Mapping, Sequence, Union

import numpy as np
from numpy.typing import ArrayLike

from . import _tensors, errors
from ._calls import Handle, interruptible
from ._library import UINT64_MAX, CFeed, CSessionOptions, grown, lib, text, texts, whole
from .graph import Graph, Output

Array = np.ndarray[Any, Any]
Key = Union[Output, str]


def _flat(fetches: Any) -> list[Key]:
    if isinstance(fetches, (Output, str)):
        return [fetches]
    if isinstance(fetches, Mapping):
        return [one for each in fetches.values() for one in _flat(each)]
    fields = getattr(fetches, "_fields", ())  # of Minimized and SyncMinimized: not all of them have values
    if "train" in fields and ("finish" in fields or None in fetches):
        raise errors.InvalidArgumentError("a training step has no value as a whole: run its `train`, as session.run(training.train)")
    if isinstance(fetches, (list, tuple)):
        return [one for each in fetches for one in _flat(each)]
    raise errors.InvalidArgumentError(f"{fetches!r} can't be fetched: name a dtf.Output, its name, or a list, tuple or dict of them")


def _built(fetches: Any, values: list[Array]) -> Any:
    """Returns the values, taken from the front of the list, in the form of the fetches."""
    if isinstance(fetches, (Output, str)):
        return values.pop(0)
    if isinstance(fetches, Mapping):
        return {key: _built(each, values) for key, each in fetches.items()}
    made = [_built(each, values) for each in fetches]
    if not isinstance(fetches, tuple):
        return made
    return type(fetches)(*made) if hasattr(fetches, "_fields") else tuple(made)


def options_of(*, connect_seconds: float = 0, register_seconds: float = 0, step_seconds: float = 0, abort_seconds: float = 0,
               soft_placement: bool = False, keys: str = "", insecure: bool = False) -> CSessionOptions:
    """Returns the options of a session; seconds of 0 stand for the defaults of dtf.h."""
    return CSessionOptions(connect_seconds=connect_seconds, register_seconds=register_seconds, step_seconds=step_seconds,
                           abort_seconds=abort_seconds, soft_placement=int(soft_placement), keys=text(keys), insecure=int(insecure))


def targets_of(targets: str | Sequence[str] | None) -> list[str]:
    return [targets] if isinstance(targets, str) else list(targets or [])


class Steps:
    """The steps of a session on a copy of a graph."""

    def __init__(self, graph: Graph):
        self.graph = graph
        self._nodes = graph.count_nodes()

    def _step(self, call: Callable[..., bool], interrupt: Callable[[], None], fetches: Any,
              feed_dict: Mapping[Key, ArrayLike] | None, targets: Key | Sequence[Key]) -> Any:
        """Runs call(feeds, count, names, count, values, targets, count), which returns False if there are no values: None."""
        wanted, also = _flat(fetches), _flat([targets] if isinstance(targets, (Output, str)) else list(targets))
        names, more = texts([self._name(one) for one in wanted]), texts([self._name(one) for one in also])
        fed = [(text(self._name(key)), self._fed(key, value)) for key, value in (feed_dict or {}).items()]

        def step() -> list[Array] | None:
            feeds = (CFeed * len(fed))(*[CFeed(name, memory.handle) for name, memory in fed])
            values = (ctypes.c_void_p * len(wanted))()
            if not call(feeds, len(fed), names, len(wanted), values, more, len(also)):
                return None
            return [_tensors.Memory(ctypes.c_void_p(value)).array() for value in values]

        arrays = interruptible(step, interrupt)
        return None if arrays is None else _built(fetches, arrays)

    def _name(self, one: Key) -> str:
        if isinstance(one, Output):
            if one.graph is not self.graph:
                raise errors.InvalidArgumentError(f"{one.name} is of another graph than the session's")
            if one.node >= self._nodes:
                raise errors.InvalidArgumentError(f"{one.name} was added after the session was opened, which has a copy of the graph: "
                                                  "open another session")
            return one.name
        if not isinstance(one, str):
            raise errors.InvalidArgumentError(f"{one!r} is no dtf.Output, nor the name of one")
        return one

    def _fed(self, key: Key, value: ArrayLike) -> _tensors.Memory:
        output = key if isinstance(key, Output) else self.graph.named(key)
        dtype, shape = (None, None) if output is None else output.graph.spec(output)
        return _tensors.memory_of(_tensors.fed_array(self._name(key), value, dtype, shape))


class Session(Steps):
    """A client's session on a copy of a graph. A context manager.

    `targets`: "dtf://host:port" of one task, which knows the others of its cluster file, or of several; none: the CPU of
    this process. `keys`: a folder made by `dtf-launch keys`. Seconds of 0 stand for the defaults of dtf.h.

    Threads: any number at once. Steps with the same feeds, fetches and targets run one after another.
    Ctrl-C ends a waiting call with KeyboardInterrupt, and aborts the steps of this session.
    Errors: UnavailableError for a task that doesn't reply, or is lost: its state is gone, open another session;
    DeadlineExceededError; InvalidArgumentError for a feed, a fetch or a device; TrainingFailedError of a kernel;
    OutOfRangeError of a queue that is closed; ClosedError after close().
    """

    def __init__(self, graph: Graph, targets: str | Sequence[str] | None = None, *, connect_seconds: float = 0,
                 register_seconds: float = 0, step_seconds: float = 0, abort_seconds: float = 0, soft_placement: bool = False,
                 keys: str = "", insecure: bool = False):
        super().__init__(graph)
        places = targets_of(targets)
        options = options_of(connect_seconds=connect_seconds, register_seconds=register_seconds, step_seconds=step_seconds,
                             abort_seconds=abort_seconds, soft_placement=soft_placement, keys=keys, insecure=insecure)

        def opened() -> Handle:
            made = ctypes.c_void_p()
            with graph.lock:
                self._initial, copy = graph.initial_arrays(), graph.copied()
            with copy as pointer:
                lib.session_open(pointer, texts(places), len(places), ctypes.byref(options), ctypes.byref(made))
            return Handle(made, lib.session_free, "session")

        self._handle = interruptible(opened)

    # ---- steps
    def run(self, fetches: Any, feed_dict: Mapping[Key, ArrayLike] | None = None, *, targets: Key | Sequence[Key] = ()) -> Any:
        """Runs the ops that the fetches and targets need. Returns the values of the fetches in their form: an array for an
        Output or a name, else a list, tuple or dict as given. `targets`: ops to run without their values.

        A value that is fed is copied, unless its array is from dtf.empty() or a fetch. Numbers and arrays of another
        dtype are converted if no value changes but by rounding of floats.
        """
        def call(*arguments: Any) -> bool:
            with self._handle as session:
                lib.session_run(session, *arguments)
            return True

        return self._step(call, self._interrupt, fetches, feed_dict, targets)

    def abort(self, why: str = "aborted") -> None:
        """Ends the steps that run now, in other threads, with UnavailableError."""
        with self._handle as session:
            lib.session_abort(session, text(why))

    def _interrupt(self) -> None:
        with contextlib.suppress(errors.Error):
            self.abort("the client was interrupted")

    # ---- variables
    def initialize(self, seed: int = 0) -> None:
        """Gives every variable its initial value, on its task; replaces values that are there. The values follow from the
        seed and the order of the variables, as in a job with this seed. With several clients one initializes."""
        number = whole("seed", seed, 0, UINT64_MAX)
        self._blocking(lambda session: lib.session_initialize(session, number))
        for name, value in self._initial.items():
            self.set_variable(name, value)

    def uninitialized(self) -> list[str]:
        """Returns the names of the variables without a value."""
        def names(session: Any) -> list[str]:
            listed = grown(lambda buffer, room, size: lib.session_uninitialized(session, buffer, room, size))
            return listed.decode().split("\n")[:-1] if listed else []
        return self._blocking(names)  # type: ignore[no-any-return]

    def set_variable(self, name: Key, value: ArrayLike) -> None:
        """Sets a variable from the next step on."""
        memory = self._fed(name, value)
        self._blocking(lambda session: lib.session_set_variable(session, text(self._name(name).partition(":")[0]), memory.handle))

    def reset(self, container: str = "") -> None:
        """Drops the variables of a container on all tasks of the session, and empties its queues, for every client."""
        self._blocking(lambda session: lib.session_reset(session, text(container)))

    # ---- its end
    def close(self) -> None:
        """Aborts the steps that run, waits for their ends, and frees the session's resources on its tasks. Variables stay."""
        def abort(session: Any) -> None:
            with contextlib.suppress(errors.Error):
                lib.session_abort(session, text("the session was closed"))
        self._handle.close(abort)

    @property
    def closed(self) -> bool:
        return self._handle.closed

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def use(self) -> Handle:
        """The session of the C interface, for other modules: `with session.use() as pointer`."""
        return self._handle

    def _blocking(self, call: Callable[[Any], Any]) -> Any:
        def within() -> Any:
            with self._handle as session:
                return call(session)
        return interruptible(within, self._interrupt)
