"""Training steps of one network in PyTorch: what compare_models.py measures `dtf-bench models` against.

The same layers, batch, loss and optimizer, random data. Prints one line of JSON: seconds a step. `--way` says how
PyTorch is used: as it comes, tuned (channels last; the caller sets the allocator's environment), or compiled.
"""
import argparse
import json
import os
import resource
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
THREADS = int(os.environ.setdefault("OMP_NUM_THREADS", "1"))

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, 1, 1, bias=False), nn.BatchNorm2d(channels))
        self.shortcut = nn.Identity() if stride == 1 else nn.Sequential(
            nn.Conv2d(channels_in, channels, 1, stride, bias=False), nn.BatchNorm2d(channels))

    def forward(self, x):
        return torch.relu_(self.body(x) + self.shortcut(x))


def perceptron(*units):
    layers = [nn.Flatten()]
    for i, (inputs, outputs) in enumerate(zip(units, units[1:])):
        layers += [nn.Linear(inputs, outputs)] + ([nn.ReLU()] if i + 2 < len(units) else [])
    return nn.Sequential(*layers)


def lenet():
    return nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                         nn.Flatten(), nn.Linear(7 * 7 * 64, 1024), nn.ReLU(inplace=True), nn.Linear(1024, 10))


def resnet20():
    layers, before = [nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(inplace=True)], 16
    for channels in (16, 32, 64):
        for block in range(3):
            layers.append(Residual(before, channels, 2 if block == 0 and channels != 16 else 1))
            before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


# By the names of `dtf-bench models`: the network, the shape of an example, the batch.
NETWORKS = {"softmax b100": (lambda: perceptron(784, 10), (784,), 100),
            "784-300-100-10 b100": (lambda: perceptron(784, 300, 100, 10), (784,), 100),
            "LeNet b128": (lenet, (1, 28, 28), 128),
            "ResNet-20 b128": (resnet20, (3, 32, 32), 128)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=NETWORKS, required=True)
    parser.add_argument("--way", choices=["default", "tuned", "compiled"], default="default")
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    make, shape, batch = NETWORKS[args.network]
    model, x, answers = make(), torch.rand(batch, *shape), torch.randint(0, 10, (batch,))
    if args.way != "default" and len(shape) == 3:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if args.way == "compiled":
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x), answers).backward()
        optimizer.step()

    for _ in range(5):
        step()
    steps, start = 0, time.perf_counter()
    while steps < 3 or time.perf_counter() - start < args.seconds:
        step()
        steps += 1
    seconds = (time.perf_counter() - start) / steps
    print(json.dumps({"seconds": seconds, "version": torch.__version__.split("+")[0],
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
