"""dtf from Python: graphs, sessions on a cluster or in this process, checkpoints, trained models, and jobs.

    import dtf
    graph = dtf.Graph()
    w = graph.variable("w", [2, 1])
    x, y = graph.placeholder(dtf.float32, [64, 2], "x"), graph.placeholder(dtf.float32, [64, 1], "y")
    loss = dtf.reduce_mean(dtf.square(x @ w - y))
    training = dtf.Adam(0.01).minimize(loss)
    with dtf.Session(graph) as session:
        session.initialize()
        step, value = session.run([training.train, loss], {x: xs, y: ys})

common/api/python/README.md is the introduction.
"""
from typing import TYPE_CHECKING as _TYPE_CHECKING

import numpy as _np

from ._library import VERSION as __version__
from ._tensors import empty
from .cluster import ClusterSpec, Server, replica_device_setter
from .dataset import Dataset
from .errors import (BadDataError, CannotWriteError, ClosedError, DeadlineExceededError, Error, InternalError, InvalidArgumentError,
                     OutOfRangeError, PermissionDeniedError, TrainingFailedError, UnavailableError, UsageError)
from .graph import Function, Graph, Minimized, NodeInfo, Output
from .job_reader import JobReader
from .jobs import Job, launch
from .model import Model, Signature
from .ops import (FIFOQueue, accuracy, add, argmax, assign, assign_add, assign_sub, bias_add, cast, concat, cond, divide, equal, exp,
                  gather, group, identity, less, log, matmul, maximum, minimum, multiply, one_hot, op_names, raw_ops, reduce_max,
                  reduce_mean, reduce_min, reduce_sum, relu, reshape, sigmoid, sigmoid_cross_entropy_with_logits, softmax,
                  softmax_cross_entropy_with_logits, sparse_softmax_cross_entropy_with_logits, sqrt, square, squared_difference,
                  stop_gradient, subtract, tanh, while_loop)
from .optimizers import (Adadelta, Adagrad, Adam, AdamW, Ftrl, GradientDescent, Lamb, Lars, LearningRate, Momentum, Optimizer, RmsProp,
                         cosine_decay, exponential_decay, polynomial_decay)
from .saver import Checkpoint, Saver, latest_checkpoint, load_checkpoint
from .session import Session
from .supervisor import Supervisor, SyncMinimized, SyncReplicas

float32, uint8, int32, int64 = _np.float32, _np.uint8, _np.int32, _np.int64

__all__ = [name for name in dir() if not name.startswith("_")] + ["__version__"]

if not _TYPE_CHECKING:  # to a type checker, every name would be there
    def __getattr__(name: str) -> None:
        from ._habits import remedy
        raise AttributeError(f"module 'dtf' has no '{name}'{remedy(name)}")
