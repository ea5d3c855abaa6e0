#!/usr/bin/env python3
"""TensorFlow's classic distributed MNIST program: the same program is each ps and each worker, by four flags. In four terminals:

    mnist_dist.py --ps_hosts localhost:2221,localhost:2222 --worker_hosts localhost:2223,localhost:2224 --job_name ps --task_index 0
    ... --job_name ps --task_index 1
    ... --job_name worker --task_index 0
    ... --job_name worker --task_index 1

--issync trains in sync: each step takes the mean of all workers' gradients. --data_dir is the folder of MNIST's four files
(scripts/fetch-mnist.sh); without it the digits are dtf's own. mnist_dist.cc is the same program in C++.
"""
import argparse
import sys

import dtf

BATCH, HIDDEN = 100, 100


def flags():  # 1. the flags
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ps_hosts", required=True)
    parser.add_argument("--worker_hosts", required=True)
    parser.add_argument("--job_name", required=True, choices=["ps", "worker"])
    parser.add_argument("--task_index", type=int, required=True)
    parser.add_argument("--issync", type=int, nargs="?", const=1, default=0, choices=[0, 1])
    parser.add_argument("--train_steps", type=int, default=2000)
    parser.add_argument("--log_dir", default="runs/mnist_dist")
    parser.add_argument("--data_dir", default="")
    return parser.parse_args()


def settings(folder):
    def files(name):
        return {"format": "idx", "images": f"{folder}/{name}-images-idx3-ubyte.gz", "labels": f"{folder}/{name}-labels-idx1-ubyte.gz"}
    own = {"train": {"format": "digits", "count": 10000}, "eval": {"format": "digits", "count": 2000}}
    return {**({"train": files("train"), "eval": files("t10k")} if folder else own), "batch_size": BATCH, "seed": 1}


def main(flag):
    cluster = dtf.ClusterSpec({"ps": flag.ps_hosts, "worker": flag.worker_hosts})  # 2. the cluster
    is_ps = flag.job_name == "ps"
    server = dtf.Server(cluster, flag.job_name, flag.task_index, handle_signals=is_ps)  # 3. the server
    if is_ps:
        print(server.join())  # 4. a ps serves until a signal ends it
        return

    workers, is_chief = cluster.num_tasks("worker"), flag.task_index == 0
    graph = dtf.Graph()
    with graph.device(dtf.replica_device_setter(cluster=cluster, worker_device=f"/job:worker/task:{flag.task_index}")):  # 5.
        images = graph.placeholder(dtf.uint8, [BATCH, 28, 28, 1], "images")  # 6. the placeholders
        labels = graph.placeholder(dtf.uint8, [BATCH], "labels")

        hidden_w = graph.variable("hidden/weights", [784, HIDDEN], "glorot_uniform")  # 7. the model
        hidden_b = graph.variable("hidden/biases", [HIDDEN])
        softmax_w = graph.variable("softmax/weights", [HIDDEN, 10], "glorot_uniform")
        softmax_b = graph.variable("softmax/biases", [10])
        pixels = dtf.reshape(dtf.raw_ops.Normalise(images, scale=1 / 255), [BATCH, 784])
        hidden = dtf.relu(dtf.bias_add(pixels @ hidden_w, hidden_b))
        logits = dtf.bias_add(hidden @ softmax_w, softmax_b)

        loss = dtf.reduce_mean(dtf.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits), name="loss")  # 8.
        accuracy = dtf.accuracy(labels=labels, logits=logits, name="accuracy")
        global_step = graph.counter("global_step")
    optimizer = dtf.Adam(0.001)  # 9. the optimizer
    if flag.issync:
        optimizer = dtf.SyncReplicas(optimizer, workers, rank=flag.task_index)
    training = optimizer.minimize(loss, global_step)

    # 10. and 11. the supervisor saves, restores, and writes the summaries
    supervisor = dtf.Supervisor(graph, is_chief=is_chief, task=f"worker/{flag.task_index}", log_dir=flag.log_dir, seed=1,
                                summaries=[loss, accuracy], summary_seconds=5, poll_seconds=0.1, global_step=global_step,
                                handle_signals=True)

    def present(fetches, feeds=None, targets=()):
        """Runs a step after the training. After the loss of a task the model is back, and the step is run again."""
        for _ in range(3):
            values = supervisor.run(fetches, feeds, targets=targets)
            if values is not None:
                return values
        raise dtf.UnavailableError("a task was lost at the end, again and again")

    data = dtf.Dataset(settings(flag.data_dir), rank=flag.task_index, of=workers)
    with supervisor.managed_session(server.target, connect_seconds=60) as session:
        step = session.global_step()
        counts = is_chief or not flag.issync  # in sync the others train until the chief ends the run: it may need them again
        while not session.should_stop() and (not counts or step < flag.train_steps):  # 12. the loop
            features, classes = data.batch(step)
            try:
                values = session.run([training.train, loss, accuracy], {images: features, labels: classes})
            except dtf.OutOfRangeError:
                break  # in sync: the chief evaluates already
            if values is None:  # a task was lost and is back
                step = session.global_step()
                continue
            last, (step, loss_now, accuracy_now) = step, (int(values[0]), *values[1:])
            if step // 100 != last // 100:
                print(f"worker/{flag.task_index}: step {step}: loss {loss_now:.4f}, accuracy {accuracy_now:.2f}", flush=True)
        if session.should_stop():
            print(f"worker/{flag.task_index}: stopped at step {step}")
        elif is_chief:
            if flag.issync:
                present([], targets=training.finish)
            test = dtf.Dataset(settings(flag.data_dir), evaluation=True)
            right = [present(accuracy, dict(zip((images, labels), test.slice(first, BATCH)))) for first in range(0, len(test), BATCH)]
            print(f"accuracy on {len(test)} digits: {sum(right) / len(right):.4f}")
    server.close()


if __name__ == "__main__":
    try:
        main(flags())
    except dtf.Error as error:
        print(f"mnist_dist.py: error: {error}", file=sys.stderr)
        sys.exit(error.code)
