"""The networks of `dtf-bench models` in PyTorch, with the same layers."""
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


# By the names of dtf-bench: the network, the shape of an example, the batch, the outputs.
NETWORKS = {"softmax b100": (lambda: perceptron(784, 10), (784,), 100, 10),
            "784-300-100-10 b100": (lambda: perceptron(784, 300, 100, 10), (784,), 100, 10),
            "28-300x5-1 b100": (lambda: perceptron(28, *[300] * 5, 1, activation=nn.Tanh), (28,), 100, 1),
            "LeNet b128": (lenet, (1, 28, 28), 128, 10),
            "ResNet-20 b128": (resnet20, (3, 32, 32), 128, 10),
            "ResNet-50 b8": (resnet50, (3, 224, 224), 8, 1000),
            "ResNet-50 b64": (resnet50, (3, 224, 224), 64, 1000),
            "ResNet-50 b256": (resnet50, (3, 224, 224), 256, 1000)}
