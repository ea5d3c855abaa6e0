"""Replacements for names of TensorFlow 1 that dtf lacks, for messages."""
from __future__ import annotations

_GRAPH = "there is no default graph: make a graph = dtf.Graph(), and write "
_HERE = "its names are in dtf itself, as "
_TYPES = "tensors are float32, uint8, int32 or int64"
_REMEDIES = {
    "placeholder": _GRAPH + "graph.placeholder(dtype, shape, name)",
    "Variable": _GRAPH + "graph.variable(name, shape, initializer)",
    "get_variable": _GRAPH + "graph.variable(name, shape, initializer)",
    "constant": _GRAPH + "graph.constant(value, shape)",
    "zeros": _GRAPH + "graph.constant(0, shape)",
    "ones": _GRAPH + "graph.constant(1, shape)",
    "device": _GRAPH + "graph.device(name)",
    "name_scope": _GRAPH + "graph.name_scope(name)",
    "variable_scope": _GRAPH + "graph.name_scope(name)",
    "gradients": _GRAPH + "graph.gradients(loss, xs)",
    "get_default_graph": _GRAPH + "dtf.Session(graph)",
    "reset_default_graph": _GRAPH + "dtf.Session(graph)",
    "InteractiveSession": "write dtf.Session(graph)",
    "global_variables_initializer": "write session.initialize(seed)",
    "initialize_all_variables": "write session.initialize(seed)",
    "random_normal": "write graph.variable(name, shape, \"random_normal=0.1\"), or use dtf.raw_ops.StatelessRandomNormal",
    "truncated_normal": "write graph.variable(name, shape, \"truncated_normal=0.1\")",
    "nn": _HERE + "dtf.relu(x), dtf.softmax_cross_entropy_with_logits(labels=, logits=); dtf.op_names() lists all ops",
    "math": _HERE + "dtf.log(x)",
    "train": _HERE + "dtf.Adam(0.01), dtf.Saver(), dtf.Server(cluster, job_name, task_index), dtf.Supervisor(graph)",
    "summary": "name scalars in dtf.Supervisor(graph, summaries=[loss])",
    "ConfigProto": "the options are arguments of dtf.Session",
    "app": "write an ordinary main(), with argparse",
    "flags": "write an ordinary main(), with argparse",
    "layers": "write the ops of a layer, or describe it in a job's file for dtf.launch()",
    "keras": "describe the layers in a job's file for dtf.launch()",
    "to_float": "write dtf.cast(x, dtf.float32)",
    "to_int32": "write dtf.cast(x, dtf.int32)",
    "mul": "write dtf.multiply(a, b), or a * b",
    "sub": "write dtf.subtract(a, b), or a - b",
    "div": "write dtf.divide(a, b), or a / b",
    "pow": "write a ** b",
    "float64": _TYPES, "float16": _TYPES, "int16": _TYPES, "string": _TYPES,
    "Output.eval": "write session.run(output)",
    "Output.get_shape": "write output.shape",
    "Output.set_shape": "its shape is fixed",
    "bool": _TYPES + "; comparisons give uint8",
}


def remedy(name: str) -> str:
    """Returns the end of a message, with what to write; empty for any other name."""
    from . import optimizers
    shorter = name[:-len("Optimizer")] if name.endswith("Optimizer") else ""
    kinds = {kind.lower(): kind for kind in vars(optimizers)}
    if shorter.lower() in kinds:
        return f": write dtf.{kinds[shorter.lower()]}(learning_rate)"
    if name == "SyncReplicasOptimizer":
        return ": write dtf.SyncReplicas(optimizer, replicas_to_aggregate, rank=)"
    return f": {_REMEDIES[name]}" if name in _REMEDIES else ""
