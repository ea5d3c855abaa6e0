"""Tasks of a cluster: ClusterSpec, Server and replica_device_setter, as TensorFlow has them."""
from __future__ import annotations

import ctypes
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t
from typing import Callable, Mapping, Sequence, Union

from . import errors
from ._calls import Handle, interruptible
from ._library import CSized, H, lib, text, whole
from .graph import NodeInfo


class CServerOptions(CSized):
    _fields_ = [("size", c_size_t), ("keys", c_char_p), ("insecure", c_int64), ("devices", c_char_p), ("threads", c_int64),
                ("bytes_max", c_int64), ("handle_signals", c_int64), ("sessions_max", c_int64)]


lib.declare({
    "cluster_new": [POINTER(H)],
    "cluster_add": [H, c_char_p, c_char_p],
    "cluster_parse": [c_char_p, c_char_p, POINTER(H)],
    "server_start": [H, c_char_p, c_int64, POINTER(CServerOptions), POINTER(H)],
    "server_join": [H, c_double, c_char_p, c_size_t, POINTER(c_size_t), POINTER(c_int)],
    "server_stop": [H, c_char_p],
}, {
    "cluster_free": (None, [H]),
    "cluster_count": (c_size_t, [H, c_char_p]),
    "cluster_address": (c_char_p, [H, c_char_p, c_size_t]),
    "server_free": (None, [H]),
    "server_target": (c_char_p, [H]),
    "server_sessions": (c_size_t, [H]),
})

Addresses = Union[str, Sequence[str]]


class ClusterSpec:
    """The addresses of all tasks, equal in every program: {"ps": ["host:2222"], "worker": ["host:2223", ...]}, or the text of a
    cluster file, with its devices and keys; then `folder` is where its relative paths start.

    Errors: InvalidArgumentError for a job that is neither, and for an address that is none, or is there twice.
    """

    def __init__(self, cluster: Mapping[str, Addresses] | str, *, folder: str | os.PathLike[str] = "."):
        if not isinstance(cluster, (Mapping, str)):
            raise errors.InvalidArgumentError(f"{cluster!r} is no cluster: give a dict as {{'ps': ['host:2222'], "
                                              "'worker': ['host:2223']}, or the text of a cluster file")
        made = ctypes.c_void_p()
        if isinstance(cluster, str):
            lib.cluster_parse(text(cluster), text(os.fspath(folder)), ctypes.byref(made))
        else:
            lib.cluster_new(ctypes.byref(made))
        self._handle = Handle(made, lib.cluster_free, "cluster")
        for job, addresses in cluster.items() if isinstance(cluster, Mapping) else ():
            for address in addresses.split(",") if isinstance(addresses, str) else addresses:
                with self._handle as pointer:
                    lib.cluster_add(pointer, text(job), text(address))

    def num_tasks(self, job_name: str) -> int:
        with self._handle as pointer:
            return int(lib.cluster_count(pointer, text(job_name)))

    def task_address(self, job_name: str, task_index: int) -> str:
        index = whole("task_index", task_index)
        with self._handle as pointer:
            address = lib.cluster_address(pointer, text(job_name), index) if index >= 0 else None
        if address is None:
            raise errors.InvalidArgumentError(f"there is no task {task_index} of '{job_name}'")
        return str(address.decode())

    def as_dict(self) -> dict[str, list[str]]:
        return {job: [self.task_address(job, index) for index in range(self.num_tasks(job))]
                for job in ("ps", "worker") if self.num_tasks(job)}

    def use(self) -> Handle:
        """The cluster of the C interface: `with cluster.use() as pointer`."""
        return self._handle

    def __repr__(self) -> str:
        return f"dtf.ClusterSpec({self.as_dict()})"


class Server:
    """A task of a cluster in this process: it serves from now on, on threads of the library. A context manager.

    `handle_signals`: SIGTERM and Ctrl-C end join(), in place of Python's handlers. `devices`: "cpu:0,cpu:1,gpu:0".
    `sessions_max`: clients' sessions at once; 0: of the cluster's text, or 512.
    Errors: UnavailableError for an address that is in use; InvalidArgumentError for a task that the cluster lacks.
    """

    def __init__(self, cluster: ClusterSpec | Mapping[str, Addresses], job_name: str, task_index: int, *, keys: str = "",
                 insecure: bool = False, devices: str = "", threads: int = 0, bytes_max: int = 0, handle_signals: bool = False,
                 sessions_max: int = 0):
        spec = cluster if isinstance(cluster, ClusterSpec) else ClusterSpec(cluster)
        options = CServerOptions(keys=text(keys) if keys else None, insecure=int(insecure), devices=text(devices) if devices else None,
                                 threads=whole("threads", threads), bytes_max=whole("bytes_max", bytes_max),
                                 handle_signals=int(handle_signals), sessions_max=whole("sessions_max", sessions_max))
        made = ctypes.c_void_p()
        with spec.use() as pointer:
            lib.server_start(pointer, text(job_name), whole("task_index", task_index), ctypes.byref(options), ctypes.byref(made))
        self.cluster, self.job_name, self.task_index = spec, job_name, task_index
        self._handle = Handle(made, lib.server_free, "server")

    @property
    def target(self) -> str:
        """"dtf://host:port/worker/0": a target of sessions."""
        with self._handle as pointer:
            return str(lib.server_target(pointer).decode())

    @property
    def sessions(self) -> int:
        """The number of open sessions of clients."""
        with self._handle as pointer:
            return int(lib.server_sessions(pointer))

    def join(self, seconds: float = -1) -> str:
        """Blocks until the server is stopped, or for `seconds`: DeadlineExceededError. Returns why it was stopped. Ctrl-C ends it
        with KeyboardInterrupt, unless handle_signals."""
        reason = ctypes.create_string_buffer(4096)

        def joined() -> str:
            with self._handle as pointer:
                lib.server_join(pointer, seconds, reason, len(reason), None, None)
            return reason.value.decode(errors="replace")
        return interruptible(joined, self._interrupt)

    def stop(self, why: str = "stopped by the program") -> None:
        """Ends join(), from any thread. Clients are served until close()."""
        with self._handle as pointer:
            lib.server_stop(pointer, text(why))

    def close(self) -> None:
        """Stops, and ends the sessions of its clients."""
        if not self._handle.closed:
            self.stop()
        self._handle.close()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _interrupt(self) -> None:
        self.stop("interrupted")


def replica_device_setter(ps_tasks: int = 0, worker_device: str = "/job:worker",
                          cluster: ClusterSpec | Mapping[str, Addresses] | None = None,
                          ps_strategy: str | Callable[[NodeInfo], int] = "round_robin") -> Callable[[NodeInfo], str]:
    """Returns a function for Graph.device(): variables on the ps tasks, all other ops on `worker_device`. Use it for one graph.

    `ps_strategy`: "round_robin", each ps in turn; "greedy", the ps with the fewest bytes of variables, as TensorFlow's
    GreedyLoadBalancingStrategy; or a function from a variable's NodeInfo to the number of a ps. Programs that share variables make
    them in the same order, with the same strategy.
    """
    if cluster is not None:
        ps_tasks = (cluster if isinstance(cluster, ClusterSpec) else ClusterSpec(cluster)).num_tasks("ps")
    chosen = ps_strategy if callable(ps_strategy) else _strategy(ps_strategy, ps_tasks)

    def device(node: NodeInfo) -> str:
        if node.type != "Variable" or ps_tasks == 0:
            return worker_device
        return f"/job:ps/task:{whole('the ps of ps_strategy', chosen(node), 0, ps_tasks - 1)}"
    return device


def _strategy(name: str, ps_tasks: int) -> Callable[[NodeInfo], int]:
    if name not in ("round_robin", "greedy"):
        raise errors.InvalidArgumentError(f"ps_strategy is {name!r}: give \"round_robin\", \"greedy\", or a function from a NodeInfo to "
                                          "the number of a ps")
    variables, loads = 0, [0] * ps_tasks

    def chosen(node: NodeInfo) -> int:
        nonlocal variables
        ps = variables % ps_tasks if name == "round_robin" else loads.index(min(loads))
        variables += 1
        loads[ps] += node.bytes
        return ps
    return chosen
