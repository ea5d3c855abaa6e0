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


class Bottleneck(nn.Module):
    def __init__(self, channels_in, channels, stride, first):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(channels_in, channels, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.ReLU(inplace=True),
            nn.Conv2d(channels, 4 * channels, 1, bias=False), nn.BatchNorm2d(4 * channels))
        self.shortcut = nn.Sequential(nn.Conv2d(channels_in, 4 * channels, 1, stride, bias=False),
                                      nn.BatchNorm2d(4 * channels)) if first else nn.Identity()

    def forward(self, x):
        return torch.relu_(self.body(x) + self.shortcut(x))


def perceptron(*units, activation=nn.ReLU):
    layers = [nn.Flatten()]
    for i, (inputs, outputs) in enumerate(zip(units, units[1:])):
        layers += [nn.Linear(inputs, outputs)] + ([activation()] if i + 2 < len(units) else [])
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


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            layers.append(Bottleneck(before, 64 << stage, 2 if block == 0 and stage > 0 else 1, block == 0))
            before = 4 * (64 << stage)
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


# By the names of `dtf-bench models`: the network, the shape of an example, the batch, the outputs.
NETWORKS = {"softmax b100": (lambda: perceptron(784, 10), (784,), 100, 10),
            "784-300-100-10 b100": (lambda: perceptron(784, 300, 100, 10), (784,), 100, 10),
            "28-300x5-1 b100": (lambda: perceptron(28, *[300] * 5, 1, activation=nn.Tanh), (28,), 100, 1),
            "LeNet b128": (lenet, (1, 28, 28), 128, 10),
            "ResNet-20 b128": (resnet20, (3, 32, 32), 128, 10),
            "ResNet-50 b8": (resnet50, (3, 224, 224), 8, 1000)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=NETWORKS, required=True)
    parser.add_argument("--way", choices=["default", "tuned", "compiled"], default="default")
    parser.add_argument("--seconds", type=float, default=2)
    args = parser.parse_args()
    torch.set_num_threads(THREADS)
    torch.manual_seed(0)
    make, shape, batch, outputs = NETWORKS[args.network]
    model, x, answers = make(), torch.rand(batch, *shape), torch.randint(0, max(2, outputs), (batch,))
    if args.way != "default" and len(shape) == 3:
        model, x = model.to(memory_format=torch.channels_last), x.contiguous(memory_format=torch.channels_last)
    if args.way == "compiled":
        model = torch.compile(model)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    loss_of = nn.CrossEntropyLoss()
    if outputs == 1:
        loss_of, answers = nn.BCEWithLogitsLoss(), answers.float()[:, None]

    def step():
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(x), answers).backward()
        optimizer.step()

    for _ in range(2 if shape == (3, 224, 224) else 5):
        step()
    steps, start, cpu_start = 0, time.perf_counter(), time.process_time()
    while steps < 3 or time.perf_counter() - start < args.seconds:
        step()
        steps += 1
    seconds, cpu_seconds = (time.perf_counter() - start) / steps, (time.process_time() - cpu_start) / steps
    print(json.dumps({"seconds": seconds, "cpu_seconds": cpu_seconds, "version": torch.__version__.split("+")[0],
                      "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


if __name__ == "__main__":
    main()
