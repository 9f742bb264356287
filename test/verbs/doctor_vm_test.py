"""What `hawser topo` and `hawser doctor` say of real RDMA devices, and of everything that can be wrong with them.

usage: doctor_vm_test.py PROGRAM       (in the guest of tools/rdma-vm only: it takes devices, files and libraries away)
"""

import contextlib
import glob
import json
import os
import shutil
import socket
import subprocess
import sys
import time

PROGRAM = "/tmp/hawser"
NOBODY = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all"]


def sh(command):
    subprocess.run(command, shell=True, check=True)


def report(command, prefix=()):
    done = subprocess.run([*prefix, PROGRAM, command, "--json"], capture_output=True, text=True, timeout=60)
    assert done.stdout, done.stderr
    return json.loads(done.stdout)


def doctor(prefix=()):
    return {check["name"]: check for check in report("doctor", prefix)["checks"]}


def expect(checks, name, verdict, found="", remedy=""):
    check = checks[name]
    assert check["verdict"] == verdict and found in check["found"] and remedy in check["remedy"], check


def wait_for_state(device, state):
    end = time.monotonic() + 10
    while state not in open(f"/sys/class/infiniband/{device}/ports/1/state", encoding="utf-8").read():
        assert time.monotonic() < end, f"{device} does not become {state}"
        time.sleep(0.05)


@contextlib.contextmanager
def taken_away(*paths):
    """Takes files away for a while; a missing one is a fault of the test."""
    moved = [(path, path + ".away") for path in paths]
    for path, away in moved:
        os.rename(path, away)
    try:
        yield
    finally:
        for path, away in moved:
            os.rename(away, path)


def test_topo_shows_what_there_is():
    topo = report("topo")
    devices = {device["name"]: device for device in topo["rdma"]["devices"]}
    assert set(devices) == {"rxe0", "rxe1"}, devices
    for i, device in enumerate(devices.values()):
        port = device["ports"][0]
        assert device["open"] and port["usable"] and port["state"] == "active" and port["active_mtu"] == 4096, device
        assert port["gids"][0]["text"] == f"10.77.0.{i + 1}", "IPv4 before link-local"
        assert port["gids"][0]["prefix_bits"] == 24, "the subnet comes from the interface"
        assert port["gids"][1]["text"].startswith("fe80:"), port
    assert [port["device"] for port in topo["rdma"]["rails"][0]["ports"]] == ["rxe0", "rxe1"], topo["rdma"]["rails"]


def test_all_is_well():
    checks = doctor()
    for name in ("memory.memlock", "devices.rdma", "rdma.rxe0", "rdma.rxe0:1", "rdma.rxe1", "rdma.rxe1:1"):
        expect(checks, name, "ok")
    expect(checks, "rdma.rxe0:1", "ok", "(10.77.0.1, RoCE v2)")


def test_a_port_is_down():
    sh("ip link set veth1 down")
    wait_for_state("rxe1", "DOWN")
    expect(doctor(), "rdma.rxe1:1", "warn", "not active, it is down", "ip link set veth1 up")
    sh("ip link set veth1 up")
    wait_for_state("rxe1", "ACTIVE")
    expect(doctor(), "rdma.rxe1:1", "ok")


def test_an_interface_has_no_address():
    sh("ip address del 10.77.0.1/24 dev veth0")
    expect(doctor(), "rdma.rxe0:1", "warn", "link-local only", "ip address add A.B.C.D/24 dev veth0")
    sh("ip address add 10.77.0.1/24 dev veth0")


def test_a_file_is_missing():
    with taken_away("/dev/infiniband/uverbs0"):
        checks = doctor()
        expect(checks, "rdma.rxe0", "warn", "uverbs0 cannot be opened: No such file")
        expect(checks, "rdma.rxe1", "ok")
        assert checks["rdma.rxe0"]["remedy"], checks["rdma.rxe0"]


def test_a_file_may_not_be_opened():
    os.chmod("/dev/infiniband/uverbs1", 0o600)
    expect(doctor(NOBODY), "rdma.rxe1", "warn", "uverbs1 cannot be opened: Permission denied", "chmod a+rw")
    os.chmod("/dev/infiniband/uverbs1", 0o666)
    expect(doctor(NOBODY), "rdma.rxe1", "ok")


def test_memory_may_not_be_locked():
    few = ["prlimit", "--memlock=8388608:8388608", *NOBODY]
    expect(doctor(few), "memory.memlock", "warn", "too little for RDMA", "ulimit -l unlimited")


def test_the_driver_is_missing():
    with taken_away(*glob.glob("/etc/libibverbs.d/*"), *glob.glob("/usr/lib/*/libibverbs/librxe-rdmav*.so")):
        expect(doctor(), "rdma.rxe0", "warn", "libibverbs does not know rxe0", "ibverbs-providers")


def test_the_library_is_missing():
    with taken_away(*glob.glob("/usr/lib/*/libibverbs.so.1")):
        checks = doctor()
        expect(checks, "devices.rdma", "warn", "libibverbs does not load", "libibverbs1")
        expect(checks, "rdma.rxe0", "warn", "not tried")


def test_a_second_device_comes_and_goes():
    sh("rdma link delete rxe1")
    assert {d["name"] for d in report("topo")["rdma"]["devices"]} == {"rxe0"}
    sh("rdma link delete rxe0")
    expect(doctor(), "devices.rdma", "ok", "no device", "rdma link add rxe0 type rxe netdev")
    topo = report("topo")
    assert topo["rdma"]["devices"] == [] and topo["rdma"]["rails"] == [], topo["rdma"]
    sh("rdma link add rxe0 type rxe netdev veth0")
    expect(doctor(), "rdma.rxe0:1", "ok", "(10.77.0.1, RoCE v2)")


def main():
    if socket.gethostname() != "rdma-vm":
        sys.exit("this test takes devices and libraries away: run it by tools/rdma-vm/rdma-vm only")
    shutil.copy(sys.argv[1], PROGRAM)  # Guest memory is faster than the folder that is shared with the host.
    for name, test in list(globals().items()):
        if name.startswith("test_"):
            print(name, flush=True)
            test()


main()
