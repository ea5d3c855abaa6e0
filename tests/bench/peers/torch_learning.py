"""ResNet-20 on CIFAR-10 in PyTorch: the reference of compare_learning.py for dtf's training.

--initial FILE writes the initial weights by dtf's names and layouts, which are lines of --names,
and ends. Without it: trains from the same weights, by their seed, with dtf's recipe, and prints
a line of JSON for each evaluation.
"""
import argparse
import json
import os
import pathlib

os.environ["CUDA_VISIBLE_DEVICES"] = ""

import numpy
import torch
from torch import nn

from torch_networks import resnet20

BATCH, PADDING = 128, 4


def make_model(seed):
    """dtf's initial values: He's normal for convolutions, Glorot's uniform for the dense layer; its batch_norm."""
    torch.manual_seed(seed)
    model = resnet20()
    for module in model.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        elif isinstance(module, nn.Linear):
            nn.init.xavier_uniform_(module.weight)
            nn.init.zeros_(module.bias)
        elif isinstance(module, nn.BatchNorm2d):
            module.momentum, module.eps = 0.01, 1e-3
    return model


def weights_of(model):
    """In dtf's layouts: convolutions [height, width, in, out], matrices [in, out]."""
    for name, value in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        array = value.numpy()
        yield numpy.ascontiguousarray(array.transpose(2, 3, 1, 0) if array.ndim == 4 else array.T)


def read(path):
    records = numpy.fromfile(path, dtype=numpy.uint8).reshape(-1, 3073)
    return torch.from_numpy(records[:, 1:].reshape(-1, 3, 32, 32).copy()), torch.from_numpy(records[:, 0].astype(numpy.int64))


def augmented(images, generator):
    """Half of them mirrored; each moved by up to PADDING pixels, with black around it."""
    count = len(images)
    flips = torch.rand(count, generator=generator) < 0.5
    images = torch.where(flips[:, None, None, None], images.flip(3), images)
    images = nn.functional.pad(images, [PADDING] * 4)
    rows, columns = (torch.randint(0, 2 * PADDING + 1, (count,), generator=generator) for _ in range(2))
    windows = images.unfold(2, 32, 1).unfold(3, 32, 1)  # [count, 3, 9, 9, 32, 32]
    return windows[torch.arange(count), :, rows, columns]


def evaluate(model, images, labels):
    model.eval()
    loss, right = 0.0, 0
    with torch.no_grad():
        for first in range(0, len(images), 500):
            logits, answers = model(images[first:first + 500].float() / 255), labels[first:first + 500]
            loss += nn.functional.cross_entropy(logits, answers, reduction="sum").item()
            right += (logits.argmax(1) == answers).sum().item()
    model.train()
    return loss / len(images), right / len(images)


def train(args, model):
    generator = torch.Generator().manual_seed(args.seed)
    images, labels = read(args.train)
    test_images, test_labels = read(args.test)
    model = model.to(memory_format=torch.channels_last)
    kernels = [p for p in model.parameters() if p.ndim > 1]
    others = [p for p in model.parameters() if p.ndim == 1]
    optimizer = torch.optim.SGD([{"params": kernels, "weight_decay": 1e-4}, {"params": others}], lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
    order, loss_sum = torch.empty(0, dtype=torch.int64), 0.0
    for step in range(1, args.steps + 1):
        if len(order) < BATCH:
            order = torch.cat([order, torch.randperm(len(images), generator=generator)])
        batch, order = order[:BATCH], order[BATCH:]
        x = augmented(images[batch], generator).float().div_(255).contiguous(memory_format=torch.channels_last)
        optimizer.zero_grad(set_to_none=True)
        loss = nn.functional.cross_entropy(model(x), labels[batch])
        loss.backward()
        optimizer.step()
        schedule.step()
        loss_sum += loss.item()
        if step % args.every == 0:
            eval_loss, accuracy = evaluate(model, test_images, test_labels)
            print(json.dumps({"step": step, "train_loss": loss_sum / args.every, "loss": eval_loss, "accuracy": accuracy,
                              "version": torch.__version__.split("+")[0]}), flush=True)
            loss_sum = 0.0


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--initial", type=pathlib.Path)
    parser.add_argument("--names", type=pathlib.Path)
    parser.add_argument("--train", type=pathlib.Path)
    parser.add_argument("--test", type=pathlib.Path)
    parser.add_argument("--steps", type=int, default=2000)
    parser.add_argument("--every", type=int, default=250)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    model = make_model(args.seed)
    if args.initial is None:
        return train(args, model)
    names = args.names.read_text().split()
    weights = list(weights_of(model))
    if len(names) != len(weights):
        raise SystemExit(f"{len(names)} variables in dtf, {len(weights)} in PyTorch")
    numpy.savez(args.initial, **dict(zip(names, weights)))


main()
