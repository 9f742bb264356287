#!/usr/bin/env bash
# Runs the own tests of the unmodified crate nixl-sys on this build's libnixl_capi.so, which the crate opens by name
# (its feature stub-api). The crate is taken by name at test time and is no part of this repository.
# usage: nixl_sys.sh VERSION LIBRARY_FOLDER WORK_FOLDER TESTS [TEST_LEFT_OUT...]
# TESTS is how many must pass, so that a run of nothing is no success.
set -euo pipefail

version=$1 library=$2 work=$3 wanted=$4
shift 4

skip() { echo "SKIPPED: $*"; exit 77; }
command -v cargo >/dev/null || skip 'there is no cargo'

folder=$work/$version
mkdir -p "$folder/src"
touch "$folder/src/lib.rs"
cat >"$folder/Cargo.toml" <<END
[package]
name = "client"
version = "0.0.0"
edition = "2021"
[dependencies]
nixl-sys = { version = "=$version", features = ["stub-api"] }
END

cd "$folder"
# Fetched once; the sources of its packages are kept beside.
if [ ! -e vendor/nixl-sys/Cargo.toml ]; then
  rm -rf vendor
  timeout 120 cargo vendor >vendor.log 2>&1 || { tail -n 3 vendor.log; skip "nixl-sys $version cannot be had"; }
fi
# Versions share what they have in common.
export CARGO_TARGET_DIR=$work/target
timeout 600 cargo test --features stub-api --no-run --manifest-path vendor/nixl-sys/Cargo.toml >build.log 2>&1 ||
  { tail -n 20 build.log; skip "nixl-sys $version does not build here"; }
mapfile -t programs < <(sed -n 's/.*Executable tests.*(\(.*\))$/\1/p' build.log)
[ "${#programs[@]}" -gt 0 ] || { tail -n 20 build.log; echo 'no test programs were built'; exit 1; }

left_out=()
for name in "$@"; do left_out+=(--skip "$name"); done
# It takes a variable out of the environment that tests beside it set, so with several threads it is luck.
readonly alone=test_get_xfer_telemetry_without_telemetry_enabled
export LD_LIBRARY_PATH=$library NIXL_LOG_LEVEL=FATAL
for threads in 1 4; do
  passed=0
  [ "$threads" -eq 1 ] || { left_out+=(--skip "$alone"); wanted=$((wanted - 1)); set -- "$@" "$alone"; }
  for program in "${programs[@]}"; do
    timeout 300 "$program" --exact --test-threads="$threads" "${left_out[@]}" >run.log 2>&1 || { cat run.log; exit 1; }
    count=$(sed -n 's/^test result: ok\. \([0-9]*\) passed.*/\1/p' run.log)
    passed=$((passed + count))
  done
  echo "nixl-sys $version: $passed passed with $threads threads, $# left out${*:+ ($*)}"
  [ "$passed" -eq "$wanted" ] || { echo "expected $wanted"; exit 1; }
done
