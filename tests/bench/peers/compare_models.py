"""Training steps of whole networks on one thread, by dtf, PyTorch and JAX in turns: one Markdown table.

scripts/bench-peers.sh --models starts it. PyTorch is measured as it comes, tuned (channels last, an allocator that
keeps its memory) and compiled; the best of the three counts. A ratio above 1 says that dtf is faster.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = ["softmax b100", "784-300-100-10 b100", "LeNet b128", "ResNet-20 b128"]
IN_JAX = NETWORKS[:2]
SECONDS_MAX = 300
KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296",
                "MALLOC_TOP_PAD_": "268435456"}


def clean_environment():
    """One thread; nothing that would choose a library's kernels for it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    return {**kept, "OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


def call(command, more=None):
    """What the command prints, or the last line of it, as JSON, or why there is none."""
    one_cpu = ["taskset", "-c", str(min(os.sched_getaffinity(0)))]
    try:
        result = subprocess.run([str(part) for part in one_cpu + command], env={**clean_environment(), **(more or {})},
                                capture_output=True, timeout=SECONDS_MAX, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, [f"not ready after {SECONDS_MAX} s"]
    if result.returncode != 0:
        return None, result.stderr.decode(errors="replace").strip().splitlines()[-1:]
    text = result.stdout.decode().strip()
    return json.loads(text if text.startswith("{") else text.splitlines()[-1]), None


def measure(args, network):
    """One turn: {way: seconds a step}, {system: version}."""
    python, found, versions = args.python, {}, {}
    bench = [args.build / "tests/bench/dtf-bench", "--json", "--repetitions", "1", "--only", network, "models"]
    torch = [python, HERE / "torch_model.py", "--network", network, "--way"]
    runs = [("dtf", bench, None)]
    if "PyTorch" not in args.without:
        runs += [("PyTorch", torch + ["default"], None), ("PyTorch tuned", torch + ["tuned"], KEEPS_MEMORY),
                 ("PyTorch compiled", torch + ["compiled"], KEEPS_MEMORY)]
    if "JAX" not in args.without and network in IN_JAX:
        runs.append(("JAX", [python, HERE / "jax_model.py", "--network", network], None))
    for name, command, more in runs:
        result, why = call(command, more)
        if why is not None:
            print(f"  {network}: {name} failed: {' '.join(why)}", file=sys.stderr, flush=True)
            continue
        found[name] = result["models"][0]["rows"][0]["ms a step"] / 1e3 if name == "dtf" else result["seconds"]
        if name != "dtf":
            versions[name.split()[0]] = result["version"]
        print(f"  {network}: {name} {found[name] * 1e3:.3f} ms a step", file=sys.stderr, flush=True)
    return found, versions


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--repetitions", type=int, default=5)
    args = parser.parse_args()
    args.build = args.build.resolve()
    times, versions = {}, {}
    for _ in range(args.repetitions):
        for network in NETWORKS:
            found, seen = measure(args, network)
            versions.update(seen)
            for name, seconds in found.items():
                times.setdefault((network, name), []).append(seconds)
    names = ["dtf", "PyTorch", "PyTorch tuned", "PyTorch compiled", "JAX"]
    heads = [" ".join([name.split()[0], versions.get(name.split()[0], ""), *name.split()[1:]]).replace("  ", " ").strip()
             for name in names]
    print("| steps/s, one thread | " + " | ".join(heads) + " | dtf / best |")
    print("|---" * (len(names) + 2) + "|")
    for network in NETWORKS:
        rates = {name: 1 / statistics.median(times[network, name]) for name in names if (network, name) in times}
        if "dtf" not in rates:
            print(f"error: dtf didn't run {network}", file=sys.stderr)
            return 1
        best = max((rate for name, rate in rates.items() if name != "dtf"), default=None)
        cells = [f"{rates[name]:.4g}" if name in rates else "-" for name in names]
        ratio = f"{rates['dtf'] / best:.2f} x" if best else "-"
        print(f"| {network} | " + " | ".join(cells) + f" | {ratio} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
