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
check 'find_package(hawser) from C' "$("$work/build/c_consumer")"

pc=$(find "$prefix" -name hawser.pc)
export PKG_CONFIG_PATH=${pc%/*}
[ "$(pkg-config --modversion hawser)" = "$version" ] || { echo 'hawser.pc has another version' >&2; exit 1; }
# shellcheck disable=SC2046  # words are wanted
"${CXX:-c++}" -std=c++20 "$source_dir/main.cc" -o "$work/by_pkg_config" $(pkg-config --cflags --libs hawser) \
  "-Wl,-rpath,$(pkg-config --variable=libdir hawser)"
check pkg-config "$("$work/by_pkg_config")"
# shellcheck disable=SC2046  # words are wanted
"${CC:-cc}" -std=c11 -pedantic-errors -Wall -Wextra -Werror "$source_dir/main.c" -o "$work/c_by_pkg_config" \
  $(pkg-config --cflags --libs hawser) "-Wl,-rpath,$(pkg-config --variable=libdir hawser)"
check 'pkg-config from C' "$("$work/c_by_pkg_config")"

# As a part of another project: the library, and nothing of its tests, benchmarks and examples.
mkdir "$work/parent"
cat >"$work/parent/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.25)
project(parent LANGUAGES C CXX)
enable_testing()
add_subdirectory("$(cd "$source_dir/../../.." && pwd)" hawser EXCLUDE_FROM_ALL)
add_executable(consumer "$source_dir/main.cc")
target_link_libraries(consumer PRIVATE hawser::hawser)
END
cmake -S "$work/parent" -B "$work/part" -G Ninja >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
ninja -C "$work/part" -t targets all >"$work/targets"
grep -q 'libhawser.so' "$work/targets" || { echo 'add_subdirectory: there is no library' >&2; exit 1; }
if grep -E '^hawser/(test|bench|examples)/|_test\.cc\.o' "$work/targets" >&2; then
  echo 'add_subdirectory: it brings its tests along' >&2
  exit 1
fi
echo 'add_subdirectory brings the library alone'

# As clients of NIXL do: by its bare name, from the loader's path, with nothing else there.
nixl=$(find "$prefix" -name libnixl_capi.so)
LD_LIBRARY_PATH=${nixl%/*} python3 -c 'import ctypes, os
library = ctypes.CDLL("libnixl_capi.so", os.RTLD_NOW | os.RTLD_LOCAL)
library.nixl_capi_is_stub.restype = ctypes.c_bool
agent = ctypes.c_void_p()
assert not library.nixl_capi_is_stub()
assert library.nixl_capi_create_agent(b"installed", ctypes.byref(agent)) == 0
assert library.nixl_capi_destroy_agent(agent) == 0'
echo 'libnixl_capi.so opens by its name'

if [ -x "$prefix/bin/hawser" ]; then
  "$prefix/bin/hawser" --help >/dev/null
  echo 'the installed command line finds its library'

  # An out-of-tree backend, as the README of the example says.
  example=$(cd "$(dirname "$0")/../../examples/plugin" && pwd)
  mkdir "$work/plugins"
  # shellcheck disable=SC2046  # words are wanted
  "${CXX:-c++}" -std=c++17 -O2 -fPIC -shared -fvisibility=hidden $(pkg-config --cflags hawser) \
    "$example/mailslot.cc" "$example/port.cc" -o "$work/plugins/libhawser_backend_mailslot.so"
  HAWSER_PLUGIN_PATH="$work/plugins" HAWSER_BACKENDS=mailslot "$prefix/bin/hawser" info --json >"$work/info.json"
  python3 - "$work/info.json" <<'END'
import json, sys
with open(sys.argv[1]) as file:
    reports = json.load(file)["backends"]
assert [(one["name"], one["open"], one["params"]) for one in reports] == [("mailslot", True, {"queue": "64"})], reports
END
  echo 'a plug-in that was built against the installed plugin.h opens'
fi
