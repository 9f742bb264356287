#!/usr/bin/env bash
# Installs a build into a temporary prefix and proves that a stranger's project finds it, by CMake and by pkg-config.
# usage: consumer_test.sh BUILD_DIR VERSION
set -euo pipefail

build=$1 version=$2
source_dir=$(cd "$(dirname "$0")/consumer" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
prefix=$work/prefix

check() {
  local how=$1 got=$2
  [ "$got" = "hawser $version" ] || { echo "$how: expected 'hawser $version', got '$got'" >&2; exit 1; }
  echo "$how: $got"
}

cmake --install "$build" --prefix "$prefix" >"$work/install.log" || { cat "$work/install.log" >&2; exit 1; }
# The package must work from wherever the tree was moved to.
mv "$prefix" "$work/moved"
prefix=$work/moved

cmake -S "$source_dir" -B "$work/build" -G Ninja -DCMAKE_PREFIX_PATH="$prefix" >"$work/log" 2>&1 &&
  cmake --build "$work/build" >>"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
check 'find_package(hawser)' "$("$work/build/consumer")"

pc=$(find "$prefix" -name hawser.pc)
export PKG_CONFIG_PATH=${pc%/*}
[ "$(pkg-config --modversion hawser)" = "$version" ] || { echo 'hawser.pc has another version' >&2; exit 1; }
# shellcheck disable=SC2046  # words are wanted
"${CXX:-c++}" -std=c++20 "$source_dir/main.cc" -o "$work/by_pkg_config" $(pkg-config --cflags --libs hawser) \
  "-Wl,-rpath,$(pkg-config --variable=libdir hawser)"
check pkg-config "$("$work/by_pkg_config")"

if [ -x "$prefix/bin/hawser" ]; then
  "$prefix/bin/hawser" --help >/dev/null
  echo 'the installed command line finds its library'
fi
