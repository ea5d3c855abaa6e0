"""One rank of a PyTorch job, DistributedDataParallel over gloo: a reference for compare.py.

There is no parameter server here: the ranks average their gradients among themselves, and each
updates its own copy. So its null step is an allreduce. Rank 0 prints one line of JSON. The data
are random, of MNIST's shape.
"""
import argparse
import json
import os
import time

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["GLOO_SOCKET_IFNAME"] = "lo"
os.environ["OMP_NUM_THREADS"] = str(max(1, len(os.sched_getaffinity(0)) // 2))

import torch
import torch.distributed as dist
from torch import nn

LAYERS = {"softmax": [784, 10], "mlp": [784, 300, 100, 10], "lenet": None}


def model_of(work):
    if work == "lenet":
        model = nn.Sequential(nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2),
                              nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(inplace=True), nn.MaxPool2d(2), nn.Flatten(),
                              nn.Linear(3136, 1024), nn.ReLU(inplace=True), nn.Linear(1024, 10))
        return model.to(memory_format=torch.channels_last)
    modules = []
    for inputs, units in zip(LAYERS[work], LAYERS[work][1:]):
        modules += [nn.ReLU()] if modules else []
        modules.append(nn.Linear(inputs, units))
    return nn.Sequential(*modules)


def train(args):
    torch.manual_seed(args.rank)
    data, answers = torch.rand(10000, 784), torch.randint(0, 10, (10000,))
    if args.work == "lenet":
        data = data.reshape(-1, 1, 28, 28).contiguous(memory_format=torch.channels_last)
    # Gradients lie in the buffers that are sent, and there is no search for unused parameters.
    model = nn.parallel.DistributedDataParallel(model_of(args.work), gradient_as_bucket_view=True, static_graph=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    loss_of = nn.CrossEntropyLoss()
    for i in range(args.warm + args.steps):
        if i == args.warm:
            dist.barrier()
            start = time.perf_counter()
        at = i * args.batch % (len(data) - args.batch)
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of(model(data[at:at + args.batch]), answers[at:at + args.batch])
        loss.backward()
        optimizer.step()
    dist.barrier()
    return {"steps_per_second": args.steps / (time.perf_counter() - start), "loss": loss.item()}


def null_step(elements, steps):
    gradient = torch.zeros(elements)
    seconds = []
    for _ in range(steps + steps // 5 + 2):
        start = time.perf_counter()
        dist.all_reduce(gradient)
        seconds.append(time.perf_counter() - start)
    return sorted(seconds[-steps:])[(steps - 1) // 2]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--work", choices=[*LAYERS, "null"], required=True)
    parser.add_argument("--batch", type=int, default=100)
    parser.add_argument("--warm", type=int, default=100)
    parser.add_argument("--steps", type=int, default=500)
    parser.add_argument("--elements", type=int, help="null: all-reduces of so many numbers alone")
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    dist.init_process_group("gloo", init_method=f"tcp://127.0.0.1:{args.port}", rank=args.rank, world_size=args.ranks)
    if args.elements:
        result = {"p50_seconds": null_step(args.elements, args.steps)}
    elif args.work == "null":
        result = {"scalar_us": null_step(1, args.steps) * 1e6, "dense_ms": null_step(25_000_000, max(3, args.steps // 50)) * 1e3}
    else:
        result = train(args)
    if args.rank == 0:
        print(json.dumps({**result, "version": torch.__version__.split("+")[0]}), flush=True)
    dist.barrier()
    os._exit(0)


main()
