#!/usr/bin/env python3
"""Builds the wheel of the Python package `dtf` (common/api/python), with Python's own library alone and without a network. The wheel
is pure: it finds libdtf.so where it runs. Equal sources give equal bytes.

It prints the path of the wheel.
"""
import argparse
import base64
import hashlib
import pathlib
import re
import sys
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "common/api/python/dtf"
MODE = 0o644 << 16


def metadata(version):
    return f"""Metadata-Version: 2.1
Name: dtf
Version: {version}
Summary: Distributed training: graphs, sessions, checkpoints, models and jobs of dtf, over libdtf
License: Apache-2.0
Requires-Python: >=3.9
Requires-Dist: numpy
Description-Content-Type: text/markdown

{(ROOT / "common/api/python/README.md").read_text(encoding="utf-8")}"""


def digest(content):
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()


def version_in(path, pattern):
    found = re.search(pattern, path.read_text(encoding="utf-8"), re.M)
    if found is None:
        sys.exit(f"{path}: error: no line is {pattern}: the wheel has its version from there")
    return found.group(1)


def build(folder):
    """Returns the path of the wheel."""
    version = version_in(ROOT / "meson.build", r"^  version: '(.*)',$")
    of_package = version_in(PACKAGE / "_library.py", r'^VERSION = "(.*)"$')
    if version != of_package:
        sys.exit(f"{PACKAGE}/_library.py: error: its version is {of_package}, but meson.build has {version}: make them equal")
    info = f"dtf-{version}.dist-info"
    files = {f"dtf/{path.name}": path.read_bytes() for path in sorted(PACKAGE.iterdir()) if path.suffix in (".py", ".typed")}
    files[f"{info}/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    files[f"{info}/METADATA"] = metadata(version).encode()
    files[f"{info}/WHEEL"] = b"Wheel-Version: 1.0\nGenerator: dtf wheel.py\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    record = "".join(f"{name},sha256={digest(content)},{len(content)}\n" for name, content in files.items())
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = pathlib.Path(folder) / f"dtf-{version}-py3-none-any.whl"
    wheel.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name)  # of 1980, as all its entries
            entry.external_attr, entry.compress_type = MODE, zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
    return wheel


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", nargs="?", default="build/wheel", help="of the wheel, made if it isn't there; default: %(default)s")
    folder = parser.parse_args().folder
    try:
        print(build(folder))
    except OSError as error:
        sys.exit(f"wheel.py: error: {error.filename or folder}: {error.strerror or error}; name a folder that you may write to: wheel.py FOLDER")


if __name__ == "__main__":
    main()
