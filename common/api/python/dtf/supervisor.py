"""Training by several clients: synchronous replicas, and the Supervisor that initialises, restores, saves and recovers."""
from __future__ import annotations

import contextlib
import ctypes
import os
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

from numpy.typing import ArrayLike

from . import errors
from ._calls import Handle, interruptible
from ._library import (UINT64_MAX, CMinimizeOptions, COutput, CSupervisorOptions, CSyncReplicasOptions, lib, text, texts,
                       whole)
from .graph import Graph, Output
from .optimizers import Optimizer, settings_text
from .session import Key, Steps, options_of, targets_of


class SyncMinimized(NamedTuple):
    """The training step of SyncReplicas.minimize()."""
    train: Output  # runs a step, with the other clients; its value is the global step after it
    global_step: Output
    norm: Output | None
    accepted: Output  # int64: 1 if the step has this client's gradient, 0 if it was late
    finish: Output  # an op to run at the end: no client waits any more


class SyncReplicas:
    """TensorFlow's SyncReplicasOptimizer: one step takes the mean of `replicas_to_aggregate` gradients.

    `total_num_replicas`: the number of clients; more than replicas_to_aggregate: the others are backups. `rank`: of this
    client, from 0. All clients have the same graph besides.
    """

    def __init__(self, optimizer: Optimizer | str, replicas_to_aggregate: int = 0, total_num_replicas: int = 0, *, rank: int):
        self._text = optimizer if isinstance(optimizer, str) else optimizer.text()
        self._options = CSyncReplicasOptions(
            replicas_to_aggregate=whole("replicas_to_aggregate", replicas_to_aggregate),
            total_num_replicas=whole("total_num_replicas", total_num_replicas), rank=whole("rank", rank))

    def minimize(self, loss: Output, global_step: Output | str = "global_step", *, var_list: Sequence[Output] = (),
                 clip_by_global_norm: float | None = None, clip_by_value: float | None = None,
                 moving_average_decay: float | None = None) -> SyncMinimized:
        """As Graph.minimize()."""
        graph = loss.graph
        words = settings_text(self._text, {"clip_by_global_norm": clip_by_global_norm, "clip_by_value": clip_by_value,
                                           "moving_average.decay": moving_average_decay})
        counter = graph.node_name(global_step.node) if isinstance(global_step, Output) else global_step
        options = CMinimizeOptions(variables=graph.several(var_list), variables_count=len(var_list), prefix=text(graph.prefix),
                                   global_step=text(counter))
        made = [COutput() for _ in range(4)]
        finish = ctypes.c_int32()
        with graph.lock, graph.use() as pointer:
            lib.graph_sync_replicas(pointer, COutput(loss.node, loss.index), text(words), ctypes.byref(options),
                                    ctypes.byref(self._options), *[ctypes.byref(one) for one in made], ctypes.byref(finish))
        train, count, norm, accepted = (Output(graph, one.node, one.index) for one in made)
        return SyncMinimized(train, count, norm if norm.node >= 0 else None, accepted, Output(graph, finish.value))


class Supervisor(Steps):
    """TensorFlow's Supervisor: the chief initialises or restores the model, saves it, and writes summaries; the others wait for
    it. A lost task is waited for, and the model restored.

        supervisor = dtf.Supervisor(graph, is_chief=task_index == 0, log_dir="runs/mnist", summaries=[loss])
        with supervisor.managed_session(server.target) as session:
            while not session.should_stop():
                values = session.run([training.train, loss], {x: images, y: labels})
                if values is None:  # a task was lost and is back: the global step may be an earlier one
                    continue

    `log_dir`: checkpoints in log_dir/checkpoints, event files of TensorBoard in log_dir; all clients of a run name the same.
    `summaries`: float32 scalars, written when a step fetches them. `handle_signals`: SIGTERM and Ctrl-C end should_stop(), in
    place of Python's handlers. Seconds and counts of 0 stand for the defaults of dtf.h.
    Threads: one at a time; request_stop() and should_stop() from any. Errors: as Session; DeadlineExceededError names the
    event that did not come within wait_seconds.
    """

    def __init__(self, graph: Graph, *, is_chief: bool = True, log_dir: str | os.PathLike[str] = "", task: str = "", seed: int = 0,
                 save_seconds: float = 0, summary_seconds: float = 0, wait_seconds: float = 0, poll_seconds: float = 0,
                 summaries: Sequence[Key] = (), global_step: Output | str = "global_step", job: str = "graph", max_to_keep: int = 0,
                 handle_signals: bool = False):
        super().__init__(graph)
        self._check_initializers()
        counter = graph.node_name(global_step.node) if isinstance(global_step, Output) else global_step
        options = CSupervisorOptions(
            is_chief=int(is_chief), task=text(task), log_dir=text(os.fspath(log_dir)), seed=whole("seed", seed, 0, UINT64_MAX),
            save_seconds=save_seconds, summary_seconds=summary_seconds, wait_seconds=wait_seconds, poll_seconds=poll_seconds,
            summaries=texts([self._name(one) for one in summaries]), summaries_count=len(summaries), global_step=text(counter),
            job=text(job), max_to_keep=whole("max_to_keep", max_to_keep), handle_signals=int(handle_signals))
        made = ctypes.c_void_p()
        lib.supervisor_new(ctypes.byref(options), ctypes.byref(made))
        self._handle = Handle(made, lib.supervisor_free, "supervisor")

    def prepare_or_wait_for_session(self, targets: str | Sequence[str] | None = None, **options: Any) -> Supervisor:
        """Opens the session on the targets, with the options of Session. The chief restores or initialises the model, the others
        wait until it is ready. Returns this object, which runs the steps."""
        self._check_initializers()  # of variables that were added since
        places, how = targets_of(targets), options_of(**options)

        def prepared() -> Supervisor:
            with self.graph.copied() as graph, self._handle as supervisor:
                lib.supervisor_prepare(supervisor, graph, texts(places), len(places), ctypes.byref(how))
            return self
        return interruptible(prepared, self._interrupt)

    @contextlib.contextmanager
    def managed_session(self, targets: str | Sequence[str] | None = None, **options: Any) -> Iterator[Supervisor]:
        """prepare_or_wait_for_session(), and stop() at the end; after an error the end saves nothing."""
        try:
            yield self.prepare_or_wait_for_session(targets, **options)
            self.stop()
        finally:
            self.close()

    def run(self, fetches: Any, feed_dict: Mapping[Key, ArrayLike] | None = None, *, targets: Key | Sequence[Key] = ()) -> Any:
        """Runs a step as Session.run(). The chief saves, and writes summaries, when they are due. Returns None after a loss: the
        session was opened anew, and the step was taken or not; go on from global_step()."""
        def call(*arguments: Any) -> bool:
            recovered = ctypes.c_int()
            with self._handle as supervisor:
                lib.supervisor_run(supervisor, *arguments, ctypes.byref(recovered))
            return not recovered.value
        return self._step(call, self._interrupt, fetches, feed_dict, targets)

    def global_step(self) -> int:
        """Reads the global step."""
        def read() -> int:
            step = ctypes.c_int64()
            with self._handle as supervisor:
                lib.supervisor_global_step(supervisor, ctypes.byref(step))
            return step.value
        return interruptible(read, self._interrupt)

    def save(self) -> None:
        """The chief saves now; no effect in others."""
        def saved() -> None:
            with self._handle as supervisor:
                lib.supervisor_save(supervisor)
        interruptible(saved)

    def request_stop(self) -> None:
        with self._handle as supervisor:
            lib.supervisor_request_stop(supervisor)

    def should_stop(self) -> bool:
        with self._handle as supervisor:
            return bool(lib.supervisor_should_stop(supervisor))

    def stop(self) -> None:
        """Ends the supervision: the chief saves, if a step was taken since the last checkpoint."""
        def stopped() -> None:
            with self._handle as supervisor:
                lib.supervisor_stop(supervisor)
        interruptible(stopped)

    def close(self) -> None:
        """Aborts the step that runs in another thread, waits for its end, and frees the session. Saves nothing."""
        def abort(supervisor: Any) -> None:
            with contextlib.suppress(errors.Error):
                lib.supervisor_abort(supervisor, text("the supervisor was closed"))
        self._handle.close(abort)

    def _check_initializers(self) -> None:
        if self.graph.initial_values:
            raise errors.InvalidArgumentError(f"the variable '{next(iter(self.graph.initial_values))}' begins with an array, which only "
                                              "Session.initialize() sets: name an initializer, as \"glorot_uniform\"")

    def _interrupt(self) -> None:
        with contextlib.suppress(errors.Error), self._handle as supervisor:
            lib.supervisor_abort(supervisor, text("the client was interrupted"))
