"""Training steps of one network in PyTorch: compare_models.py compares dtf with it.

The same layers, batch, loss and optimizer, random data. Prints one line of JSON: seconds a step.
`--way` chooses PyTorch as it comes, tuned (channels last; the caller sets the allocator's
environment), or compiled.
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

from torch_networks import NETWORKS


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
