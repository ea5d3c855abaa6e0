"""Training steps of a network in JAX, compiled, with donated buffers: see torch_model.py."""
import argparse
import functools
import json
import math
import os
import resource
import time

os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp

import jax_resnet

# Shapes of the weights: matrices of dense layers, filters of convolutions.
NETWORKS = {"softmax b100": [(784, 10)], "784-300-100-10 b100": [(784, 300), (300, 100), (100, 10)],
            "28-300x5-1 b100": [(28, 300)] + 4 * [(300, 300)] + [(300, 1)],
            "LeNet b128": [(5, 5, 1, 32), (5, 5, 32, 64), (3136, 1024), (1024, 10)]}
RESNETS = {"ResNet-20 b128": (20, 32), "ResNet-50 b8": (50, 224)}  # depth, side of an image


def convolved(x, filters):
    x = jax.nn.relu(jax.lax.conv_general_dilated(x, filters[0], (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
                    + filters[1])
    return jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")


def plain_outputs(parameters, x):
    if parameters[0][0].ndim == 4:
        x = x.reshape(-1, 28, 28, 1)
    activation = jnp.tanh if parameters[-1][0].shape[1] == 1 else jax.nn.relu
    for i, layer in enumerate(parameters):
        if layer[0].ndim == 4:
            x = convolved(x, layer)
            continue
        x = x.reshape(len(x), -1) @ layer[0] + layer[1]
        x = activation(x) if i + 1 < len(parameters) else x
    return x


def loss_of(outputs, labels):
    if outputs.shape[1] == 1:
        return jnp.mean(jax.nn.softplus(outputs[:, 0]) - outputs[:, 0] * labels)
    return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(outputs), labels[:, None], 1))


def network_of(name, key):
    """Its parameters, its outputs by these and examples, the shape of an example, the number of classes."""
    if name in RESNETS:
        depth, side = RESNETS[name]
        return (jax_resnet.parameters_of(depth, key), functools.partial(jax_resnet.outputs_of, depth), (side, side, 3),
                10 if depth == 20 else 1000)
    shapes = NETWORKS[name]
    parameters = [(jax.random.normal(key, shape) / math.prod(shape[:-1]) ** 0.5, jnp.zeros(shape[-1])) for shape in shapes]
    return parameters, plain_outputs, (784 if len(shapes[0]) == 4 else shapes[0][0],), max(2, shapes[-1][-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=[*NETWORKS, *RESNETS], required=True)
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    batch = int(args.network.split(" b")[1])
    key = jax.random.PRNGKey(0)
    parameters, outputs_of, shape, classes = network_of(args.network, key)
    has_convolutions = args.network == "LeNet b128" or args.network in RESNETS
    # In one compiled loop, to exclude Python's own time; but XLA's convolutions are slow in a loop.
    steps_a_call = 1 if has_convolutions else 100
    batches = 2 if classes > 100 else 32
    velocity = jax.tree.map(jnp.zeros_like, parameters)
    examples = jax.random.uniform(key, (batches * batch, *shape))
    answers = jax.random.randint(key, (batches * batch,), 0, classes)

    def step(state, i):
        weights, moments = state
        at = i * batch % len(examples)
        x, labels = (jax.lax.dynamic_slice_in_dim(each, at, batch) for each in (examples, answers))
        gradients = jax.grad(lambda each: loss_of(outputs_of(each, x), labels))(weights)
        moments = jax.tree.map(lambda m, g: 0.9 * m + g, moments, gradients)
        return (jax.tree.map(lambda w, m: w - 0.01 * m, weights, moments), moments), None

    @functools.partial(jax.jit, donate_argnums=0)
    def many(state, first):
        if steps_a_call == 1:
            return step(state, first)[0]
        return jax.lax.scan(step, state, first + jnp.arange(steps_a_call))[0]

    state = jax.block_until_ready(many((parameters, velocity), 0))
    calls, start, cpu_start = 0, time.perf_counter(), time.process_time()
    while calls < 3 or time.perf_counter() - start < args.seconds:
        state = jax.block_until_ready(many(state, calls * steps_a_call))
        calls += 1
    steps = calls * steps_a_call
    print(json.dumps({"seconds": (time.perf_counter() - start) / steps, "cpu_seconds": (time.process_time() - cpu_start) / steps,
                      "version": jax.__version__, "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


main()
