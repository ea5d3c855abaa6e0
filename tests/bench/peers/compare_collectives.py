"""The exchange of a sync step without ps beside the all-reduce of MPI and gloo, two ranks on this machine, in turns.

scripts/bench-peers.sh --collectives starts it. dtf's figure includes the update of gradient descent; the peers only sum
gradients. "limit" is that update by two processes that map each other's gradients and do nothing else. A ratio below 1
says that dtf is faster.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
KIB, MIB = 1 << 10, 1 << 20
STEPS = {4 * KIB: 1000, 64 * KIB: 500, MIB: 200, 16 * MIB: 40, 64 * MIB: 12, 256 * MIB: 4}
QUICK_STEPS = {4 * KIB: 100, MIB: 20}
SECONDS_MAX = 300
# The folder with the package of each MPI, and what its launcher needs.
MPIS = {"Intel MPI": "impi", "MPICH": "mpich"}


def name_of(size):
    return f"{size // MIB} MiB" if size >= MIB else f"{size // KIB} KiB"


def call(command, more=None):
    """Returns the JSON of the last line that is some, and the reason if there is none."""
    try:
        result = subprocess.run([str(part) for part in command], env={**os.environ, **(more or {})},
                                capture_output=True, timeout=SECONDS_MAX, check=False, stdin=subprocess.DEVNULL)
    except subprocess.TimeoutExpired:
        return None, f"not ready after {SECONDS_MAX} s"
    lines = [line for line in result.stdout.decode().splitlines() if line.startswith("{")]
    if result.returncode != 0 or not lines:
        return None, " ".join(result.stderr.decode(errors="replace").strip().splitlines()[-1:])
    return json.loads(lines[-1]), None


def of_dtf(args):
    command = [args.build / "tests/bench/dtf-bench", "--json", "--repetitions", "1"]
    result = subprocess.run([str(part) for part in command + (["--quick"] if args.quick else []) + ["collectives"]],
                            capture_output=True, timeout=SECONDS_MAX, check=True)
    rows = json.loads(result.stdout)["collectives"][0]["rows"]
    return ({row["what"]: row["p50"] * 1e-6 for row in rows}, {row["what"]: row["limit p50"] * 1e-6 for row in rows})


def of_mpi(args, folder, steps):
    home = args.environments / folder
    sizes = [f"{size}:{count}" for size, count in steps.items()]
    found, why = call([home / "bin/mpiexec", "-n", "2", home / "bin/python", HERE / "mpi_rank.py", "--library",
                       home / "lib/libmpi.so.12", "--sizes"] + sizes,
                      {"I_MPI_ROOT": str(home), "I_MPI_FABRICS": "shm", "PATH": f"{home}/bin:{os.environ['PATH']}",
                       "FI_PROVIDER_PATH": f"{home}/lib/libfabric/prov",
                       "LD_LIBRARY_PATH": f"{home}/lib:{home}/lib/libfabric"})
    return (None, why) if why else ({name_of(int(size)): seconds for size, seconds in found.items()}, None)


def of_gloo(args, steps):
    found = {}
    for size, count in steps.items():
        port = 20000 + os.getpid() % 20000
        ranks = [subprocess.Popen(
            [str(args.python), str(HERE / "torch_rank.py"), "--work", "null", "--rank", str(rank), "--ranks", "2",
             "--port", str(port), "--elements", str(size // 4), "--steps", str(count)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) for rank in range(2)]
        out = [rank.communicate(timeout=SECONDS_MAX) for rank in ranks]
        if any(rank.returncode != 0 for rank in ranks):
            return None, " ".join(out[0][1].decode(errors="replace").strip().splitlines()[-1:])
        found[name_of(size)] = json.loads(out[0][0].decode().splitlines()[-1])["p50_seconds"]
    return found, None


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", type=pathlib.Path, required=True, help="of an environment with torch")
    parser.add_argument("--environments", type=pathlib.Path, required=True, help="the folder of the MPIs' ones")
    parser.add_argument("--without", action="append", default=[])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    steps = QUICK_STEPS if args.quick else STEPS
    peers = {name: (lambda folder=folder: of_mpi(args, folder, steps)) for name, folder in MPIS.items()}
    peers["gloo"] = lambda: of_gloo(args, steps)
    peers = {name: run for name, run in peers.items() if name not in args.without}
    found = {}
    for turn in range(args.repetitions):
        dtf, limit = of_dtf(args)
        results = {"dtf": dtf, "limit": limit}
        for name, run in peers.items():
            result, why = run()
            if why is not None:
                print(f"  {name} failed: {why}", file=sys.stderr, flush=True)
                continue
            results[name] = result
        for name, result in results.items():
            for size, seconds in result.items():
                found.setdefault((name, size), []).append(seconds)
        print(f"  turn {turn + 1} of {args.repetitions}", file=sys.stderr, flush=True)
    columns = ["dtf", "limit"] + list(peers)
    print("| bytes | " + " | ".join(f"{name}, us" for name in columns) +
          " | " + " | ".join(f"dtf / {name}" for name in columns[1:]) + " |")
    print("|---" * (2 * len(columns)) + "|")
    for size in map(name_of, steps):
        medians = {name: statistics.median(found[name, size]) for name in columns if (name, size) in found}
        cells = [f"{medians[name] * 1e6:.4g}" if name in medians else "" for name in columns]
        cells += [f"{medians['dtf'] / medians[name]:.2f}" if name in medians else "" for name in columns[1:]]
        print(f"| {size} | " + " | ".join(cells) + " |")


if __name__ == "__main__":
    main()
