"""ResNet-20 and ResNet-50 in JAX, channels last, with the layers of torch_networks.py. Batch normalisation is by the batch;
the moving averages, which no output of a training step depends on, are left out."""
import math

import jax
import jax.numpy as jnp

LAYOUT = ("NHWC", "HWIO", "NHWC")


def convolution(key, size, inputs, outputs):
    """Its filters, and the scales and offsets of the batch normalisation behind it."""
    filters = jax.random.normal(key, (size, size, inputs, outputs)) / math.sqrt(size * size * inputs)
    return filters, jnp.ones(outputs), jnp.zeros(outputs)


def normalised(parameters, x, stride=1):
    filters, scale, offset = parameters
    margin = filters.shape[0] // 2
    x = jax.lax.conv_general_dilated(x, filters, (stride, stride), [(margin, margin)] * 2, dimension_numbers=LAYOUT)
    mean, variance = jnp.mean(x, (0, 1, 2)), jnp.var(x, (0, 1, 2))
    return (x - mean) * jax.lax.rsqrt(variance + 1e-5) * scale + offset


def blocks_of(depth):
    """[(sizes of its filters, their outputs, stride, whether its short cut is a convolution)]"""
    if depth == 20:
        return [((3, 3), (width, width), 2 if first and width > 16 else 1, first and width > 16)
                for width in (16, 32, 64) for first in (True, False, False)]
    return [((1, 3, 1), (64 << stage, 64 << stage, 256 << stage), 2 if block == 0 and stage > 0 else 1, block == 0)
            for stage, count in enumerate((3, 4, 6, 3)) for block in range(count)]


def parameters_of(depth, key):
    inputs = 16 if depth == 20 else 64
    stem = convolution(key, 3, 3, inputs) if depth == 20 else convolution(key, 7, 3, inputs)
    blocks = []
    for sizes, outputs, _, has_short_cut in blocks_of(depth):
        before = (inputs,) + outputs[:-1]
        body = [convolution(key, *each) for each in zip(sizes, before, outputs)]
        blocks.append((body, convolution(key, 1, inputs, outputs[-1]) if has_short_cut else None))
        inputs = outputs[-1]
    classes = 10 if depth == 20 else 1000
    return stem, blocks, (jax.random.normal(key, (inputs, classes)) / math.sqrt(inputs), jnp.zeros(classes))


def outputs_of(depth, parameters, x):
    stem, blocks, (weights, biases) = parameters
    x = jax.nn.relu(normalised(stem, x, 1 if depth == 20 else 2))
    if depth == 50:
        x = jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, (1, 3, 3, 1), (1, 2, 2, 1), [(0, 0), (1, 1), (1, 1), (0, 0)])
    for (body, short_cut), (_, _, stride, _) in zip(blocks, blocks_of(depth)):
        y = x
        for i, each in enumerate(body):
            strided = i == (0 if depth == 20 else 1)
            y = normalised(each, y, stride if strided else 1)
            y = jax.nn.relu(y) if i + 1 < len(body) else y
        x = jax.nn.relu(y + (x if short_cut is None else normalised(short_cut, x, stride)))
    return jnp.mean(x, (1, 2)) @ weights + biases
