"""Training steps of whole networks on one thread and on two, by dtf, PyTorch and JAX in turns: one Markdown table each.

scripts/bench-peers.sh --models starts it. PyTorch is measured as it comes, tuned (channels last, an allocator that
keeps its memory) and compiled; the best of the three counts. A ratio above 1 says that dtf is faster. "of peak" are
dtf's multiplications and additions, as one writes them down, beside the rate of multiply-adds between registers on as
many cores; Winograd's convolutions take fewer, so they may pass it. Memory is the whole process's.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
NETWORKS = ["softmax b100", "784-300-100-10 b100", "28-300x5-1 b100", "LeNet b128", "ResNet-20 b128", "ResNet-50 b8"]
NOT_COMPILED = NETWORKS[5:]  # it would take minutes
THREADS = [1, 2]
SECONDS_MAX = 300
KEEPS_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "4294967296", "MALLOC_TRIM_THRESHOLD_": "4294967296",
                "MALLOC_TOP_PAD_": "268435456"}


def clean_environment(threads):
    """So many threads; nothing that would choose a library's kernels for it."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("OPENBLAS_")}
    eigen = "--xla_cpu_multi_thread_eigen=" + ("false" if threads == 1 else "true")
    return {**kept, "OMP_NUM_THREADS": str(threads), "XLA_FLAGS": eigen}


def call(command, threads, more=None):
    """Returns the command's JSON output, or its last line's, and the reason if there is none."""
    cpus = sorted(os.sched_getaffinity(0))[:threads]
    try:
        result = subprocess.run([str(part) for part in ["taskset", "-c", ",".join(map(str, cpus))] + command],
                                env={**clean_environment(threads), **(more or {})}, capture_output=True,
                                timeout=SECONDS_MAX, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, [f"not ready after {SECONDS_MAX} s"]
    if result.returncode != 0:
        return None, result.stderr.decode(errors="replace").strip().splitlines()[-1:]
    text = result.stdout.decode().strip()
    return json.loads(text if text.startswith("{") else text.splitlines()[-1]), None


def runs_of(args, network, threads):
    """[(way, command, environment)]"""
    torch = [args.python, HERE / "torch_model.py", "--network", network, "--seconds", str(args.seconds), "--way"]
    runs = [("dtf", [args.build / "tests/bench/dtf-bench", "--json", "--repetitions", "1", "--only", network,
                     "--threads", str(threads), "models"], None)]
    if "PyTorch" not in args.without:
        runs += [("PyTorch", torch + ["default"], None), ("PyTorch tuned", torch + ["tuned"], KEEPS_MEMORY)]
        if network not in NOT_COMPILED:
            runs.append(("PyTorch compiled", torch + ["compiled"], KEEPS_MEMORY))
    if "JAX" not in args.without:
        runs.append(("JAX", [args.python, HERE / "jax_model.py", "--network", network, "--seconds", str(args.seconds)],
                     None))
    return runs


def measure(args, network, threads):
    """One turn: {way: seconds a step; "of peak": dtf's share; "MiB of WAY": its process's peak}, {system: version}."""
    found, versions = {}, {}
    for name, command, more in runs_of(args, network, threads):
        result, why = call(command, threads, more)
        if why is not None:
            print(f"  {network}: {name} failed: {' '.join(why)}", file=sys.stderr, flush=True)
            continue
        if name == "dtf":
            row = result["models"][0]["rows"][-1]
            seconds = {"seconds": row["ms a step"] / 1e3, "cpu_seconds": row["CPU ms"] / 1e3}
            found["of peak"] = row["of peak"] * seconds["seconds"] / seconds[args.clock]
            found["MiB of dtf"] = row["peak MiB"]
        else:
            seconds, versions[name.split()[0]] = result, result["version"]
            found[f"MiB of {name}"] = result["peak_mib"]
        found[name] = seconds[args.clock]
        print(f"  {network}, {threads} threads: {name} {found[name] * 1e3:.3f} ms a step", file=sys.stderr, flush=True)
    return found, versions


def table(times, versions, networks, threads):
    names = ["dtf", "PyTorch", "PyTorch tuned", "PyTorch compiled", "JAX"]
    heads = [" ".join([name.split()[0], versions.get(name.split()[0], ""), *name.split()[1:]]).replace("  ", " ").strip()
             for name in names]
    lines = [f"| steps/s, {threads} thread{'s' * (threads > 1)} | " + " | ".join(heads) + " | dtf / best | dtf, of peak | peak MiB: dtf, least of others |",
             "|---" * (len(names) + 4) + "|"]
    for network in networks:
        of = {name: values for (of_network, of_threads, name), values in times.items()
              if (of_network, of_threads) == (network, threads)}
        rates = {name: 1 / statistics.median(of[name]) for name in names if name in of}
        if "dtf" not in rates:
            raise SystemExit(f"error: dtf didn't run {network}")
        best = max((rate for name, rate in rates.items() if name != "dtf"), default=None)
        cells = [f"{rates[name]:.4g}" if name in rates else "-" for name in names]
        cells += [f"{rates['dtf'] / best:.2f} x" if best else "-", f"{statistics.median(of['of peak']):.2f}"]
        memory = {name: statistics.median(of[f"MiB of {name}"]) for name in names if f"MiB of {name}" in of}
        others = [mib for name, mib in memory.items() if name != "dtf"]
        cells.append(f"{memory['dtf']:.0f}, " + (f"{min(others):.0f}" if others else "-"))
        lines.append(f"| {network} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2, help="of each measurement of a peer")
    parser.add_argument("--cpu-time", dest="clock", action="store_const", const="cpu_seconds", default="seconds")
    parser.add_argument("--only", default="", help="networks whose name has this in it")
    args = parser.parse_args()
    networks = [network for network in NETWORKS if args.only in network]
    if not networks:
        parser.error(f"no network's name has {args.only!r} in it: there are {', '.join(NETWORKS)}")
    args.build = args.build.resolve()
    times, versions = {}, {}
    most = 1 if args.clock == "cpu_seconds" else len(os.sched_getaffinity(0))
    threads = [count for count in THREADS if count <= most]
    for _ in range(args.repetitions):
        for network in networks:
            for count in threads:
                found, seen = measure(args, network, count)
                versions.update(seen)
                for name, value in found.items():
                    times.setdefault((network, count, name), []).append(value)
    print("\n\n".join(table(times, versions, networks, count) for count in threads))
    return 0


if __name__ == "__main__":
    sys.exit(main())
