#!/usr/bin/env bash
# Installs what prefgrid is built from and tested with: Debian packages only. Safe to run again.
set -euo pipefail

packages=(
  g++ cmake ninja-build ccache pkg-config       # the build
  capnproto libcapnp-dev                        # messages and records
  libzmq3-dev cppzmq-dev                        # transport
  librocksdb-dev                                # the store
  libyaml-cpp-dev nlohmann-json3-dev            # specs; JSON in and out
  libcli11-dev libspdlog-dev                    # command line; logs
  libssl-dev libpcre2-dev zlib1g-dev            # SHA-256; pre-tokenizer pattern; .gz data
  libtorch-dev libopenblas-openmp-dev           # the executor; a fast BLAS that obeys OMP_NUM_THREADS
  doctest-dev                                   # tests
)

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  echo "setup: this script knows Debian's packages only; install the equivalents of: ${packages[*]}" >&2
  exit 2
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null) || status=absent
  [ "$status" = installed ] || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all packages are installed"
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  command -v sudo >/dev/null || { echo "setup: run as root, or install sudo; missing: ${missing[*]}" >&2; exit 2; }
  as_root=(sudo)
fi
echo "setup: installing ${missing[*]}"
"${as_root[@]}" apt-get update -qq
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}"
echo "setup: done"
