"""One task of a TensorFlow cluster, between-graph as in TensorFlow 1: a reference for compare.py.

The chief (worker 0) prints one line of JSON when it has measured; ps and the other workers run
until they are ended. Every worker feeds random data of the real shape: their values do not
change the time of a step.
"""
import argparse
import json
import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
    os.environ.pop(name, None)  # gRPC would send loopback traffic there

import numpy as np
import tensorflow as tf

v1 = tf.compat.v1
v1.disable_v2_behavior()

LAYERS = {"softmax": [784, 10], "mlp": [784, 300, 100, 10]}
HIDDEN = {"clicks": [400, 400, 400], "rows": [32]}  # behind a table


def percentile(seconds, percent):
    ordered = sorted(seconds)
    return ordered[int(percent / 100 * (len(ordered) - 1))]


def on_ps(task):
    return v1.device(f"/job:ps/task:{task}/device:CPU:0")


def on_worker(task):
    return v1.device(f"/job:worker/task:{task}/device:CPU:0")


def session_config(args):
    # Without the filter a session would wait for unrelated tasks.
    return v1.ConfigProto(device_filters=["/job:ps", f"/job:worker/task:{args.task}"])


def tokens(name):
    with on_ps(0):
        return v1.FIFOQueue(64, tf.int32, shapes=[()], shared_name=name)


def loss_of(layers, images, labels):
    for i, (inputs, units) in enumerate(zip(layers, layers[1:])):
        if i > 0:
            images = tf.nn.relu(images)
        kernel = v1.get_variable(f"kernel{i}", [inputs, units], initializer=v1.glorot_uniform_initializer(seed=1))
        bias = v1.get_variable(f"bias{i}", [units], initializer=v1.zeros_initializer())
        images = tf.matmul(images, kernel) + bias
    return tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=images))


def clicks_loss(args, numbers, slots, labels):
    """Rows of one table for the slots, and layers, with three of 400 PaddleRec's DNN; the table split over all ps."""
    table = v1.get_variable("table", [1_000_001, 10], initializer=v1.random_uniform_initializer(-0.01, 0.01),
                            partitioner=v1.fixed_size_partitioner(len(args.ps)))
    rows = tf.nn.embedding_lookup(table, slots)
    x = tf.concat([numbers, tf.reshape(rows, [args.batch, 260])], 1)
    for i, units in enumerate(HIDDEN[args.work] + [1]):
        kernel = v1.get_variable(f"kernel{i}", [x.shape[1], units], initializer=v1.glorot_uniform_initializer(seed=1))
        x = tf.matmul(x, kernel) + v1.get_variable(f"bias{i}", [units], initializer=v1.zeros_initializer())
        x = tf.nn.relu(x) if units > 1 else x
    return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=x))


def clicks_feeds(args):
    """Returns the placeholders, and all examples to feed to each."""
    random = np.random.RandomState(args.task)
    placeholders = [v1.placeholder(tf.float32, [args.batch, 13]), v1.placeholder(tf.int64, [args.batch, 26]),
                    v1.placeholder(tf.float32, [args.batch, 1])]
    return placeholders, [random.rand(20000, 13).astype(np.float32), random.randint(0, 1_000_001, (20000, 26)),
                          random.randint(0, 2, (20000, 1)).astype(np.float32)]


def image_feeds(args):
    random = np.random.RandomState(args.task)
    placeholders = [v1.placeholder(tf.float32, [args.batch, 784]), v1.placeholder(tf.int64, [args.batch])]
    return placeholders, [random.rand(10000, 784).astype(np.float32), random.randint(0, 10, 10000)]


def report(result):
    """Ends the process too: a clean end of a session would wait minutes for other tasks' work."""
    print(json.dumps({**result, "version": tf.__version__}), flush=True)
    os._exit(0)


def train(args, server, cluster):
    chief = args.task == 0
    workers = len(args.workers)
    with v1.device(v1.train.replica_device_setter(
            cluster=cluster, ps_device="/job:ps/device:CPU:0", worker_device=f"/job:worker/task:{args.task}/device:CPU:0")):
        global_step = v1.train.get_or_create_global_step()
        fed, data = clicks_feeds(args) if args.work in HIDDEN else image_feeds(args)
        if args.work in HIDDEN:
            loss, optimizer = clicks_loss(args, *fed), v1.train.AdagradOptimizer(0.01)
        else:
            loss, optimizer = loss_of(LAYERS[args.work], *fed), v1.train.GradientDescentOptimizer(0.1)
        hooks = []
        if args.mode == "sync":
            optimizer = v1.train.SyncReplicasOptimizer(optimizer, replicas_to_aggregate=workers, total_num_replicas=workers)
        update = optimizer.minimize(loss, global_step=global_step)
        if args.mode == "sync":
            hooks.append(optimizer.make_session_run_hook(chief, num_tokens=0))
    # All begin to step together: the others first wait for the chief's variables, then all for each
    # other.
    initialised = tokens("initialised")
    tell_others, hear_chief = initialised.enqueue_many(tf.zeros([workers], tf.int32)), initialised.dequeue()
    starts = [tokens(f"start{i}") for i in range(workers)]
    here, all_here = [queue.enqueue(0) for queue in starts], starts[args.task].dequeue_many(workers)

    if not chief:
        with v1.Session(server.target, config=session_config(args)) as session:
            session.run(hear_chief)
    with v1.train.MonitoredTrainingSession(server.target, is_chief=chief, config=session_config(args), hooks=hooks,
                                           log_step_count_steps=None) as session:
        if chief:
            session.run_step_fn(lambda step_context: step_context.session.run(tell_others))
        session.run_step_fn(lambda step_context: step_context.session.run(here))
        session.run_step_fn(lambda step_context: step_context.session.run(all_here))
        first, local = None, 0
        while True:
            at = local * args.batch % len(data[0])
            batch = {placeholder: part[at:at + args.batch] for placeholder, part in zip(fed, data)}
            _, step, seen = session.run([update, global_step, loss], batch)
            local += 1
            if first is None and step >= args.warm:
                first = (step, time.perf_counter())
            if chief and first is not None and step >= first[0] + args.steps:
                report({"steps_per_second": (step - first[0]) / (time.perf_counter() - first[1]), "loss": float(seen)})


def null_step(args, server, elements, steps):
    """Fetches the variable, computes next to nothing, subtracts a gradient of the same size from it."""
    graph = tf.Graph()
    with graph.as_default():
        with on_ps(0):
            variable = v1.get_variable(f"variable{elements}", [elements], initializer=v1.zeros_initializer(), use_resource=False)
        with on_worker(args.task):
            gradient = tf.identity(variable) * 0.5  # here, so that it has to come and go
        with on_ps(0):
            step = v1.assign_sub(variable, gradient).op
        init = v1.global_variables_initializer()
    with v1.Session(server.target, graph=graph, config=session_config(args)) as session:
        session.run(init)
        call = session.make_callable(step)
        seconds = []
        for i in range(steps + steps // 5 + 2):
            start = time.perf_counter()
            call()
            seconds.append(time.perf_counter() - start)
    return percentile(seconds[-steps:], 50)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--job", choices=["ps", "worker"], required=True)
    parser.add_argument("--task", type=int, default=0)
    parser.add_argument("--ps", type=lambda text: text.split(","), required=True)
    parser.add_argument("--workers", type=lambda text: text.split(","), required=True)
    parser.add_argument("--work", choices=[*LAYERS, *HIDDEN, "null"], required=True)
    parser.add_argument("--mode", choices=["async", "sync"], default="async")
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--warm", type=int, default=100)
    parser.add_argument("--steps", type=int, default=500)
    args = parser.parse_args()
    cluster = tf.train.ClusterSpec({"ps": args.ps, "worker": args.workers})
    server = v1.train.Server(cluster, job_name=args.job, task_index=args.task)
    if args.job == "ps":
        server.join()
    if args.work == "null":
        report({"scalar_us": null_step(args, server, 1, args.steps) * 1e6,
                "dense_ms": null_step(args, server, 25_000_000, max(3, args.steps // 50)) * 1e3})
    train(args, server, cluster)


main()
