#!/usr/bin/env python3
"""The Python package `dtf`: rows for predict() as a table's reader has them, names of TensorFlow 1, a job that is read while it trains,
and the script of the wheel.

Usage: python_habits_test.py LIBDTF DTF_LAUNCH [TEST...]         needs DTF_SOURCE_ROOT

Python without numpy fails the test: the package needs it.
"""
import decimal
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import numpy as np
except ImportError:
    sys.exit(f"{sys.executable} has no numpy: install python3-numpy, run scripts/python-env.sh, or set DTF_PYTHON")

LIBDTF, LAUNCH = (str(pathlib.Path(path).resolve()) for path in (sys.argv.pop(1), sys.argv.pop(1)))
SOURCE = pathlib.Path(os.environ["DTF_SOURCE_ROOT"]).resolve()
SHELLS = SOURCE / "configs/jobs/small/shells.yaml"
PATIENCE = 120
os.environ.update(DTF_LIBRARY=LIBDTF, DTF_LAUNCH=LAUNCH)
sys.path.insert(0, str(SOURCE / "common/api/python"))
import dtf  # noqa: E402  the path is set above
from dtf import _preparation  # noqa: E402


class Refusals(unittest.TestCase):
    def refused(self, kind, words, call, *arguments, **named):
        with self.assertRaisesRegex(kind, words) as caught:
            call(*arguments, **named)
        self.assertIsInstance(caught.exception, dtf.Error)


class Fields(Refusals):
    """A value of a row, alone."""

    def signature(self, name, *preparation):
        return {"inputs": [{"name": name, "columns": ["c"], "preparation": list(preparation)}]}

    def number(self, value):
        return _preparation.inputs_of([{"c": value}], self.signature("features", {"op": "fill", "columns": ["c"], "values": [-7.0]}))["features"][0, 0]

    def word(self, value, known=("north", "3", "2.5", "True"), **more):
        step = {"op": "vocabulary", "words": list(known), **more}
        return _preparation.inputs_of([{"c": value}], self.signature("beach", step))["categories/beach"][0, 0]

    def test_numbers_are_read_as_a_tables(self):
        for value, wanted in ((" 1.5\t", 1.5), (b"+2", 2), ("1e-3", 1e-3), (".5", 0.5), ("5.", 5), ("YES", 1), ("false", 0), (True, 1), (np.True_, 1),
                              (np.float32(0.1), 0.1), (decimal.Decimal("0.25"), 0.25), (np.array(3), 3), (10**20, 1e20), ("1e-60", 0)):
            self.assertEqual(self.number(value), np.float32(wanted), value)
        for value in (None, "", " ", "NA", "n/a", "NaN", b"null", "None", "?", "-", "--", float("nan"), np.float32("nan"), decimal.Decimal("NaN")):
            self.assertEqual(self.number(value), -7, value)
        for value in ("1_0", "inf", "-Infinity", float("inf"), 1e39, "1e39", 10**400, "0x10", "1 2", "\u00b2", "\u0663", "1,5", "+-1", "e5", b"\xff", 1j, [1], "\n1"):
            self.refused(dtf.InvalidArgumentError, "column 'c'", self.number, value)

    def test_words_are_read_as_a_tables(self):
        for value, wanted in (("north", 0), (b"north", 0), (np.bytes_(b" north"), 0), (3, 1), (3.0, 1), (np.int64(3), 1), (2.5, 2), (True, 3)):
            self.assertEqual(self.word(value), wanted, value)
        self.assertEqual(self.word("moon", num_oov_buckets=1), 4)
        for value in (None, float("nan"), np.float64("nan")):
            self.assertEqual(self.word(value, num_oov_buckets=1), 4, "an empty field is one of the other words")
            self.assertEqual(self.word(value, known=("a", "")), 1)
            self.refused(dtf.InvalidArgumentError, "which the training data write as 'NA'", self.word, value, known=("a", "NA"), num_oov_buckets=1)
        self.refused(dtf.InvalidArgumentError, "doesn't know the word 'moon'", self.word, "moon")
        self.refused(dtf.InvalidArgumentError, "4.0 can be written in several ways", self.word, 4.0, num_oov_buckets=1)
        self.refused(dtf.InvalidArgumentError, "3.0 can be written", self.word, 3.0, known=("3", "3.0"))
        self.refused(dtf.InvalidArgumentError, "is no text in UTF-8", self.word, b"\xff")
        self.refused(dtf.InvalidArgumentError, "neither a text nor a number", self.word, ["north"])

    def test_numbers_of_rows_and_buckets(self):
        def row(value):
            return _preparation.inputs_of([{"c": value}], self.signature("ids"))["categories/ids"][0, 0]
        for value, wanted in ((7, 7), ("7", 7), ("+7", 7), (b"7", 7), (np.uint8(7), 7), (7.0, 7)):
            self.assertEqual(row(value), wanted, value)
        for value in (2.7, "2.7", "7.0", -1, "1_0", True, None, float("nan"), 2**31, "\u0667", ""):
            self.refused(dtf.InvalidArgumentError, "no whole number from 0 to 2147483647", row, value)

        def bucket(value, **more):
            step = {"op": "bucketize", "boundaries": [0.1, 10], **more}
            return _preparation.inputs_of([{"c": value}], self.signature("size", step))["categories/size"][0, 0]
        self.assertEqual([bucket(value) for value in (0, "0.1", 5, "yes", b"10")], [0, 1, 1, 1, 2])
        self.assertEqual(bucket("NA", num_oov_buckets=1), 3)
        self.refused(dtf.InvalidArgumentError, "is missing", bucket, "?")

    def test_log1p_has_numbers_above_minus_1(self):
        step = {"op": "log1p", "columns": ["c"]}
        self.assertEqual(_preparation.inputs_of([{"c": 0}], self.signature("features", step))["features"][0, 0], 0)
        for value in (-1, "-2"):
            self.refused(dtf.InvalidArgumentError, "has no log1p", _preparation.inputs_of, [{"c": value}], self.signature("features", step))

    def test_a_frame_of_pandas_is_rows_by_name(self):
        class Frame:
            """What predict() uses of a DataFrame."""
            columns, iloc = ["b", "a"], None

            def __getitem__(self, name):
                return {"a": np.array([1, 2]), "b": ["x", "y"]}[name]
        self.assertEqual(_preparation.rows_of(Frame()), [{"b": "x", "a": 1}, {"b": "y", "a": 2}])


class Habits(Refusals):
    def test_axes_count_from_the_end_and_a_dimension_is_left(self):
        graph = dtf.Graph()
        x = graph.placeholder(dtf.float32, [2, 3, 4], "x")
        value = np.random.default_rng(1).normal(size=(2, 3, 4)).astype(np.float32)
        made = [dtf.argmax(x, -1), dtf.argmax(x, -3), dtf.concat([x, x], axis=-2), dtf.reshape(x, [-1, 4]), dtf.reshape(x, (4, np.int64(-1))),
                dtf.reduce_max(x, axis=np.int32(-1)), dtf.reduce_max(x, axis=(0, -1))]
        with dtf.Session(graph) as session:
            got = session.run(made, {x: value})
        wanted = [value.argmax(-1), value.argmax(0), np.concatenate([value, value], -2), value.reshape(-1, 4), value.reshape(4, -1), value.max(-1),
                  value.max((0, 2))]
        for ours, theirs in zip(got, wanted):
            np.testing.assert_array_equal(ours, theirs)
        self.refused(dtf.UsageError, r"argmax\(\): the axis is 3, but must be a whole number from -3 to 2", dtf.argmax, x, 3)
        self.refused(dtf.UsageError, "the axis is None", dtf.argmax, x, None)
        self.refused(dtf.UsageError, "reduce_mean.*-4", dtf.reduce_mean, x, -4)
        self.refused(dtf.InvalidArgumentError, "write -1", dtf.reshape, x, [None, 4])
        self.refused(dtf.InvalidArgumentError, "24 elements", dtf.reshape, x, [-1, 5])
        self.refused(dtf.InvalidArgumentError, "no dtf.Output", dtf.reduce_mean, 3)
        self.refused(dtf.InvalidArgumentError, "of no tensors", dtf.concat, [], 0)

    def test_names_of_tensorflow_have_a_remedy(self):
        for name, words in (("placeholder", r"graph\.placeholder\("), ("AdamOptimizer", r"dtf\.Adam\("), ("RMSPropOptimizer", r"dtf\.RmsProp\("),
                            ("SyncReplicasOptimizer", r"dtf\.SyncReplicas\("), ("global_variables_initializer", r"session\.initialize\("),
                            ("nn", r"dtf\.relu"), ("float64", "float32, uint8")):
            with self.assertRaisesRegex(AttributeError, f"has no '{name}'.*{words}"):
                getattr(dtf, name)
        with self.assertRaisesRegex(AttributeError, "^module 'dtf' has no 'whatever'$"):
            dtf.whatever  # noqa: B018
        self.assertFalse(hasattr(dtf, "_habit"))
        graph = dtf.Graph()
        x = graph.placeholder(dtf.float32, [2], "x")
        for name, words in (("eval", r"write session\.run\(output\)"), ("get_shape", r"output\.shape"), ("other", "'other'$")):
            with self.assertRaisesRegex(AttributeError, f"a dtf.Output has no '{name}'.*{words}" if name != "other" else words):
                getattr(x, name)
        for shape in (None, [None, 784], (2, None)):
            self.refused(dtf.InvalidArgumentError, "unknown dimension: a step is compiled for one size", graph.placeholder, dtf.float32, shape)

    def test_a_training_step_is_no_fetch(self):
        graph = dtf.Graph()
        w = graph.variable("w", [1], "ones")
        training = dtf.GradientDescent(0.1).minimize(dtf.reduce_sum(w))
        other = dtf.Graph()
        clipped = dtf.GradientDescent(0.1).minimize(dtf.reduce_sum(other.variable("w", [1], "ones")), clip_by_global_norm=1)
        with dtf.Session(graph) as session:
            session.initialize()
            self.refused(dtf.InvalidArgumentError, r"session\.run\(training\.train\)", session.run, training)
            self.assertEqual(session.run(training.train), 1)
        with dtf.Session(other) as session:
            session.initialize()
            self.assertEqual(session.run(clipped).train, 1)

    def test_variables_go_to_the_ps_with_the_fewest_bytes(self):
        def placed(**options):
            graph, devices = dtf.Graph(), []
            setter = dtf.replica_device_setter(cluster={"ps": ["a:1", "a:2"], "worker": "a:3"}, worker_device="/job:worker/task:0", **options)

            def noted(node):
                devices.append((node.type, setter(node)))
                return devices[-1][1]
            with graph.device(noted):
                w = graph.variable("w", [1000, 10], "zeros")  # 40000 bytes
                graph.variable("b", [10])
                graph.counter("global_step")
                graph.variable("large", initializer=np.zeros((100, 100), np.float32))
                graph.variable("last", [3])
                dtf.square(w)
            self.assertEqual(devices[-1], ("Mul", "/job:worker/task:0"))
            return [int(device[-1]) for kind, device in devices if kind == "Variable"]
        self.assertEqual(placed(), [0, 1, 0, 1, 0])
        self.assertEqual(placed(ps_strategy="greedy"), [0, 1, 1, 1, 0])
        self.assertEqual(placed(ps_strategy=lambda node: int(node.bytes == 8)), [0, 0, 1, 0, 0])
        self.refused(dtf.InvalidArgumentError, '"greedy"', dtf.replica_device_setter, 2, ps_strategy="by_size")
        self.refused(dtf.UsageError, "the ps of ps_strategy is 2", placed, ps_strategy=lambda node: 2)


class JobsAndTheWheel(Refusals):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def test_a_job_is_read_while_it_trains(self):
        file = self.folder / "job.yaml"
        file.write_text(f"""job: read
run_dir: {self.folder}/run
cluster: {{ps: ["localhost:auto", "localhost:auto"], worker: ["localhost:auto"]}}
train:
  model:
    input: {{shape: [28, 28, 1]}}
    layers:
      - flatten: {{}}
      - dense: {{units: 10, name: output}}
    loss: sparse_categorical_crossentropy
  data: {{train: {{format: digits, count: 1000}}, batch_size: 50, seed: 1}}
  optimizer: {{gradient_descent: {{learning_rate: 0.1}}}}
  replication: {{mode: sync}}
  steps: 1000000
""")
        with dtf.JobReader(file) as reader:
            self.refused(dtf.UnavailableError, "start the job first", reader.take, 0.1)
            self.assertEqual(reader.variables(), [])
            self.refused(dtf.UsageError, "no version", reader.read, "output/weights")
            with dtf.launch(file) as job:
                next(iter(job.progress()))
                step = reader.take()
                self.assertEqual(sorted(reader.variables()), ["output/biases", "output/weights"])
                weights = reader.read("output/weights")
                self.assertEqual((weights.dtype, weights.shape), (np.float32, (784, 10)))
                while reader.take() == step:
                    pass
                later = reader.read("output/weights")
                self.assertTrue((later != weights).any(), "an array is of its own version")
                np.testing.assert_array_equal(later, reader.read("output/weights"))
                self.refused(dtf.InvalidArgumentError, "no variable 'w'; it has output", reader.read, "w")
                status = reader.status()
                self.assertEqual(sorted(status), ["ps/0", "ps/1", "worker/0"])
                self.assertTrue(all(isinstance(one, dict) for one in status.values()), status)
                job.stop()
            self.assertEqual(job.summary["outcome"], "stopped")
            self.refused(dtf.UnavailableError, "ps/", reader.take, 0.1)
            self.assertEqual(set(reader.status().values()), {None})
        self.refused(dtf.ClosedError, "the job reader is closed", reader.take)
        self.refused(dtf.InvalidArgumentError, "one process", dtf.JobReader, SHELLS)
        with dtf.JobReader(file) as reader:
            def interrupt(*_):
                raise KeyboardInterrupt
            before = signal.signal(signal.SIGALRM, interrupt)
            try:
                with self.assertRaises(KeyboardInterrupt):
                    signal.setitimer(signal.ITIMER_REAL, 0.1)
                    reader.take(1)  # goes on in its thread, and the next call waits for it
            finally:
                signal.signal(signal.SIGALRM, before)
            self.assertEqual(reader.variables(), [])
            self.refused(dtf.UnavailableError, "cannot reach ps/", reader.take, 0.1)
        self.refused(dtf.InvalidArgumentError, "no-such.yaml", dtf.JobReader, "no-such.yaml")

    def test_a_row_number_is_whole_and_finite(self):
        signature = {"inputs": [{"name": "n", "columns": ["n"], "preparation": []}]}
        for number in (7, 7.0, "7", np.int32(7), decimal.Decimal(7)):
            self.assertEqual(_preparation.inputs_of([{"n": number}], signature)["categories/n"].tolist(), [[7]])
        for number in (float("inf"), float("-inf"), np.float32("inf"), decimal.Decimal("Infinity"), 10**400, 0.5, -1, True):
            self.refused(dtf.InvalidArgumentError, "is no whole number from 0", _preparation.inputs_of, [{"n": number}], signature)

    def test_predictions_are_those_of_the_command(self):
        run, table = self.folder / "run", self.folder / "new.csv"
        dtf.launch(SHELLS, run_dir=run, settings={"train.epochs": 2}).result()
        newest = dtf.latest_checkpoint(run / "checkpoints")
        model = dtf.Model(SHELLS, newest)
        fields = {"beach": ["south", " north", "", "moon", "NA"], "length_mm": ["41.2", "+40", "4e1", ".5", "yes"],
                  "width_mm": ["26.5", "30.", "false", "1", "-2"], "ridges": ["9", "9", "9", "9", "9"], "weight_g": ["12.1", "NA", "?", "", "nan"]}
        table.write_text(",".join(fields) + "\n" + "".join(",".join(row) + "\n" for row in zip(*fields.values())))
        said = subprocess.run([LAUNCH, "predict", SHELLS, "--checkpoint", newest, "--input", table], check=True, capture_output=True,
                              text=True, timeout=PATIENCE).stdout
        theirs = [line.split("\t")[-1].split() for line in said.splitlines()[1:]]
        wanted = model.predict(fields)
        np.testing.assert_allclose(wanted, np.array(theirs, float), rtol=1e-4)
        values = {"beach": [b"south", "north", None, b"moon", "NA"], "length_mm": [41.2, 40, np.float32(40), 0.5, True],
                  "width_mm": ["26.5", 30, False, 1.0, -2], "ridges": [9] * 5, "weight_g": [12.1, None, float("nan"), "", np.nan]}
        np.testing.assert_array_equal(model.predict(values), wanted)
        for wrong in (None, "south", 3):
            self.refused(dtf.InvalidArgumentError, "takes rows", model.predict, wrong)

    def test_the_script_of_the_wheel_explains_itself(self):
        def run(*arguments):
            return subprocess.run([sys.executable, SOURCE / "scripts/wheel.py", *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
        told = run("--help")
        self.assertEqual((told.returncode, told.stderr), (0, ""))
        self.assertIn("usage: wheel.py [-h] [FOLDER]", told.stdout)
        for arguments in (("a", "b"), ("--folder", "a")):
            self.assertEqual(run(*arguments).returncode, 2)
        (self.folder / "file").write_text("")
        refused = run(self.folder / "file" / "below")
        self.assertEqual(refused.returncode, 1)
        self.assertRegex(refused.stderr, r"^wheel\.py: error: .*file.*: Not a directory; name a folder")


if __name__ == "__main__":
    unittest.main()
