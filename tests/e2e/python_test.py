#!/usr/bin/env python3
"""The Python package `dtf` (common/api/python): graphs and sessions in this process and on a psd and a workerd that serve, checkpoints,
models, jobs, the wheel, and mistakes.

Usage: python_test.py LIBDTF DTF_LAUNCH [TEST...]         needs DTF_SOURCE_ROOT

Python without numpy fails the test: the package needs it.
"""
import gc
import os
import pathlib
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import venv

try:
    import numpy as np
except ImportError:
    sys.exit(f"{sys.executable} has no numpy: install python3-numpy, run scripts/python-env.sh, or set DTF_PYTHON")

LIBDTF, LAUNCH = (str(pathlib.Path(path).resolve()) for path in (sys.argv.pop(1), sys.argv.pop(1)))
SOURCE = pathlib.Path(os.environ["DTF_SOURCE_ROOT"]).resolve()
PACKAGE = SOURCE / "common/api/python"
EXAMPLES = SOURCE / "common/api/examples"
SHELLS = SOURCE / "configs/jobs/small/shells.yaml"
SEED = 20261201
os.environ.update(DTF_LIBRARY=LIBDTF, DTF_LAUNCH=LAUNCH)
sys.path[:0] = [str(PACKAGE), str(SOURCE / "tests/support")]
import dtf  # noqa: E402  the path is set above
from serving_tasks import PATIENCE, Cluster  # noqa: E402


def environment(**changes):
    return {**os.environ, "PYTHONPATH": str(PACKAGE), **changes}


class Case(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def refused(self, kind, words, call, *arguments, **named):
        """The call raises an exception of that kind, with the words in its text."""
        with self.assertRaisesRegex(kind, words) as caught:
            call(*arguments, **named)
        self.assertIsInstance(caught.exception, dtf.Error)
        return caught.exception

    def run_python(self, *arguments, code=0, **changes):
        done = subprocess.run([sys.executable, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE,
                              cwd=self.folder, env=environment(**changes))
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout, done.stderr


def regression(graph, device=None):
    """y = x w + b, with its loss and a training step."""
    with graph.device(device):
        w, b = graph.variable("w", [2, 1]), graph.variable("b", [1])
    x, y = graph.placeholder(dtf.float32, [64, 2], "x"), graph.placeholder(dtf.float32, [64, 1], "y")
    loss = dtf.reduce_mean(dtf.square(x @ w + b - y), name="loss")
    return x, y, loss, dtf.Adam(0.1).minimize(loss, clip_by_global_norm=5)


def regression_data():
    xs = np.random.default_rng(SEED).normal(size=(64, 2))
    return xs, xs @ [[3], [-2]] + 0.5


class GraphsAndSessions(Case):
    def test_a_model_learns_on_a_cluster_as_here(self):
        cluster = Cluster(self.folder, LAUNCH)
        self.addCleanup(cluster.close)
        learned = {}
        for target in (None, cluster.target):
            graph = dtf.Graph()
            x, y, loss, training = regression(graph, "/job:ps/task:0" if target else None)
            xs, ys = regression_data()
            with dtf.Session(graph, target) as session:
                self.assertIn("w/Adam", session.uninitialized())
                session.initialize(seed=1)
                self.assertEqual(session.uninitialized(), [])
                for _ in range(200):
                    step, last = session.run((training.train, loss), {x: xs, "y": ys})
                self.assertEqual(step, 200)
                self.assertLess(last, 1e-4)
                learned[target] = session.run("w")
        np.testing.assert_array_equal(learned[None], learned[cluster.target])
        np.testing.assert_allclose(learned[None], [[3], [-2]], atol=0.01)

    def test_a_lost_task_is_named_and_a_deadline_passes(self):
        cluster = Cluster(self.folder, LAUNCH)
        self.addCleanup(cluster.close)
        graph = dtf.Graph()
        with graph.device("/job:ps/task:0"):
            queue = dtf.FIFOQueue(graph, 2, [dtf.float32], [[2]], "waiting")
            taken = queue.dequeue()[0]
            w = graph.variable("w", initializer=[1.0, 2.0])
        with dtf.Session(graph, cluster.target, step_seconds=0.5) as session:
            session.initialize()
            np.testing.assert_array_equal(session.run(w), [1, 2])
            late = self.refused(dtf.DeadlineExceededError, "0.5", session.run, taken)
            self.assertIsInstance(late, TimeoutError)
            self.assertEqual(late.code, 124)
            cluster.tasks["ps"].kill()
            lost = self.refused(dtf.UnavailableError, "ps/0", session.run, w)
            self.assertIsInstance(lost, ConnectionError)
        self.refused(dtf.UnavailableError, "", dtf.Session, graph, "dtf://localhost:1", connect_seconds=0.2)

    def test_fetches_have_the_form_that_was_asked_for(self):
        graph = dtf.Graph()
        x = graph.placeholder(dtf.float32, [2], "x")
        with graph.name_scope("layer"):
            double = dtf.multiply(x, 2, name="double")
        self.assertEqual((double.name, double.dtype, double.shape), ("layer/double:0", np.float32, (2,)))
        pair = 1 - x, -x
        with dtf.Session(graph) as session:
            made = session.run({"a": double, "b": [pair, "x"]}, {x: [1, 2]})
        np.testing.assert_array_equal(made["a"], [2, 4])
        np.testing.assert_array_equal(made["b"][0][0], [0, -1])
        np.testing.assert_array_equal(made["b"][1], [1, 2])
        self.assertIsInstance(made["b"][0], tuple)

    def test_branches_loops_and_queues(self):
        body, graph = dtf.Graph(), dtf.Graph()
        value = body.placeholder(dtf.float32, [], "value")
        doubled = dtf.Function(body, [value], [value * 2])
        start, more = graph.placeholder(dtf.float32, [], "start"), graph.placeholder(dtf.float32, [], "more")
        grown, count = dtf.while_loop([start], doubled, max_iterations=5)
        chosen = dtf.cond(more, [start], doubled, dtf.Function(body, [value], [value]))[0]
        queue = dtf.FIFOQueue(graph, 3, [dtf.float32, dtf.int64], [[], []], "queue")
        put, taken, closed = queue.enqueue([start, graph.constant(7, dtype=dtf.int64)]), queue.dequeue(), queue.close()
        with dtf.Session(graph) as session:
            self.assertEqual(session.run([grown, count], {start: 3}), [96, 5])
            self.assertEqual([session.run(chosen, {start: 3, more: flag}) for flag in (0, 1)], [3, 6])
            session.run([], {start: 4}, targets=put)
            self.assertEqual(session.run(taken), [4, 7])
            session.run([], targets=closed)
            self.assertEqual(self.refused(dtf.OutOfRangeError, "closed", session.run, taken).code, 66)

    def test_arrays_keep_their_memory_and_go_back_without_a_copy(self):
        from dtf import _tensors
        graph = dtf.Graph()
        x = graph.placeholder(dtf.float32, [1000], "x")
        more = x + 1
        with dtf.Session(graph) as session:
            fetched = session.run(more, {x: np.arange(1000)})
        view = fetched[10:20]
        self.assertIs(_tensors.memory_of(fetched), fetched.base)
        self.assertIsNot(_tensors.memory_of(view), fetched.base, "a part is copied")
        self.assertIsNot(_tensors.memory_of(fetched.reshape(10, 100)), fetched.base)
        del fetched, session
        gc.collect()
        np.testing.assert_array_equal(view, np.arange(11, 21))
        own = dtf.empty((2, 3), dtf.int64)
        own[:] = 5
        self.assertEqual(_tensors.memory_of(own).address, own.ctypes.data)
        self.assertEqual(dtf.empty((0, 3)).shape, (0, 3))

    def test_each_optimizer_makes_a_loss_smaller(self):
        kinds = [dtf.GradientDescent, dtf.Momentum, dtf.Adagrad, dtf.Adadelta, dtf.Adam, dtf.AdamW, dtf.RmsProp, dtf.Ftrl, dtf.Lars, dtf.Lamb]
        for kind in kinds:
            for rate in [0.01, dtf.exponential_decay(0.01, 10, 0.9).warmup(2), dtf.cosine_decay(0.01, 100),
                         dtf.polynomial_decay(0.01, 100)][:1 if kind is dtf.Ftrl else 4]:
                graph = dtf.Graph()
                w = graph.variable("w", [3], "ones")
                loss = dtf.reduce_mean(w * w)
                optimizer = kind(rate, weight_decay=1e-4) if kind is dtf.AdamW else kind(rate)
                training = graph.minimize(loss, optimizer, moving_average_decay=0.9)
                with self.subTest(optimizer=optimizer), dtf.Session(graph) as session:
                    session.initialize()
                    before = session.run(loss)
                    for _ in range(5):
                        session.run(training.train)
                    self.assertLess(session.run(loss), before)

    def test_a_variable_and_its_moving_average_begin_with_its_array(self):
        graph = dtf.Graph()
        w = graph.variable("w", initializer=[1.0, 2.0])
        with dtf.Session(graph) as early:
            training = graph.minimize(dtf.reduce_sum(w), dtf.GradientDescent(0.5), moving_average_decay=0.75)
            later = graph.variable("later", initializer=[3.0])
            early.initialize()  # it has a copy of the graph before
            np.testing.assert_array_equal(early.run(w), [1, 2])
        with dtf.Session(graph) as session:
            session.initialize()
            np.testing.assert_array_equal(session.run("w/ExponentialMovingAverage"), [1, 2])
            np.testing.assert_array_equal(session.run(later), [3])
            session.run(training.train)
            np.testing.assert_array_equal(session.run("w/ExponentialMovingAverage"), [0.875, 1.875])

    def test_ctrl_c_ends_a_step_that_waits(self):
        program = ("import dtf, sys\ngraph = dtf.Graph()\nqueue = dtf.FIFOQueue(graph, 1, [dtf.float32], [[]], 'q')\n"
                   "taken, size = queue.dequeue()[0], queue.size()\n"
                   "with dtf.Session(graph) as session:\n    print(session.run(size), flush=True)\n    try:\n        session.run(taken)\n"
                   "    except KeyboardInterrupt:\n        print('interrupted', session.run(size))\n")
        process = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment())
        self.assertEqual(process.stdout.readline(), "0\n")
        while process.poll() is None:  # again and again: the first may come before the step waits
            process.send_signal(signal.SIGINT)
            if select.select([process.stdout], [], [], 0.3)[0]:
                break
        out, _ = process.communicate(timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (0, "interrupted 0\n"))

    def test_steps_of_several_threads_run_at_once_and_close_ends_them(self):
        graph = dtf.Graph()
        queue = dtf.FIFOQueue(graph, 1, [dtf.float32], [[]], "q")
        taken, put = queue.dequeue()[0], queue.enqueue([graph.constant(3)])
        session, outcomes = dtf.Session(graph), []

        def take():
            try:
                while True:
                    outcomes.append(float(session.run(taken)))
            except dtf.Error as error:
                outcomes.append(type(error))
        thread = threading.Thread(target=take)
        thread.start()
        session.run([], targets=put)  # `taken` waits in the other thread meanwhile
        while not outcomes and thread.is_alive():
            thread.join(0.01)
        session.close()
        thread.join(PATIENCE)
        self.assertEqual(outcomes[0], 3)
        self.assertIn(outcomes[-1], (dtf.UnavailableError, dtf.ClosedError))

    def test_close_ends_a_step_that_begins_meanwhile(self):
        """Threads that run the step again after each abort, until the session is closed."""
        graph = dtf.Graph()
        taken = dtf.FIFOQueue(graph, 1, [dtf.float32], [[]], "q").dequeue()[0]
        session, entered = dtf.Session(graph), threading.Semaphore(0)

        def take():
            while True:
                entered.release()
                try:
                    session.run(taken)
                except dtf.UnavailableError:
                    continue
                except dtf.ClosedError:
                    return
        threads = [threading.Thread(target=take, daemon=True) for _ in range(4)]
        for thread in threads:
            thread.start()
        for _ in threads:
            self.assertTrue(entered.acquire(timeout=PATIENCE))
        session.close()
        for thread in threads:
            thread.join(PATIENCE)
        self.assertEqual([thread.is_alive() for thread in threads], [False] * 4)

    def test_a_closed_handle_is_aborted_until_its_last_call_ends_and_then_freed(self):
        from dtf._calls import Handle
        entered, may_end, happened = threading.Event(), threading.Event(), []
        handle = Handle(7, lambda pointer: happened.append(f"freed {pointer}"), "thing")

        def call():
            with handle:
                entered.set()
                self.assertTrue(may_end.wait(PATIENCE))
                happened.append("call ended")

        def abort(_):
            happened.append("abort")
            if happened.count("abort") == 3:  # the first ones had no effect
                may_end.set()
        thread = threading.Thread(target=call)
        thread.start()
        self.assertTrue(entered.wait(PATIENCE))
        handle.close(abort)
        handle.close(abort)
        thread.join()
        self.assertEqual(happened[:3] + happened[-2:], ["abort"] * 3 + ["call ended", "freed 7"])

    def test_a_child_of_fork_opens_its_own_session_and_leaves_the_parents_alone(self):
        program = ("import dtf, gc, os\ngraph = dtf.Graph()\nx = graph.placeholder(dtf.float32, [], 'x')\ny = x + 1\n"
                   "session = dtf.Session(graph)\nsession.run(y, {x: 1})\nchild = os.fork()\nif child == 0:\n    try:\n        session.run(y, {x: 1})\n"
                   "    except dtf.ClosedError as error:\n        print(error, flush=True)\n    session.close()\n    del session\n    gc.collect()\n"
                   "    with dtf.Session(graph) as own:\n        print('child', own.run(y, {x: 2}), flush=True)\n    raise SystemExit\n"
                   "print(os.waitpid(child, 0)[1], session.run(y, {x: 3}))\n")
        out, _ = self.run_python("-c", program)
        self.assertEqual(out, "the session was opened before fork: open a session in the child\nchild 3.0\n0 4.0\n")


class Mistakes(Case):
    def test_graphs(self):
        graph, other = dtf.Graph(), dtf.Graph()
        x = graph.placeholder(dtf.float32, [2, 3], "x")
        wrong = dtf.InvalidArgumentError
        self.assertTrue(issubclass(wrong, ValueError))
        self.assertEqual(self.refused(wrong, "unknown op 'MatMult'", graph.op, "MatMult", [x, x]).code, 78)
        self.refused(wrong, "dimension 1 of a is 3", dtf.matmul, x, x)
        self.refused(wrong, "no attribute 'transpose'", graph.op, "MatMul", [x, x], transpose=True)
        self.refused(wrong, "'factor' is of the kind double", dtf.raw_ops.Scale, x, factor="a")
        self.refused(wrong, "another graph", dtf.add, other.constant(1), x)
        self.refused(wrong, "is no type of dtf's tensors", graph.placeholder, "float64", [2])
        self.refused(wrong, "unknown dimension", graph.placeholder, dtf.float32, [None, 784])
        self.refused(wrong, "has no shape", graph.variable, "v")
        self.refused(wrong, "no dtf.Output", dtf.relu, 3)
        self.refused(wrong, "one number", graph.constant, [1, 2])
        self.refused(wrong, "learning_rat", graph.minimize, dtf.reduce_sum(x), "adam learning_rat=1")
        self.assertRaises(AttributeError, lambda: dtf.raw_ops.MatMult)
        self.assertRaises(TypeError, bool, x)

    def test_whole_numbers_for_c_do_not_wrap(self):
        graph, wrong = dtf.Graph(), dtf.UsageError
        graph.variable("w", [1])
        saver = dtf.Saver()
        with dtf.Session(graph) as session:
            for step in (-1, 2**64, 1.0):
                self.refused(wrong, f"step is {step}, but must be a whole number from 0 to", saver.save, session, self.folder, step)
            self.refused(wrong, "seed is -1", session.initialize, -1)
            session.initialize(np.int64(3))
            self.assertEqual(saver.save(session, self.folder, np.uint8(7)), f"{self.folder}/step-7")
        self.refused(wrong, "a dimension is 18446744073709551616", graph.placeholder, dtf.float32, [2**64])
        self.refused(wrong, "a dimension is 1.5", dtf.empty, [1.5])
        self.refused(wrong, "the axis is 18446744073709551616", dtf.argmax, graph.placeholder(dtf.float32, [2]), 2**64)
        self.refused(wrong, "node is 4294967296", graph.node_name, 2**32)
        self.assertIsNone(graph.named("w:4294967296"))
        self.assertIsNone(graph.named("w:²"))
        self.refused(wrong, "max_to_keep", dtf.Saver, 2**64 + 5)
        self.refused(wrong, "rank", lambda: dtf.SyncReplicas(dtf.Adam(), rank=2**64))
        self.refused(wrong, "seed", lambda: dtf.Supervisor(graph, seed=2**64))
        self.refused(wrong, "task_index", dtf.ClusterSpec({"ps": "a:1"}).task_address, "ps", 2**64)
        data = {"train": {"format": "digits", "count": 20}, "batch_size": 10}
        self.refused(wrong, "of is", lambda: dtf.Dataset(data, of=2**64 + 1))
        digits = dtf.Dataset(data)
        for call in (digits.batch, digits.next_batch):
            self.refused(wrong, "18446744073709551617", call, 2**64 + 1)
        self.refused(wrong, "global_step is -1", digits.batch, -1)

    def test_numbers_that_would_change(self):
        graph, wrong = dtf.Graph(), dtf.InvalidArgumentError
        x = graph.placeholder(dtf.float32, [2], "x")
        y = x * 1
        masked = np.ma.masked_array([1.0, 2.0], [False, True])
        with dtf.Session(graph) as session:
            for value in ([2**24, -2**24], np.array([2**62, 2**60], np.uint64), np.array([1 / 3, -np.inf]), np.array([1e-300, np.nan])):
                np.testing.assert_array_equal(session.run(y, {x: value}), np.asarray(value).astype(np.float32))
            for value in (16777217, 2**53 + 1, 2**63 - 1, 2**64 - 1, -16777217):
                self.refused(wrong, f"x:0 is float32, which can't hold {value}", session.run, y, {x: [value, value]})
            self.refused(wrong, "1e[+]300 of the value is infinite", session.run, y, {x: [0, 1e300]})
            self.refused(wrong, "masked array", session.run, y, {x: masked})
        for value, dtype in ((2**53 + 1, dtf.int64), (16777217, dtf.float32), (1e300, dtf.float32), (10**400, dtf.float32)):
            self.refused(wrong, f"the constant is {str(value)[:2]}", graph.constant, value, (), dtype)
        self.assertRaises(wrong, lambda: x * 16777217)
        before = graph.count_nodes()
        self.refused(wrong, "infinite", graph.variable, "v", None, [1e300])
        self.refused(wrong, "masked", graph.variable, "v", None, masked)
        self.refused(wrong, "'1'|<U1", graph.variable, "v", None, ["1", "2"])
        self.refused(wrong, r"shape \[3\], the value \[2\]", graph.variable, "v", [3], [1, 2])
        self.refused(wrong, "v is 16777217", graph.variable, "v", [3], 16777217)
        self.assertEqual(graph.count_nodes(), before, "nothing is left of them")

    def test_outputs_and_arrays(self):
        graph = dtf.Graph()
        x = graph.placeholder(dtf.float32, [3], "x")
        for operator in (np.multiply, np.add, np.matmul, np.less):
            self.assertRaises(TypeError, operator, np.ones(3), x)  # no array of outputs
        self.refused(dtf.InvalidArgumentError, "x:0 and an array .*placeholder", lambda: np.ones(3) * x)
        self.refused(dtf.InvalidArgumentError, "x:0 and an array .*placeholder", lambda: x @ np.ones(3))
        self.assertEqual((np.float32(2) * x).shape, (3,))
        self.assertFalse(np.ones(3) == x)
        done = dtf.group(x, name="done")
        self.assertEqual((repr(x), repr(done)), ("<dtf.Output x:0 float32[3]>", "<dtf.Output done without a value>"))
        noted = graph.op("Identity", iter([x]), after=(one for one in [done]))
        self.assertEqual(noted.shape, (3,))
        for wrong in (["a:1"], None, 7):
            self.refused(dtf.InvalidArgumentError, "is no cluster: give a dict", dtf.ClusterSpec, wrong)

    def test_control_inputs_of_a_generator(self):
        graph = dtf.Graph()
        w = graph.variable("w", [], "zeros")
        added = dtf.assign_add(w, graph.constant(1))
        last = graph.op("NoOp", after=(one for one in [added]))
        with dtf.Session(graph) as session:
            session.initialize()
            session.run([], targets=last)
            self.assertEqual(session.run(w), 1)

    def test_feeds_and_fetches(self):
        graph, wrong = dtf.Graph(), dtf.InvalidArgumentError
        x, n = graph.placeholder(dtf.float32, [2], "x"), graph.placeholder(dtf.uint8, [2], "n")
        y, z = x * 2, dtf.identity(n)
        with dtf.Session(graph) as session:
            np.testing.assert_array_equal(session.run(y, {x: np.array([1.5, 2], np.float64)}), [3, 4])
            np.testing.assert_array_equal(session.run(z, {n: [True, 255]}), [1, 255])
            self.refused(wrong, r"shape \[2\], the value \[3\]", session.run, y, {x: [1, 2, 3]})
            self.refused(wrong, "x:0 is float32, the value <U1", session.run, y, {x: ["a", "b"]})
            self.refused(wrong, "holds 0 to 255; the value has 1 to 256", session.run, z, {n: [1, 256]})
            self.refused(wrong, "n:0 is uint8, the value float64", session.run, z, {n: [0.5, 1]})
            self.refused(wrong, "no array", session.run, y, {x: [[1], [2, 3]]})
            self.refused(wrong, "no node 'w'", session.run, y, {"w": 1})
            self.refused(wrong, "'none'", session.run, "none")
            self.refused(wrong, "can't be fetched", session.run, 3)
            self.refused(wrong, "'x'", session.run, y)
            self.refused(dtf.UsageError, "nothing to run: name a fetch or a target", session.run, [])
            self.refused(wrong, "after the session was opened", session.run, x + 1)
        closed = self.refused(dtf.ClosedError, "the session is closed", session.run, y, {x: [1, 2]})
        self.assertIsInstance(closed, ValueError)
        session.close()  # again: no effect
        self.refused(wrong, "worker/task:7", dtf.Session, self.on("/job:worker/task:7"))
        self.refused(dtf.UsageError, "nonsense", dtf.Session, graph, "nonsense")

    def on(self, device):
        graph = dtf.Graph()
        with graph.device(device):
            graph.variable("w", [1])
        return graph

    def test_without_a_library_the_import_tells_how_to_install_one(self):
        _, error = self.run_python("-c", "import dtf", code=1, DTF_LIBRARY="/none/libdtf.so")
        self.assertRegex(error, r"ImportError: libdtf is not here:\n  /none/libdtf.so: .*\nInstall dtf .*set DTF_LIBRARY")
        other = pathlib.Path(self.folder) / "other.so"
        subprocess.run(["cc", "-shared", "-o", other, "-xc", "-"], input="const char* dtf_version(void) { return \"0.1.9\"; }", text=True,
                       check=True)
        _, error = self.run_python("-c", "import dtf", code=1, DTF_LIBRARY=str(other))
        self.assertRegex(error, "ImportError: .*other.so lacks dtf_error_message: it is another version than this package")

    def test_pkg_config_finds_a_library_outside_of_the_loaders_folders(self):
        pathlib.Path(self.folder, "dtf.pc").write_text(
            f"Name: dtf\nDescription: dtf\nVersion: 0.1.0\nLibs: -L{pathlib.Path(LIBDTF).parent} -ldtf\n")
        out, _ = self.run_python("-c", "import dtf; from dtf._library import lib; print(lib.path)", DTF_LIBRARY="",
                                 PKG_CONFIG_PATH=self.folder, LD_LIBRARY_PATH="")
        self.assertEqual(out, f"{pathlib.Path(LIBDTF).parent}/libdtf.so.0.1\n")


class CheckpointsAndModels(Case):
    def test_a_checkpoint_is_restored_and_read_as_arrays(self):
        graph, folder = dtf.Graph(), pathlib.Path(self.folder) / "checkpoints"
        x, y, _, training = regression(graph)
        xs, ys = regression_data()
        saver = dtf.Saver(max_to_keep=2)
        with dtf.Session(graph) as session:
            session.initialize()
            self.assertIsNone(saver.latest_checkpoint(folder))
            for _ in range(3):
                session.run(training.train, {x: xs, y: ys})
                path = saver.save(session, folder)
            w, slot = session.run(["w", "w/Adam"])
        self.assertEqual(path, f"{folder}/step-3")
        self.assertEqual(dtf.latest_checkpoint(folder), path)
        arrays = dtf.load_checkpoint(folder)
        self.assertEqual((arrays.path, arrays.step, arrays.job, arrays["global_step"]), (path, 3, "graph", 3))
        self.assertEqual(list(arrays), ["w", "w/Adam", "w/Adam_1", "b", "b/Adam", "b/Adam_1", "global_step"])
        np.testing.assert_array_equal(arrays["w"], w)
        np.testing.assert_array_equal(arrays["w/Adam"], slot)
        self.assertRaises(KeyError, lambda: arrays["v"])
        with dtf.Session(graph) as session:
            self.assertEqual(saver.restore(session, folder), 3)
            np.testing.assert_array_equal(session.run("w"), w)
            self.refused(dtf.BadDataError, "no checkpoint", saver.restore, session, f"{folder}/step-1")
        self.refused(dtf.BadDataError, "no checkpoint", dtf.load_checkpoint, self.folder)

    def test_a_job_is_launched_followed_and_its_model_applied(self):
        run = pathlib.Path(self.folder) / "run"
        with dtf.launch(SHELLS, run_dir=run, settings={"train.epochs": 50}) as job:
            events = list(job)
        self.assertEqual(events[-1]["event"], "summary")
        self.assertEqual((job.summary["outcome"], job.summary["global_step"]), ("done", 600))
        self.assertEqual(dtf.load_checkpoint(run / "checkpoints")["output/weights"].shape, (16, 3))
        model = dtf.Model(SHELLS, run / "checkpoints/step-600")
        self.assertEqual((model.step, model.classes), (600, ["cockle", "mussel", "scallop"]))
        rows = {"weight_g": [12.1, ""], "beach": ["south", "moon"], "length_mm": [41.2, 41.2], "width_mm": ["26.5", 30], "ridges": [9, 9]}
        table = pathlib.Path(self.folder) / "new.csv"
        table.write_text(",".join(rows) + "\n" + "".join(",".join(map(str, row)) + "\n" for row in zip(*rows.values())))
        said = subprocess.run([LAUNCH, "predict", SHELLS, "--checkpoint", run / "checkpoints/step-600", "--input", table], check=True,
                              capture_output=True, text=True, timeout=PATIENCE).stdout
        theirs = [line.split("\t")[-1].split() for line in said.splitlines()[1:]]
        np.testing.assert_allclose(model.predict(rows), np.array(theirs, float), rtol=1e-4)
        np.testing.assert_array_equal(model.predict({name: values[0] for name, values in rows.items()}), model.predict(rows)[:1])
        self.refused(dtf.InvalidArgumentError, "lacks the column", model.predict, {"ridges": 1})
        graph = dtf.Graph()
        with graph.name_scope("shells"):
            added = model.add_to(graph, 4, "train")
        self.assertIn("gradient/output/weights", added.outputs)
        self.assertEqual(added.variables["output/weights"].name, "shells/output/weights:0")
        self.refused(dtf.InvalidArgumentError, "no-such.yaml", dtf.Model, "no-such.yaml")

    def test_a_job_of_a_dict_and_its_errors(self):
        job = {"job": "drawn", "train": {
            "model": {"input": {"shape": [28, 28, 1]}, "layers": [{"flatten": None}, {"dense": {"units": np.int64(10)}}],
                      "loss": "sparse_categorical_crossentropy"},
            "data": {"train": {"format": "synthetic"}, "batch_size": 20}, "optimizer": {"sgd": {"learning_rate": 0.1}}, "steps": 1000000,
            "checkpoint": {"every_seconds": 600}}}
        broken = self.refused(dtf.InvalidArgumentError, "sgd|format", lambda: dtf.launch(job, folder=self.folder, run_dir=self.folder).result())
        self.assertEqual(broken.code, 78)
        with self.assertRaisesRegex(dtf.InvalidArgumentError, "sgd|format"):
            with dtf.launch(job, folder=self.folder, run_dir=self.folder) as started:
                started._process.wait(PATIENCE)  # nobody reads its events
        with dtf.launch(job, folder=self.folder, run_dir=self.folder) as started:
            for _ in range(2):
                self.assertIsInstance(self.refused(dtf.InvalidArgumentError, "sgd|format", started.result), ValueError)
        with self.assertRaises(KeyError), dtf.launch(job, folder=self.folder, run_dir=self.folder):
            raise KeyError
        self.assertEqual([name for name in os.listdir(self.folder) if name.startswith(".dtf-job")], [], "removed")
        job["train"]["optimizer"] = {"gradient_descent": {"learning_rate": 0.1}}
        job["train"]["data"]["train"] = {"format": "digits"}
        with dtf.launch(job, folder=self.folder, run_dir=f"{self.folder}/run") as started:
            for event in started.progress():
                self.assertGreater(event["step"], 0)
                break
            started.stop()
            self.assertEqual(started.result()["outcome"], "stopped")
            self.assertEqual((started.result(), list(started)), (started.summary, []), "again")
        with dtf.launch(job, folder=self.folder, run_dir=f"{self.folder}/run") as again:
            next(again.progress())
        self.assertEqual(again.summary["outcome"], "stopped", "left early")
        self.assertEqual(again.result(), again.summary)
        self.refused(dtf.UsageError, "no dtf-launch", dtf.launch, job, program="/none/dtf-launch")
        self.assertRaises(TypeError, dtf.launch, {"job": object()})


class Installed(Case):
    def test_a_wheel_is_installed_and_imported(self):
        for folder in ("a", "b"):
            subprocess.run([sys.executable, SOURCE / "scripts/wheel.py", f"{self.folder}/{folder}"], check=True, stdout=subprocess.DEVNULL)
        wheel = next(pathlib.Path(self.folder, "a").iterdir())
        self.assertEqual(wheel.read_bytes(), (pathlib.Path(self.folder, "b") / wheel.name).read_bytes())
        self.assertEqual(wheel.name, f"dtf-{dtf.__version__}-py3-none-any.whl")
        venv.create(f"{self.folder}/env", with_pip=True, system_site_packages=False)
        python = f"{self.folder}/env/bin/python"
        subprocess.run([python, "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--disable-pip-version-check", wheel], check=True)
        site = next(pathlib.Path(self.folder, "env/lib").glob("python*/site-packages"))
        self.assertTrue((site / "dtf/py.typed").exists())
        numpy_folder = str(pathlib.Path(np.__file__).parents[1])
        out = subprocess.run([python, "-c", "import dtf; print(dtf.__file__, dtf.Graph().constant(2).shape)"], check=True, text=True,
                             capture_output=True, env={**os.environ, "PYTHONPATH": numpy_folder}, timeout=PATIENCE).stdout
        self.assertEqual(out, f"{site}/dtf/__init__.py ()\n")

    def test_the_library_of_the_same_prefix_is_found(self):
        site = pathlib.Path(self.folder, "lib/python3.11/site-packages")
        shutil.copytree(PACKAGE / "dtf", site / "dtf")
        place = pathlib.Path(self.folder, "lib/x86_64-linux-gnu/libdtf.so.0.1")
        place.parent.mkdir()
        place.symlink_to(LIBDTF)
        out, _ = self.run_python("-c", "from dtf._library import lib; print(lib.path)", DTF_LIBRARY="", PYTHONPATH=str(site))
        self.assertEqual(out, f"{place}\n")

    def test_meson_installs_every_file(self):
        listed = set(re.findall(r"'dtf/([\w.]+)'", (PACKAGE / "meson.build").read_text()))
        self.assertEqual(listed, {path.name for path in (PACKAGE / "dtf").iterdir() if path.is_file()})

    def test_the_programs_of_the_readme(self):
        text = (PACKAGE / "README.md").read_text()
        programs = dict(re.findall(r"<!-- file: (\w+\.py) -->\n```python\n(.*?)```", text, re.S))
        os.symlink(SOURCE / "configs", pathlib.Path(self.folder) / "configs")
        printed = {}
        for name, program in programs.items():
            (pathlib.Path(self.folder) / name).write_text(program)
            printed[name], _ = self.run_python(name)
        self.assertRegex(printed["first.py"], r"^300 \S+ \[ 3\.\d* *-2\.\d* *\]\n\[0\.\d+\]\n$|^300 \S+ \[ 2\.99\d* *-")
        self.assertRegex(printed["follow.py"], r"\ndone \{.*'accuracy': .*\}\n\['cockle', 'mussel', 'scallop'\] \[\[")

    def test_the_classifier_of_digits_goes_on_as_that_of_cpp(self):
        """Both programs train for 60 steps here: equal bytes. Then the program goes on, on a worker and a ps."""
        cpp = pathlib.Path(self.folder) / "softmax_digits"
        subprocess.run(["c++", "-std=c++20", f"-I{SOURCE / 'common/api'}", EXAMPLES / "softmax_digits.cc", "-o", cpp, LIBDTF,
                        f"-Wl,-rpath,{pathlib.Path(LIBDTF).parent}"], check=True, timeout=PATIENCE)
        cluster = Cluster(self.folder, LAUNCH)
        self.addCleanup(cluster.close)
        for steps in (30, 60):
            out, _ = self.run_python(EXAMPLES / "softmax_digits.py", "py", steps)
        self.assertIn("going on from py/step-30", out)
        subprocess.run([cpp, "cpp", "60"], check=True, cwd=self.folder, stdout=subprocess.DEVNULL, timeout=PATIENCE)
        both = [dict(dtf.load_checkpoint(f"{self.folder}/{folder}/step-60")) for folder in ("py", "cpp")]
        self.assertEqual(both[0].keys(), both[1].keys())
        for name, array in both[0].items():
            self.assertEqual(array.tobytes(), both[1][name].tobytes(), name)
        out, _ = self.run_python(EXAMPLES / "softmax_digits.py", "py", 100, cluster.target)
        self.assertRegex(out, "going on from py/step-60\nstep 100: loss .*, accuracy 1.00\nsaved py/step-100")
        _, error = self.run_python(EXAMPLES / "softmax_digits.py", "py", 1, "nonsense", code=2)
        self.assertIn("softmax_digits.py: error: ", error)


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()
