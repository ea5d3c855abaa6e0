#!/bin/bash
# From a bare Debian 12 to a trained model: installs missing packages, builds, and runs two
# parameter servers and two workers on this machine, on the digits that dtf draws itself. A second
# run starts at once.
# Usage: scripts/demo.sh [dtf-launch option...]
#   for example: scripts/demo.sh --set train.steps=5000
set -euo pipefail
cd "$(dirname "$0")/.."
echo "== 1/3 packages"
scripts/install-deps.sh
echo "== 2/3 build (into build/; some minutes the first time)"
# The three programs of a job on this machine. `scripts/build.sh build` adds the others: dtf-agent
# for jobs over ssh, libdtf, the plug-in for GPUs, manual pages, completions.
scripts/build.sh --unity build -Dtests=false -- daemons/psd/psd daemons/workerd/workerd launcher/dtf-launch
echo "== 3/3 dtf-launch configs/clusters/local.yaml --fresh"
exec build/launcher/dtf-launch configs/clusters/local.yaml --fresh "$@"
