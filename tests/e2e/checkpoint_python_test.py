"""Python's own safetensors opens the checkpoints that dtf writes.
Usage: checkpoint_python_test.py CHECKPOINT_TOOL

Exit 77 (skipped, with the reason) where Python lacks safetensors or numpy; scripts/python-env.sh
installs them.
"""
import json
import pathlib
import re
import subprocess
import sys
import tempfile

try:
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import load_file
except ImportError as missing:
    print(f"SKIPPED: {sys.executable} has no {missing.name}: run scripts/python-env.sh", file=sys.stderr)
    sys.exit(77)


def assemble(folder, manifest):
    """Every variable and slot of a checkpoint as a whole array, as CHECKPOINT.md explains the names."""
    shapes = {}
    for variable in manifest["variables"]:
        for name in [variable["name"]] + [f"{variable['name']}/{slot}" for slot in variable["slots"]]:
            shapes[name] = variable["shape"]
    whole = {name: numpy.full(int(numpy.prod(shape)), numpy.nan, numpy.float32) for name, shape in shapes.items()}
    filled = {name: 0 for name in shapes}
    for shard in manifest["shards"]:
        tensors = load_file(folder / shard["file"])
        assert len(tensors) == len(shard["tensors"]), shard["file"]
        for stored, array in tensors.items():
            assert array.dtype == numpy.float32, stored
            part = re.fullmatch(r"(.*)@(\d+):(\d+)", stored)
            name = part.group(1) if part else stored
            begin = int(part.group(2)) if part else 0
            assert list(array.shape) == ([int(part.group(3))] if part else shapes[name]), stored
            whole[name][begin:begin + array.size] = array.reshape(-1)
            filled[name] += array.size
    assert all(filled[name] == array.size for name, array in whole.items()), filled
    return {name: array.reshape(shapes[name]) for name, array in whole.items()}


def main(tool):
    with tempfile.TemporaryDirectory() as root:
        whole = {}
        for ps in (1, 2, 5):
            folder = pathlib.Path(root) / f"checkpoints-{ps}"
            subprocess.run([tool, "save", folder, "3", str(ps)], check=True, stdout=subprocess.DEVNULL)
            manifest = json.loads((folder / "step-3/manifest.json").read_text())
            assert manifest["global_step"] == 3 and len(manifest["shards"]) == ps
            whole[ps] = assemble(folder / "step-3", manifest)
            with safe_open(folder / "step-3" / manifest["shards"][0]["file"], framework="numpy") as opened:
                assert opened.metadata()["shard"] == f"0 of {ps}", opened.metadata()
        names = {"dense/kernel", "dense/kernel/Adam", "dense/kernel/Adam_1", "dense/bias", "dense/bias/Adam",
                 "dense/bias/Adam_1", "scale"}
        assert set(whole[1]) == names, set(whole[1])
        assert whole[1]["dense/kernel"].shape == (30, 7)
        # The values depend on name and step alone, not on the number of ps: bit for bit, NaNs too.
        for ps in (2, 5):
            for name in names:
                assert whole[ps][name].tobytes() == whole[1][name].tobytes(), (ps, name)
        assert len({array.tobytes() for array in whole[1].values()}) == len(names), "all differ"
    print("safetensors of Python reads 8 shards of 3 checkpoints, every value right")


if __name__ == "__main__":
    main(sys.argv[1])
