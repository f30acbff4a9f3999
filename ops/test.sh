#!/usr/bin/env bash
# Installs, builds and runs every test, then those without torch under ASan and UBSan.
# PREFGRID_TEST_SANITIZERS=0 leaves the second part out.
set -euo pipefail
cd "$(dirname "$0")/.."
ops/setup.sh
ops/build.sh
ops/fetch-xorg.sh
ctest --preset release --output-on-failure
if [ "${PREFGRID_TEST_SANITIZERS:-1}" != 0 ]; then
  cmake --preset asan >/dev/null
  cmake --build --preset asan
  ctest --preset asan --output-on-failure
fi
