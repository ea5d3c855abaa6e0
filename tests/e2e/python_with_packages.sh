#!/bin/bash
# Runs a Python test with the Python that has the packages: DTF_PYTHON, else the one that
# scripts/python-env.sh made in this build folder, else python3 (where the test may skip itself).
# Usage: python_with_packages.sh SCRIPT [ARGUMENT...]                 needs DTF_BUILD_ROOT
python=${DTF_PYTHON:-${DTF_BUILD_ROOT:-.}/python-env/bin/python}
[ -x "$python" ] || command -v "$python" >/dev/null || python=python3
exec "$python" "$@"
