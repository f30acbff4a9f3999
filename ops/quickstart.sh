#!/usr/bin/env bash
# From a fresh Debian machine to a finished grid: packages, build, data, run.
# Run it again, or only its last command, and nothing that is finished is computed again.
set -euo pipefail
cd "$(dirname "$0")/.."
ops/setup.sh
ops/build.sh prefgrid prefgrid-worker prefgrid-executor
ops/fetch-xorg.sh
build/prefgrid run experiments/specs/quickstart.yaml
