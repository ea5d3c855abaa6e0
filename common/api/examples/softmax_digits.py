#!/usr/bin/env python3
"""softmax_digits.cc in Python: a softmax classifier with an optimizer of the library, checkpoints, and a run that goes on. The
variables and their slots are on ps/0, the loss on worker/0. The images are drawn here, 28 x 28 pixels as of MNIST; the classes are
the bands of rows that are lit.

Usage: softmax_digits.py FOLDER STEPS [dtf://WORKER]     without a target: in this process
"""
import sys

import numpy as np

import dtf

BATCH, SIDE, CLASSES = 50, 28, 10


def batch(step):
    """The batch of a step is a function of the step, so a run that goes on sees the same ones. Returns images and labels."""
    random = np.random.RandomState(step)  # the numbers of std::mt19937
    images, labels = np.empty((BATCH, SIDE, SIDE), np.float32), np.empty(BATCH, np.int32)
    for i in range(BATCH):
        draws = random.randint(0, 2 ** 32, 1 + SIDE * SIDE, np.uint32)
        labels[i] = draws[0] % CLASSES
        lit = np.where(np.arange(SIDE) // 2 == labels[i], 120, 0)
        images[i] = (draws[1:].reshape(SIDE, SIDE) % 100 + lit[:, None]).astype(np.float32) / np.float32(255)
    return images.reshape(BATCH, SIDE * SIDE), labels


def main(folder, steps, *targets):
    graph = dtf.Graph()
    with graph.device("/job:ps/task:0" if targets else None):
        weights = graph.variable("softmax/weights", [SIDE * SIDE, CLASSES], "glorot_uniform")
        biases = graph.variable("softmax/biases", [CLASSES])
    images = graph.placeholder(dtf.float32, [BATCH, SIDE * SIDE], "images")
    labels = graph.placeholder(dtf.int32, [BATCH], "labels")
    logits = dtf.bias_add(dtf.matmul(images, weights), biases)
    loss = dtf.reduce_mean(dtf.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    accuracy = dtf.accuracy(labels=labels, logits=logits)
    training = dtf.Adam(dtf.exponential_decay(0.01, 100, 0.9)).minimize(loss, clip_by_global_norm=5)

    with dtf.Session(graph, targets) as session:
        saver, step = dtf.Saver(max_to_keep=3), 0
        newest = saver.latest_checkpoint(folder)
        if newest:
            step = saver.restore(session, newest)
            print(f"going on from {newest}")
        else:
            session.initialize(seed=1)
        while step < int(steps):
            drawn, wanted = batch(int(step))
            step, loss_now, accuracy_now = session.run([training.train, loss, accuracy], {images: drawn, labels: wanted})
            if step % 50 == 0:
                print(f"step {step}: loss {loss_now:.4f}, accuracy {accuracy_now:.2f}")
        print(f"saved {saver.save(session, folder)}")


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except dtf.Error as error:
        print(f"softmax_digits.py: error: {error}", file=sys.stderr)
        sys.exit(error.code)
