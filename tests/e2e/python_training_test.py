#!/usr/bin/env python3
"""Training by several clients with the Python package `dtf`: synchronous replicas and the Supervisor, on a psd and a workerd that
serve.

Usage: python_training_test.py LIBDTF DTF_LAUNCH [TEST...]         needs DTF_SOURCE_ROOT

Exit 77 (skipped, with the reason) where Python lacks numpy.
"""
import os
import pathlib
import sys
import tempfile
import threading
import unittest

try:
    import numpy as np
except ImportError:
    print(f"SKIPPED: {sys.executable} has no numpy: run scripts/python-env.sh", file=sys.stderr)
    sys.exit(77)

LIBDTF, LAUNCH = (str(pathlib.Path(path).resolve()) for path in (sys.argv.pop(1), sys.argv.pop(1)))
SOURCE = pathlib.Path(os.environ["DTF_SOURCE_ROOT"]).resolve()
SEED, ROWS = 20261202, 32
os.environ["DTF_LIBRARY"] = LIBDTF
sys.path[:0] = [str(SOURCE / "common/api/python"), str(SOURCE / "tests/support")]
import dtf  # noqa: E402  the path is set above
from serving_tasks import PATIENCE, Cluster  # noqa: E402


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

    def test_mistakes(self):
        model = Regression()
        waiting = dtf.Supervisor(model.graph, is_chief=False, task="worker/1", wait_seconds=0.3, poll_seconds=0.05)
        with self.assertRaisesRegex(dtf.DeadlineExceededError, "worker/1 has waited"):
            waiting.prepare_or_wait_for_session(self.cluster.target)
        waiting.close()
        with self.assertRaises(dtf.ClosedError):
            waiting.run(model.loss)
        model.graph.variable("array", initializer=[1.0])
        with self.assertRaisesRegex(dtf.InvalidArgumentError, "'array' begins with an array"):
            dtf.Supervisor(model.graph)
        with self.assertRaises(dtf.InvalidArgumentError):
            dtf.SyncReplicas(dtf.Adam(), 5000, rank=0).minimize(model.loss)
        other = dtf.Supervisor(Regression().graph, log_dir=self.folder, summaries=["w"], summary_seconds=1e-3)
        with other.managed_session() as session:
            with self.assertRaisesRegex(dtf.InvalidArgumentError, "summary 'w' is no float32 scalar"):
                for _ in range(100):
                    session.run("w")


if __name__ == "__main__":
    print(f"seed {SEED}", file=sys.stderr)
    unittest.main()
