#!/usr/bin/env python3
"""Training by several clients with the Python package `dtf`: synchronous replicas and the Supervisor, on a psd and a workerd that
serve.

Usage: python_training_test.py LIBDTF DTF_LAUNCH [TEST...]         needs DTF_SOURCE_ROOT

Python without numpy fails the test: the package needs it.
"""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

try:
    import numpy as np
except ImportError:
    sys.exit(f"{sys.executable} has no numpy: install python3-numpy, run scripts/python-env.sh, or set DTF_PYTHON")

LIBDTF, LAUNCH = (str(pathlib.Path(path).resolve()) for path in (sys.argv.pop(1), sys.argv.pop(1)))
SOURCE = pathlib.Path(os.environ["DTF_SOURCE_ROOT"]).resolve()
EXAMPLES = SOURCE / "common/api/examples"
SEED, ROWS, LOG_DIR = 20261202, 32, "run"
CONNECT = 60  # seconds, of mnist_dist
os.environ["DTF_LIBRARY"] = LIBDTF
sys.path[:0] = [str(SOURCE / "common/api/python"), str(SOURCE / "tests/support")]
import dtf  # noqa: E402  the path is set above
from serving_tasks import PATIENCE, Cluster, free_ports  # noqa: E402


class Regression:
    """y = x w on a ps, with a training step: in sync of several clients, or of one."""

    def __init__(self, rows=ROWS, replicas=0, rank=0):
        self.graph = dtf.Graph()
        with self.graph.device("/job:ps/task:0"):
            self.w = self.graph.variable("w", [2, 1], "ones")
            self.step = self.graph.counter("global_step")
        self.x = self.graph.placeholder(dtf.float32, [rows, 2], "x")
        self.y = self.graph.placeholder(dtf.float32, [rows, 1], "y")
        self.loss = dtf.reduce_mean(dtf.square(self.x @ self.w - self.y), name="loss")
        optimizer = dtf.GradientDescent(0.1)
        if replicas:
            optimizer = dtf.SyncReplicas(optimizer, replicas, rank=rank)
        self.training = optimizer.minimize(self.loss, self.step)

    def feeds(self, step, rank=0):
        """A function of the step and the rank, as the batch of a data set."""
        x = np.random.default_rng([SEED, step, rank]).normal(size=(ROWS, 2))
        return {self.x: x, self.y: x @ [[3], [-2]]}


def trained(model, supervisor, steps, rank, lost):
    """Trains until the global step; counts losses, and returns the last one's value."""
    step = supervisor.global_step()
    while step < steps and not supervisor.should_stop():
        values = supervisor.run([model.training.train], model.feeds(step, rank))
        if values is None:
            lost.append(step)
            step = supervisor.global_step()
        else:
            step = int(values[0])
    return step


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.cluster = Cluster(self.folder, LAUNCH)
        self.addCleanup(self.cluster.close)

    def client(self, rank, replicas, steps, outcomes):
        model = Regression(replicas=replicas, rank=rank)
        supervisor = dtf.Supervisor(model.graph, is_chief=rank == 0, task=f"worker/{rank}", log_dir=f"{self.folder}/run",
                                    global_step=model.step, poll_seconds=0.05)
        supervisor.prepare_or_wait_for_session(self.cluster.target)
        outcomes[rank] = trained(model, supervisor, steps, rank, [])
        if rank == 0:
            outcomes["w"] = supervisor.run(model.w)
        supervisor.stop()
        supervisor.close()

    def test_clients_in_sync_take_the_mean_of_their_gradients(self):
        steps, outcomes = 20, {}
        clients = [threading.Thread(target=self.client, args=(rank, 2, steps, outcomes)) for rank in (1, 0)]
        for client in clients:
            client.start()
        for client in clients:
            client.join(PATIENCE)
        self.assertEqual({rank: outcomes[rank] for rank in (0, 1)}, {0: steps, 1: steps})
        alone = Regression(2 * ROWS)
        with dtf.Session(alone.graph, self.cluster.target) as session:
            session.initialize()
            for step in range(steps):
                both = [alone.feeds(step, rank) for rank in (0, 1)]
                session.run(alone.training.train, {key: np.concatenate([each[key] for each in both]) for key in both[0]})
            np.testing.assert_allclose(outcomes["w"], session.run(alone.w), rtol=1e-5)

    def test_a_lost_ps_comes_back_and_the_training_ends_as_undisturbed(self):
        values = []
        for disturbed in (False, True):
            model, lost = Regression(), []
            log_dir = pathlib.Path(self.folder) / f"run-{disturbed}"
            supervisor = dtf.Supervisor(model.graph, log_dir=log_dir, summaries=[model.loss], summary_seconds=1e-3, poll_seconds=0.05)
            with supervisor.managed_session(self.cluster.target) as session:
                self.assertEqual(trained(model, session, 30, 0, lost), 30)
                session.save()
                if disturbed:
                    self.cluster.tasks["ps"].kill()
                    self.cluster.tasks["ps"].wait(PATIENCE)
                    self.cluster.tasks["ps"].stderr.close()
                    self.cluster.tasks["ps"] = self.cluster.start("psd")
                self.assertEqual(trained(model, session, 60, 0, lost), 60)
                session.run(model.loss, model.feeds(60))
                values.append(session.run(model.w))
            saved = dtf.load_checkpoint(log_dir / "checkpoints")
            self.assertEqual(saved["global_step"], 60, "saved at the end")
            np.testing.assert_array_equal(saved["w"], values[-1])
            self.assertTrue(list(log_dir.glob("events.out.tfevents.*")))
        np.testing.assert_array_equal(values[0], values[1])
        again = dtf.Supervisor(Regression().graph, log_dir=log_dir)
        with again.managed_session(self.cluster.target) as session:
            self.assertEqual(session.global_step(), 60, "restored")

    def test_close_ends_a_step_of_another_thread(self):
        graph = dtf.Graph()
        graph.counter("global_step")
        taken = dtf.FIFOQueue(graph, 1, [dtf.float32], [[]], "q").dequeue()[0]
        supervisor, entered, outcomes = dtf.Supervisor(graph, log_dir=self.folder, poll_seconds=0.05), threading.Event(), []
        supervisor.prepare_or_wait_for_session(self.cluster.target)

        def take():
            entered.set()
            try:
                outcomes.append(supervisor.run(taken))
            except dtf.Error as error:
                outcomes.append(type(error))
        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        self.assertTrue(entered.wait(PATIENCE))
        supervisor.close()
        thread.join(PATIENCE)
        self.assertIn(outcomes, ([None], [dtf.ClosedError]), "it was aborted, or had not begun")

    def test_mistakes(self):
        model = Regression()
        waiting = dtf.Supervisor(model.graph, is_chief=False, task="worker/1", wait_seconds=0.3, poll_seconds=0.05)
        with self.assertRaisesRegex(dtf.DeadlineExceededError, "worker/1 has waited"):
            waiting.prepare_or_wait_for_session(self.cluster.target)
        waiting.close()
        with self.assertRaises(dtf.ClosedError):
            waiting.run(model.loss)
        early = dtf.Supervisor(model.graph, is_chief=False)
        model.graph.variable("array", initializer=[1.0])
        with self.assertRaisesRegex(dtf.InvalidArgumentError, "'array' begins with an array"):
            early.prepare_or_wait_for_session(self.cluster.target)
        early.close()
        with self.assertRaisesRegex(dtf.InvalidArgumentError, "'array' begins with an array"):
            dtf.Supervisor(model.graph)
        with self.assertRaises(dtf.InvalidArgumentError):
            dtf.SyncReplicas(dtf.Adam(), 5000, rank=0).minimize(model.loss)
        other = dtf.Supervisor(Regression().graph, log_dir=self.folder, summaries=["w"], summary_seconds=1e-3)
        with other.managed_session(self.cluster.target) as session:
            with self.assertRaisesRegex(dtf.InvalidArgumentError, "summary 'w' is no float32 scalar"):
                for _ in range(100):
                    session.run("w")


class ServersAndData(unittest.TestCase):
    def test_tasks_of_a_cluster_in_this_process(self):
        ports = free_ports(2)
        cluster = dtf.ClusterSpec({"ps": f"localhost:{ports[0]}", "worker": [f"localhost:{ports[1]}"]})
        self.assertEqual(cluster.as_dict(), {"ps": [f"localhost:{ports[0]}"], "worker": [f"localhost:{ports[1]}"]})
        with dtf.Server(cluster, "ps", 0) as ps, dtf.Server(cluster, "worker", 0) as worker:
            self.assertRegex(worker.target, rf"^dtf://localhost:{ports[1]}/worker/0$")
            graph = dtf.Graph()
            with graph.device(dtf.replica_device_setter(cluster=cluster, worker_device="/job:worker/task:0")):
                w = graph.variable("w", [2], "ones")
                double = w * 2
            with dtf.Session(graph, worker.target) as session:
                session.initialize()
                np.testing.assert_array_equal(session.run(double), [2, 2])
                self.assertEqual((ps.sessions, worker.sessions), (1, 1), "each op is where the setter put it")
            with self.assertRaises(dtf.DeadlineExceededError):
                ps.join(0.01)
            threading.Timer(0.05, ps.stop, ["enough"]).start()
            self.assertIn("enough", ps.join())
            with self.assertRaisesRegex(dtf.UnavailableError, str(ports[1])):
                dtf.Server(cluster, "worker", 0)
        self.assertRaises(dtf.ClosedError, worker.join)
        self.assertRaises(dtf.InvalidArgumentError, dtf.Server, cluster, "ps", 1)
        self.assertRaises(dtf.InvalidArgumentError, dtf.ClusterSpec, {"master": ["localhost:1"]})
        self.assertRaises(dtf.InvalidArgumentError, cluster.task_address, "worker", 1)
        parsed = dtf.ClusterSpec("cluster: {ps: [a:1], worker: [b:1, c:1]}")
        self.assertEqual((parsed.num_tasks("worker"), parsed.task_address("worker", 1)), (2, "c:1"))

    def test_a_graph_is_free_while_a_supervisor_waits(self):
        ports = free_ports(2)
        cluster = dtf.ClusterSpec({"ps": f"localhost:{ports[0]}", "worker": f"localhost:{ports[1]}"})
        with tempfile.TemporaryDirectory() as folder, dtf.Server(cluster, "ps", 0) as ps, dtf.Server(cluster, "worker", 0) as worker:
            model, steps = Regression(), []
            others = [dtf.Supervisor(model.graph, is_chief=rank == 0, task=f"worker/{rank}", log_dir=folder, poll_seconds=0.05) for rank in (0, 1)]

            def wait():
                with others[1].managed_session(worker.target) as session:
                    steps.append(session.global_step())
            thread = threading.Thread(target=wait, daemon=True)
            thread.start()
            while ps.sessions == 0:  # until it waits for the chief
                thread.join(0.01)
                self.assertTrue(thread.is_alive())
            self.assertEqual(model.w.shape, (2, 1))
            with others[0].managed_session(worker.target) as session:
                thread.join(PATIENCE)
                self.assertEqual((steps, session.global_step()), ([0], 0))

    def test_variables_go_to_the_ps_in_turn(self):
        setter = dtf.replica_device_setter(2, "/job:worker/task:1")
        devices = [setter(dtf.NodeInfo(op, "")) for op in ("Variable", "MatMul", "Variable", "Variable")]
        self.assertEqual(devices, ["/job:ps/task:0", "/job:worker/task:1", "/job:ps/task:1", "/job:ps/task:0"])

    def test_the_data_of_a_job(self):
        settings = {"train": {"format": "digits", "count": 100}, "eval": {"format": "digits", "count": 30}, "batch_size": 10, "seed": 1}
        first, again, other = (dtf.Dataset(settings, rank=rank, of=2) for rank in (0, 0, 1))
        self.assertEqual((len(first), first.batch_size, first.parts["labels"][1]), (100, 10, ()))
        dtype, shape = first.parts["features"]
        features, labels = first.batch(3)
        self.assertEqual((features.dtype, features.shape, labels.shape), (dtype, (10, *shape), (10,)))
        np.testing.assert_array_equal(features, again.batch(3)[0])
        self.assertTrue((features != other.batch(3)[0]).any(), "each rank has its own share")
        self.assertEqual([first.next_batch(7)[1].shape for _ in range(8)], [(7,)] * 8)
        self.assertEqual(first.epochs_completed, 1)
        test = dtf.Dataset(settings, evaluation=True)
        self.assertEqual((len(test), test.slice(20, 10)[0].shape), (30, (10, *shape)))
        with self.assertRaises(dtf.OutOfRangeError):
            test.slice(25, 10)
        short = dtf.Dataset(settings, epochs=1)
        self.assertEqual(short.steps, 10)
        self.assertRaises(dtf.OutOfRangeError, short.batch, 10)
        with self.assertRaisesRegex(dtf.InvalidArgumentError, "formatt"):
            dtf.Dataset({"train": {"formatt": "digits"}})


class TheClassicProgram(unittest.TestCase):
    """mnist_dist, as in four terminals: in Python, in C++, and both in one cluster."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def start(self, program, job, index, ports, *more):
        hosts = [",".join(f"localhost:{port}" for port in half) for half in (ports[:2], ports[2:])]
        process = subprocess.Popen([*program, f"--ps_hosts={hosts[0]}", f"--worker_hosts={hosts[1]}", f"--job_name={job}",
                                    f"--task_index={index}", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   cwd=self.folder, env={**os.environ, "PYTHONPATH": str(SOURCE / "common/api/python")})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def trained(self, of_ps, of_workers, *more, steps=400):
        """Returns the output of both workers."""
        ports = free_ports(4)
        workers = [self.start(of_workers, "worker", index, ports, f"--train_steps={steps}", *more) for index in (1, 0)]
        servers = [self.start(of_ps, "ps", index, ports) for index in (0, 1)]
        outputs = [worker.communicate(timeout=PATIENCE) for worker in workers]
        self.assertEqual([worker.returncode for worker in workers], [0, 0], outputs)
        for server in servers:
            server.terminate()
            out, err = server.communicate(timeout=PATIENCE)
            self.assertEqual(server.returncode, 0, err)
            self.assertTrue(out, "the reason is printed")
        self.assertRegex(outputs[0][0], r"worker/1: step \d+: loss")
        accuracy = float(re.search(r"accuracy on 2000 digits: (\S+)", outputs[1][0]).group(1))
        self.assertGreater(accuracy, 0.85)
        self.assertGreaterEqual(dtf.load_checkpoint(f"{self.folder}/{LOG_DIR}/checkpoints").step, steps)

    def test_in_python_in_async_and_in_sync(self):
        program = [sys.executable, str(EXAMPLES / "mnist_dist.py")]
        for sync, steps in ([], 400), (["--issync=1"], 200):
            with self.subTest(sync=sync):
                self.trained(program, program, f"--log_dir={LOG_DIR}", *sync, steps=steps)
                shutil.rmtree(f"{self.folder}/{LOG_DIR}")

    def test_a_worker_without_a_ps_ends_at_a_signal(self):
        worker = self.start([sys.executable, str(EXAMPLES / "mnist_dist.py")], "worker", 0, free_ports(4))
        caught = 0
        while not caught >> (signal.SIGTERM - 1) & 1:  # until it has its handler
            self.assertIsNone(worker.poll(), "it waits")
            status = pathlib.Path(f"/proc/{worker.pid}/status").read_text(encoding="ascii")
            caught = int(re.search(r"^SigCgt:\s*(\w+)$", status, re.M).group(1), 16)
        begin = time.monotonic()
        worker.terminate()
        _, err = worker.communicate(timeout=PATIENCE)
        self.assertLess(time.monotonic() - begin, CONNECT / 2, "in a second or two, not at the end of its connect_seconds")
        self.assertEqual(worker.returncode, dtf.UnavailableError.code, err)
        self.assertRegex(err, "worker/0 was asked to stop while it waited: .*ps/0")

    def test_in_cpp_and_in_both(self):
        cpp = [f"{self.folder}/mnist_dist"]
        subprocess.run(["c++", "-std=c++20", f"-I{SOURCE / 'common/api'}", EXAMPLES / "mnist_dist.cc", "-o", *cpp, LIBDTF,
                        f"-Wl,-rpath,{pathlib.Path(LIBDTF).parent}"], check=True, timeout=PATIENCE)
        python = [sys.executable, str(EXAMPLES / "mnist_dist.py")]
        for ps, sync, steps in ((cpp, [], 400), (python, ["--issync=1"], 200)):
            with self.subTest(sync=sync):
                self.trained(ps, cpp, f"--log_dir={LOG_DIR}", *sync, steps=steps)
                shutil.rmtree(f"{self.folder}/{LOG_DIR}")


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()
