#!/bin/bash
# Kills and freezes the tasks of real jobs, by plan, and prints the cost.
# Usage: scripts/chaos.sh [--quick | PLAN.yaml ...] [option...]          --help lists all
set -euo pipefail
cd "$(dirname "$0")/.."
exec python3 tests/chaos/chaos.py "$@"
