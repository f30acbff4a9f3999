#!/usr/bin/env bash
# Configures and builds the release preset into build/. Arguments are targets (default: all).
set -euo pipefail
cd "$(dirname "$0")/.."
cmake --preset release >build-configure.log 2>&1 || { cat build-configure.log >&2; exit 1; }
rm -f build-configure.log
cmake --build --preset release ${1:+--target "$@"}
