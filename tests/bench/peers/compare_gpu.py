"""Training steps of whole networks on one GPU, by dtf (`dtf-bench gpu`) and PyTorch in turns: a table of milliseconds and ratios.

Two of dtf's figures: on the GPU, forwards and backwards, beside PyTorch's without its optimizer; and a whole step with a parameter
server in the same process, beside PyTorch's whole step. PyTorch: eager with channels last, the step as one CUDA graph, and where
--compile says so torch.compile of it, alone and as a CUDA graph. A ratio above 1 says that dtf is faster.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).parent
NETWORKS = ["softmax b100", "LeNet b128", "ResNet-50 b64", "ResNet-50 b256"]
PRECISIONS = ["float32", "tf32", "bfloat16"]


def dtf_rows(bench, network, quick):
    said = subprocess.run([bench, "--json", "--repetitions", "1" if quick else "3", "--only", network, "gpu"], check=True,
                          stdout=subprocess.PIPE).stdout
    return {row["what"]: row for table in json.loads(said)["gpu"] for row in table["rows"]}


def torch_row(python, network, precision, way, gradients, windows):
    command = [python, HERE / "torch_gpu.py", "--network", network, "--precision", precision, "--way", way, "--windows", str(windows)]
    # Libraries that dtf was carried with aren't PyTorch's.
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    done = subprocess.run(command + (["--gradients"] if gradients else []), env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"PyTorch, {way}, {precision}, {network}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return float("nan")
    return json.loads(done.stdout)["seconds"] * 1e3


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--bench", required=True, help="dtf-bench")
    parser.add_argument("--python", default="python3", help="one that has torch")
    parser.add_argument("--compile", action="store_true", help="torch.compile, too: a minute for each network and precision")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--network", choices=NETWORKS, action="append")
    parser.add_argument("--precision", choices=PRECISIONS, action="append")
    args = parser.parse_args()
    ways = ["eager", "graph"] + (["compiled", "compiled-graph"] if args.compile else [])
    print("ms a step; dtf / PyTorch's speed in brackets")
    print(f"{'':32}{'dtf: GPU':>10}" + "".join(f"{way:>22}" for way in ways) + f"{'dtf: with a ps':>16}{'eager, whole step':>22}")
    for network in args.network or NETWORKS:
        rows = dtf_rows(args.bench, network, args.quick)
        for precision in args.precision or PRECISIONS:
            if network == "softmax b100" and precision != "float32":
                continue
            row = rows[f"{network}, {precision}"]
            computed, whole = row["GPU ms"], row["step ms"]
            line = f"{network + ', ' + precision:32}{computed:10.3f}"
            for way in ways:
                peer = torch_row(args.python, network, precision, way, True, 1 if args.quick else 3)
                line += f"{peer:14.3f} [{peer / computed:5.2f}]"
            peer = torch_row(args.python, network, precision, "eager", False, 1 if args.quick else 3)
            print(line + f"{whole:16.3f}{peer:14.3f} [{peer / whole:5.2f}]", flush=True)


main()
