"""Training steps of whole networks on one GPU, by dtf (`dtf-bench gpu`) and PyTorch one after the
other: a table of milliseconds.

Two lines for each network:
- forwards and backwards on the GPU, beside PyTorch's without its optimizer;
- a whole step of a worker without a ps, by the clock, beside PyTorch's whole step.

The ratio is in brackets, above 1 where dtf is faster. Behind it is dtf's step with a parameter
server in the same process. PyTorch runs eager with channels last, the step as one CUDA graph,
and with --compile torch.compile of it. dtf's figure of the GPU is between two events on its
stream. PyTorch's is by the clock over a loop of steps, so it contains the cost of its launches.
Exit code 1 where PyTorch failed.
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


def torch_times(python, network, precisions, ways, windows):
    """Returns milliseconds by precision and way, except where PyTorch failed; prints its error."""
    command = [python, HERE / "torch_gpu.py", "--network", network, "--precision", ",".join(precisions), "--way", ",".join(ways),
               "--windows", str(windows)]
    # Libraries that were carried with dtf are not PyTorch's.
    environment = {key: value for key, value in os.environ.items() if key != "LD_LIBRARY_PATH"}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"PyTorch, {network}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return {(row["precision"], row["way"]): row["seconds"] * 1e3 for row in rows}


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
    is_whole = True
    print("ms a step [PyTorch's / dtf's]")
    print(f"{'':39}{'dtf':>9}" + "".join(f"{way:>22}" for way in ways) + f"{'dtf: with a ps':>16}")
    for network in args.network or NETWORKS:
        precisions = ["float32"] if network == "softmax b100" else args.precision or PRECISIONS
        rows = dtf_rows(args.bench, network, args.quick)
        peers = torch_times(args.python, network, precisions, [way + suffix for suffix in ("-gradients", "") for way in ways],
                            2 if args.quick else 5)
        is_whole = is_whole and len(peers) == 2 * len(precisions) * len(ways)
        for precision in precisions:
            row = rows[f"{network}, {precision}"]
            for what, ours, suffix in (("GPU", row["GPU ms"], "-gradients"), ("whole step", row["step ms"], "")):
                line = f"{network + ', ' + precision + ', ' + what:39}{ours:9.3f}"
                for way in ways:
                    peer = peers.get((precision, way + suffix), float("nan"))
                    line += f"{peer:14.3f} [{peer / ours:5.2f}]"
                print(line + (f"{row['with ps ms']:16.3f}" if suffix == "" else ""), flush=True)
    sys.exit(0 if is_whole else 1)


main()
