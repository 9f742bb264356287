"""Clients of the unmodified crate nixl-sys on two hosts, encrypted with no variable set. See two_hosts.py.

The crate is taken by name and compiled here, in the folder of test/api/nixl_sys.sh; the test is skipped where it cannot be."""

import os
import shutil
import subprocess

import pytest

from two_hosts import hosts, start  # noqa: F401 (a fixture)
from two_hosts_test import run_both

BUILD = os.environ["TEST_BUILD"]
VERSION = "1.5.2"
WORK = os.path.join(BUILD, "nixl_sys")


@pytest.fixture(scope="module")
def client():
    """The program."""
    if not shutil.which("cargo"):
        pytest.skip("there is no cargo")
    folder = os.path.join(WORK, "client")
    os.makedirs(os.path.join(folder, "src"), exist_ok=True)
    shutil.copy(os.path.join(os.path.dirname(__file__), "nixl_client.rs"), os.path.join(folder, "src", "main.rs"))
    with open(os.path.join(folder, "Cargo.toml"), "w") as file:
        file.write('[package]\nname = "client"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\n'
                   f'nixl-sys = {{ version = "={VERSION}", features = ["stub-api"] }}\n')
    target = os.path.join(WORK, "target")
    made = subprocess.run(["cargo", "build"], cwd=folder, env=os.environ | {"CARGO_TARGET_DIR": target}, capture_output=True,
                          text=True, timeout=600)
    if made.returncode != 0 and "error[E" not in made.stderr:
        pytest.skip(f"nixl-sys {VERSION} cannot be had: {made.stderr[-300:]}")
    assert made.returncode == 0, made.stderr
    return os.path.join(target, "debug", "client")


@pytest.mark.parametrize("security", [None, "none"])
def test_clients_in_rust_are_encrypted_with_no_variable_set(hosts, client, tmp_path, security):  # noqa: F811
    variables = {"LD_LIBRARY_PATH": os.path.join(BUILD, "lib"), "NIXL_LOG_LEVEL": "FATAL"}
    if security is not None:
        variables["HAWSER_SECURITY"] = security
    starts = [lambda host, role=role: start(host, client, role, str(tmp_path), **variables) for role in ("prefill", "decode")]
    said, frames, is_clear = run_both(hosts, starts, "w" * 100)
    assert said == ["done", '{"prefill": ["written"]} true']
    assert frames > 5 and is_clear == (security == "none")
