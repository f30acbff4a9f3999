#!/usr/bin/env bash
# Fetches the change logs that the `xorg` data set is made of: the upstream git logs inside four
# Debian packages. Nothing is installed; root is not needed. What is there already is kept.
#
#   ops/fetch-xorg.sh [FOLDER]      default: data/xorg in the repository
#
# Needs: apt-get with package lists (`apt-get update`), dpkg-deb, gzip.
set -euo pipefail

packages=(xserver-common xserver-xorg-video-intel libx11-6 libfontconfig1)
repository=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
folder=${1:-$repository/data/xorg}

fail() {
  echo "fetch-xorg: $*" >&2
  exit 1
}

for tool in apt-get dpkg-deb gzip tar; do
  command -v "$tool" >/dev/null || fail "$tool is missing; this script needs a Debian system"
done
mkdir -p "$folder" || fail "cannot create $folder"
folder=$(cd "$folder" && pwd)

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"  # apt's own download user may read it

# A log is whole if gzip says so and a git log starts in it.
is_log() {
  [ -s "$1" ] && gzip -t "$1" 2>/dev/null &&
    gzip -cd "$1" 2>/dev/null | grep -qm1 -aE '^commit [0-9a-f]{40}' 2>/dev/null
}

fetch() {
  local package=$1 target=$folder/$1.changelog.gz
  if (set +o pipefail; is_log "$target"); then
    echo "$package: already in $target"
    return
  fi
  (cd "$work" && apt-get -qq -o APT::Sandbox::User= download "$package") ||
    fail "cannot download $package; run \`apt-get update\` as root, or check the network"
  local archives=("$work/${package}"_*.deb)
  [ -f "${archives[0]}" ] || fail "apt-get left no archive of $package"
  dpkg-deb --fsys-tarfile "${archives[0]}" |
    tar -xO "./usr/share/doc/$package/changelog.gz" >"$work/log.gz" ||
    fail "${archives[0]##*/} holds no usr/share/doc/$package/changelog.gz"
  (set +o pipefail; is_log "$work/log.gz") || fail "the change log of $package is no git log"
  cp "$work/log.gz" "$target.part"
  mv "$target.part" "$target"
  echo "$package: $(basename "${archives[0]}" .deb) -> $target"
}

for package in "${packages[@]}"; do
  fetch "$package"
done
echo "done: ${#packages[@]} change logs in $folder"
