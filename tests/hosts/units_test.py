#!/usr/bin/env python3
"""systemd's own judgement of the units: it parses each line, and rates their exposure.

Usage: units_test.py BUILD_FOLDER       exit code 77: systemd-analyze is missing
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

# Ten times the numbers that `systemd-analyze security` prints; a unit without hardening has 96. A
# worker may choose its CPUs.
EXPOSURE_MAX = {"dtf-psd@.service": 10, "dtf-workerd@.service": 11}
UNITS = [*EXPOSURE_MAX, "dtf.target"]


def analyze(*words):
    done = subprocess.run(["systemd-analyze", *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
                          check=False)
    return done.returncode, (done.stdout + done.stderr).strip()


def problems(build, folder):
    for unit in UNITS:
        text = (build / "configs/systemd" / unit).read_text()
        left = re.findall(r"@[a-z]+@", text)
        if left:
            yield f"{unit}: not filled in: {left}"
        # systemd-analyze looks for the program, which need not be installed here.
        (folder / unit).write_text(re.sub(r"(?m)^ExecStart=\S+/(\w+) ", rf"ExecStart={build}/daemons/\1/\1 ", text))
    code, said = analyze("verify", *(str(folder / unit) for unit in UNITS))
    if code != 0 or said:
        yield f"systemd-analyze verify: {code}: {said}"
    for unit, most in EXPOSURE_MAX.items():
        code, said = analyze("security", "--offline=yes", f"--threshold={most}", str(folder / unit))
        print(f"{unit}: {said.splitlines()[-1] if said else 'nothing said'}")
        if code != 0:
            yield f"systemd-analyze security {unit}: {code}: {said}"


def main():
    if not shutil.which("systemd-analyze"):
        print("SKIPPED: there is no systemd-analyze: scripts/install-deps.sh --tests installs it")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        found = list(problems(pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(folder)))
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
