"""Training steps of a perceptron in JAX, compiled, with donated buffers: see torch_model.py."""
import argparse
import functools
import json
import os
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp

BATCH = 100
STEPS_A_CALL = 100  # in one compiled loop: so that what Python costs is not counted
NETWORKS = {"softmax b100": (784, 10), "784-300-100-10 b100": (784, 300, 100, 10)}


def loss_of(parameters, x, labels):
    for i, (weights, bias) in enumerate(parameters):
        x = x @ weights + bias
        x = jax.nn.relu(x) if i + 1 < len(parameters) else x
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(x), labels[:, None], 1))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=NETWORKS, required=True)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    units = NETWORKS[args.network]
    key = jax.random.PRNGKey(0)
    parameters = [(jax.random.normal(key, (m, n)) / m ** 0.5, jnp.zeros(n)) for m, n in zip(units, units[1:])]
    velocity = jax.tree.map(jnp.zeros_like, parameters)
    examples = jax.random.uniform(key, (100 * BATCH, units[0]))
    answers = jax.random.randint(key, (100 * BATCH,), 0, units[-1])

    def step(state, i):
        weights, moments = state
        at = i * BATCH % len(examples)
        x, labels = (jax.lax.dynamic_slice_in_dim(each, at, BATCH) for each in (examples, answers))
        gradients = jax.grad(loss_of)(weights, x, labels)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
        return (jax.tree.map(lambda w, m: w - 0.01 * m, weights, moments), moments), None

    @functools.partial(jax.jit, donate_argnums=0)
    def many(state, first):
        return jax.lax.scan(step, state, first + jnp.arange(STEPS_A_CALL))[0]

    state = jax.block_until_ready(many((parameters, velocity), 0))
    calls, start = 0, time.perf_counter()
    while calls < 3 or time.perf_counter() - start < args.seconds:
        state = jax.block_until_ready(many(state, calls * STEPS_A_CALL))
        calls += 1
    print(json.dumps({"seconds": (time.perf_counter() - start) / calls / STEPS_A_CALL, "version": jax.__version__}))


main()
