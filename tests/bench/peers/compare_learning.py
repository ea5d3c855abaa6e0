"""ResNet-20 on CIFAR-10 trained to the end by dtf (2 ps + 2 workers, sync) and by PyTorch: loss and accuracy side by side.

The same data, initial weights (PyTorch's, imported), recipe and steps of 128 examples; the order of the examples and
their augmentation are each one's own. dtf normalises batches of 64 on each worker, PyTorch one of 128.
scripts/bench-peers.sh --learning starts it. Exit code 1: dtf's accuracy is more than 1 % below.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]
MARGIN = 0.01


def torch(args, *more):
    return [args.python, HERE / "torch_learning.py", "--seed", args.seed, "--steps", args.steps, "--every", args.every,
            "--threads", args.threads, "--train", args.train, "--test", args.test, *more]


def run(command):
    """The JSON lines that the command prints."""
    result = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL, check=False)
    if result.returncode != 0:
        raise SystemExit(f"error: {' '.join(map(str, command))} ended with {result.returncode}")
    return [json.loads(line) for line in result.stdout.decode().splitlines() if line.startswith("{")]


def train_with_dtf(args, folder):
    cluster = folder / "cluster.yaml"
    cluster.write_text("\n".join([
        "job: resnet20", f"run_dir: {folder}/run", f"train: {ROOT}/configs/jobs/cifar10_resnet.yaml",
        "cluster: {ps: [localhost:auto, localhost:auto], worker: [localhost:auto, localhost:auto]}", ""]))
    settings = {"train.data.train.files": f"[{args.train}]", "train.data.eval.files": f"[{args.test}]",
                "train.data.seed": args.seed, "train.steps": args.steps, "train.eval.every_steps": args.every,
                "train.report.every_steps": args.every, "train.checkpoint.every_steps": args.steps,
                "train.optimizer.momentum.learning_rate.cosine.decay_steps": args.steps}
    sets = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    dtf = args.build / "launcher/dtf-launch"
    variables = run([dtf, "explain", cluster, "--json", *sets])[0]["variables"]
    names = folder / "names"
    names.write_text("\n".join(each["name"] for each in variables))
    run(torch(args, "--names", names, "--initial", folder / "initial.npz"))
    run([dtf, "import", cluster, "--from", folder / "initial.npz", "--json", *sets])
    events = run([dtf, cluster, "--json", *sets])
    return {event["step"]: event for event in events if event["event"] == "evaluation"}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--python", required=True)
    parser.add_argument("--data", type=pathlib.Path, default=ROOT / "data/cifar10")
    parser.add_argument("--steps", type=int, default=2400)
    parser.add_argument("--every", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    args.build, data = args.build.resolve(), args.data.resolve()
    args.train, args.test = data / "data_batch_1.bin", data / "test_batch.bin"
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        ours = train_with_dtf(args, pathlib.Path(folder))
    seconds = time.monotonic() - begin
    begin = time.monotonic()
    theirs = {line["step"]: line for line in run(torch(args))}
    seconds_theirs = time.monotonic() - begin
    version = theirs[args.steps]["version"]
    print(f"| step | dtf: test loss | accuracy | PyTorch {version}: test loss | accuracy |")
    print("|---|---|---|---|---|")
    for step, line in theirs.items():
        our = ours[step]
        print(f"| {step} | {our['loss']:.4f} | {our['accuracy']:.4f} | {line['loss']:.4f} | {line['accuracy']:.4f} |")
    print(f"\ndtf {seconds:.0f} s, PyTorch {seconds_theirs:.0f} s on {args.threads} threads, evaluations included")
    below = theirs[args.steps]["accuracy"] - ours[args.steps]["accuracy"]
    print(f"dtf's accuracy is {abs(below):.4f} {'below' if below > 0 else 'above'} PyTorch's; at most {MARGIN} below is the goal")
    return 1 if below > MARGIN else 0


if __name__ == "__main__":
    sys.exit(main())
