#!/bin/bash
# Runs a Python test with the Python that has the packages: DTF_PYTHON, else the one that
# scripts/python-env.sh made in this build folder, else python3 or Debian's python3: the first that
# has numpy. Without one it is python3: some tests skip themselves there, others fail.
# Usage: python_with_packages.sh SCRIPT [ARGUMENT...]                 needs DTF_BUILD_ROOT
python=${DTF_PYTHON:-}
if [ -z "$python" ]; then
  python=python3
  for each in "${DTF_BUILD_ROOT:-.}/python-env/bin/python" python3 /usr/bin/python3; do
    if "$each" -c 'import numpy' 2>/dev/null; then
      python=$each
      break
    fi
  done
fi
exec "$python" "$@"
