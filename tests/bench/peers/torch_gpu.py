"""Training steps of one network on a GPU in PyTorch: compare_gpu.py compares dtf with it.

Random data that stay on the GPU, gradient descent with momentum. Prints a line of JSON for each
precision and way: seconds a step by the clock, the median of several windows of some hundred
milliseconds. Precisions: float32, tf32, and bfloat16 by autocast. Ways:
- eager: as it comes, but images channels last;
- graph: the whole step captured as one CUDA graph;
- compiled: torch.compile;
- compiled-graph: both.

With "-gradients" behind it a way runs without the optimizer. --prepare only compiles, so that
the measured run finds the code in torch's cache.
"""
import argparse
import json
import statistics
import time

import torch
from torch import nn

from torch_networks import NETWORKS


class Training:
    """One network with its data and optimizer on the GPU; step() is a whole training step."""

    def __init__(self, network, precision, compiled, gradients_only):
        make, shape, batch, outputs = NETWORKS[network]
        self.model = make().cuda()
        self.x, self.answers = torch.rand(batch, *shape, device="cuda"), torch.randint(0, max(2, outputs), (batch,), device="cuda")
        if len(shape) == 3:
            self.model = self.model.to(memory_format=torch.channels_last)
            self.x = self.x.contiguous(memory_format=torch.channels_last)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.01, momentum=0.9)
        self.loss_of = nn.CrossEntropyLoss()
        if outputs == 1:
            self.loss_of, self.answers = nn.BCEWithLogitsLoss(), self.answers.float()[:, None]
        self.forward = torch.compile(self.model) if compiled else self.model
        self.cast = torch.autocast("cuda", torch.bfloat16, enabled=precision == "bfloat16", cache_enabled=False)
        self.gradients_only = gradients_only

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        with self.cast:
            loss = self.loss_of(self.forward(self.x), self.answers)
        loss.backward()
        if not self.gradients_only:
            self.optimizer.step()
        return loss

    def captured(self):
        """Captures step() as one CUDA graph; returns its replay."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            self.step()
        return graph.replay


def seconds_of(step, window, windows):
    for _ in range(3):
        step()
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    steps = max(2, int(window / (time.perf_counter() - start)))
    taken = []
    for _ in range(windows):
        start = time.perf_counter()
        for _ in range(steps):
            step()
        torch.cuda.synchronize()
        taken.append((time.perf_counter() - start) / steps)
    return statistics.median(taken)


def measure(network, precision, way, window, windows):
    torch.manual_seed(0)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    kind = way.removesuffix("-gradients")
    training = Training(network, precision, kind.startswith("compiled"), kind != way)
    step = training.captured() if kind.endswith("graph") else training.step
    return {"precision": precision, "way": way, "seconds": seconds_of(step, window, windows), "version": torch.__version__.split("+")[0],
            "device": torch.cuda.get_device_name()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--network", choices=NETWORKS, required=True)
    parser.add_argument("--way", default="eager", help="separated by commas")
    parser.add_argument("--precision", default="float32", help="separated by commas")
    parser.add_argument("--prepare", action="store_true")
    parser.add_argument("--window", type=float, default=0.3)
    parser.add_argument("--windows", type=int, default=5)
    args = parser.parse_args()
    torch.backends.cudnn.benchmark = True
    for precision in args.precision.split(","):
        if args.prepare:
            torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
            Training(args.network, precision, True, True).step()
            continue
        for way in args.way.split(","):
            print(json.dumps(measure(args.network, precision, way, args.window, args.windows)), flush=True)


main()
