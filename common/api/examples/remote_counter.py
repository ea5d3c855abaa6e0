#!/usr/bin/env python3
"""The C interface from Python, with nothing but ctypes: adds to the variable that remote_counter.c adds to.

Usage: remote_counter.py LIBDTF PS AMOUNT       libdtf.so, and dtf://host:port of a `psd --serve`

Two things must run first: a ps that serves, and remote_counter.c once, which gives the counter its first value. Without
the second, the error is that the variable 'counter' has no value yet.
    psd --cluster configs/clusters/local.yaml --task 0 --serve
    remote_counter dtf://localhost:2221 0 0
The package `dtf` (common/api/python) has classes for all of this.
"""
import ctypes
import sys


class Output(ctypes.Structure):
    _fields_ = [("node", ctypes.c_int32), ("index", ctypes.c_int32)]


class Feed(ctypes.Structure):
    _fields_ = [("tensor", ctypes.c_char_p), ("value", ctypes.c_void_p)]


class Dtf:
    """The functions of libdtf by their names without 'dtf_'; a result other than 0 becomes an exception."""

    FLOAT32 = 1

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.dtf_error_message.restype = ctypes.c_char_p
        self.library.dtf_tensor_data.restype = ctypes.c_void_p
        self.library.dtf_node_double.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_double]

    def call(self, name, *arguments):
        if getattr(self.library, "dtf_" + name)(*arguments) != 0:
            raise RuntimeError(self.library.dtf_error_message().decode())

    def make(self, name, *arguments):
        """Calls a function that returns a new object through its last argument."""
        made = ctypes.c_void_p()
        self.call(name, *arguments, ctypes.byref(made))
        return made

    def node(self, graph, op, name, inputs=(), scalar=False, dtype=None, initializer=None, device=None):
        node = self.make("node_new", graph, op, name)
        for one in inputs:
            self.library.dtf_node_input(node, one)
        if scalar:
            self.call("node_shape", node, b"shape", None, ctypes.c_size_t(0))
        if dtype:
            self.call("node_dtype", node, b"dtype", dtype)
        if initializer:
            self.library.dtf_node_text(node, b"initializer", initializer)
        if device:
            self.library.dtf_node_device(node, device)
        output = Output(0, 0)
        self.call("node_add", node, ctypes.byref(output))  # its first field is the node's number
        return output

    def scalar(self, value):
        tensor = self.make("tensor_new", self.FLOAT32, None, ctypes.c_size_t(0))
        ctypes.cast(self.library.dtf_tensor_data(tensor), ctypes.POINTER(ctypes.c_float))[0] = value
        return tensor

    def value(self, tensor):
        return ctypes.cast(self.library.dtf_tensor_data(tensor), ctypes.POINTER(ctypes.c_float))[0]


def main(library, ps, amount):
    dtf = Dtf(library)
    graph = dtf.make("graph_new")
    counter = dtf.node(graph, b"Variable", b"counter", scalar=True, initializer=b"zeros", device=b"/job:ps/task:0")
    placeholder = dtf.node(graph, b"Placeholder", b"amount", scalar=True, dtype=dtf.FLOAT32)
    dtf.node(graph, b"AssignAdd", b"added", inputs=(counter, placeholder))
    targets = (ctypes.c_char_p * 1)(ps.encode())
    session = dtf.make("session_open", graph, targets, ctypes.c_size_t(1), None)
    dtf.library.dtf_graph_free(graph)
    fed = dtf.scalar(amount)
    feed = Feed(b"amount", fed)
    fetches = (ctypes.c_char_p * 1)(b"added")
    values = (ctypes.c_void_p * 1)()
    dtf.call("session_run", session, ctypes.byref(feed), ctypes.c_size_t(1), fetches, ctypes.c_size_t(1), values, None,
             ctypes.c_size_t(0))
    print(f"{dtf.value(ctypes.c_void_p(values[0])):g}")
    dtf.library.dtf_tensor_free(fed)
    dtf.library.dtf_tensor_free(ctypes.c_void_p(values[0]))
    dtf.library.dtf_session_free(session)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(sys.argv[1], sys.argv[2], float(sys.argv[3]))
