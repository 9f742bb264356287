#!/usr/bin/env python3
"""Runs the program `hawser` as a user would and checks its exit codes and its JSON.

usage: cli_test.py PROGRAM usage|output|bench_coll|tune|ca|info|plugins|doctor|topo|demo|demo_progress|demo_failures|serve_ping|top|cp|bench|bench_failures|sim
"""

import json
import os
import pathlib
import pty
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PROGRAM = sys.argv[1]
SMALL = ["--layers", "4", "--kv-heads", "2", "--head-dim", "64", "--requests", "6", "--prompt-tokens", "32-256",
         "--memory", "64MiB", "--passes", "1", "--no-ceiling"]


def environment_of_a_user():
    """Without what whoever runs the tests has set for Hawser."""
    return {name: value for name, value in os.environ.items() if not name.startswith("HAWSER_")}


def run(*arguments, expect=0, env=None, timeout=60):
    environment = {**environment_of_a_user(), **(env or {})}
    done = subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, errors="replace", timeout=timeout,
                          env=environment)
    if done.returncode != expect:
        sys.exit(f"hawser {' '.join(arguments)}: exit code {done.returncode}, expected {expect}\n"
                 f"stdout:\n{done.stdout}\nstderr:\n{done.stderr}")
    return done


def run_json(command, *arguments, expect=0, env=None, timeout=60):
    document = json.loads(run(command, "--json", *arguments, expect=expect, env=env, timeout=timeout).stdout)
    assert document["schema"] == f"hawser.{command}/1", document["schema"]
    return document


def test_usage():
    commands = ["info", "doctor", "topo", "demo", "bench", "serve", "ping", "cp", "sim", "collectives", "top", "explain", "metrics", "ca"]
    for command in commands:
        text = run(command, "--help").stdout
        assert text.count(f"hawser {command}") >= 2, text  # examples
        assert "Exit codes" in text and "--json" in text, text
        assert max(len(line) for line in text.splitlines()) <= 100, text
        assert "'--no-such-option'" in run(command, "--no-such-option", expect=2).stderr
    assert "one of info, " in run(expect=2).stderr
    assert "no command 'no-such-command'" in run("no-such-command", expect=2).stderr
    assert "Did you mean 'serve'?" in run("sevre", expect=2).stderr
    assert "Did you mean '--listen'?" in run("serve", "--lisen", "x", expect=2).stderr
    error = json.loads(run("ping", "--json", expect=2).stdout)
    assert error["schema"] == "hawser.ping/1" and error["error"]["code"] == "invalid", error
    assert run("--version").stdout.startswith("hawser ")
    assert "KiB" in run("demo", "--memory", "lots", expect=2).stderr
    assert "ms" in run("serve", "--for", "soon", expect=2).stderr
    assert "run-rank" not in run(expect=2).stderr  # `hawser run --hosts` alone calls it.
    assert "Value -3 not in range" in run("collectives", "--ranks", "-3", expect=2).stderr
    for wrong in ("-1", "18446744073709551616", "1e3", ""):
        assert "a whole number from 0" in run("sim", "--seed", wrong, expect=2).stderr, wrong
    assert "a whole number from 1" in run("sim", "--count", "0", expect=2).stderr


def test_output():
    """What cannot be written is an error, and what is printed goes into no file of the command's own."""
    for call in (["info"], ["topo", "--json"], ["--help"], ["collectives", "--json"], ["top", "--once"]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([PROGRAM, *call], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                                  env=environment_of_a_user())
        told = "could be written" in done.stderr or "cannot write" in done.stderr
        assert done.returncode == 20 and told, (call, done)
        closed = subprocess.run(["sh", "-c", 'exec "$0" "$@" <&- >&-', PROGRAM, *call], stderr=subprocess.PIPE, timeout=60,
                                env=environment_of_a_user())
        assert closed.returncode == 0 and not closed.stderr, (call, closed)
    server = subprocess.Popen(["sh", "-c", 'exec "$0" "$@" <&- >&-', PROGRAM, "serve", "--size", "1MiB", "--for", "60s"])
    try:
        held, deadline = pathlib.Path(f"/proc/{server.pid}/fd"), time.monotonic() + 30
        while len(list(held.iterdir())) < 12 and time.monotonic() < deadline:
            time.sleep(0.05)  # Until it has opened what it serves by.
        assert [os.readlink(held / number) for number in ("0", "1")] == ["/dev/null"] * 2
    finally:
        server.kill()
        server.wait()


def test_collectives():
    text = run("collectives", "--ranks", "4", "--bytes", "8,64M").stdout
    assert re.search(r"all_reduce +8 B +boards", text) and re.search(r"all_reduce +64 MiB +mapped", text), text
    rows = run_json("collectives", "--ranks", "16", "--hosts", "2", "--operation", "all_reduce", "--bytes", "8")["rows"]
    assert [row["choices"][0]["algorithm"] for row in rows] == ["boards in hosts"], rows
    assert "'lots' is not a size" in run("collectives", "--bytes", "8,lots", expect=2).stderr
    assert "is above 1024TiB" in run("collectives", "--bytes", "2048T", expect=2).stderr
    assert "at least as many --ranks" in run("collectives", "--ranks", "2", "--hosts", "3", expect=11).stderr
    assert "'sum' is none of barrier, broadcast, " in run("collectives", "--operation", "sum", expect=2).stderr


def test_info():
    info = run_json("info")
    assert info["version"] and info["copy_kernel"] and info["wire"]["min"] <= info["wire"]["max"]
    names = {backend["name"] for backend in info["backends"] if backend["open"]}
    assert {"shm", "tcp"} <= names, info["backends"]
    assert {"memlock", "nofile", "max_map_count", "wmem_max"} <= set(info["limits"])
    assert "alias" in info["nixl_plugins"]["UCX"], info["nixl_plugins"]
    native = run_json("info", env={"HAWSER_NIXL_UCX": "native"})["nixl_plugins"]["UCX"]
    assert "alias" not in native and "unset it" in native, native
    assert info["config"], "no configuration table"
    assert all(value["origin"] == "default" for value in info["config"]), info["config"]
    changed = run_json("info", env={"HAWSER_DEADLINE": "7s"})
    origins = {value["name"]: value["origin"] for value in changed["config"]}
    assert "HAWSER_DEADLINE" in origins.values(), origins
    assert "limit" in run("info").stdout
    wrong = run_json("info", "--config", "/no/such/file.toml", expect=12)
    assert not wrong["ok"] and "/no/such/file.toml" in wrong["error"]["message"], wrong


def test_doctor():
    done = subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True, timeout=60)
    report = json.loads(done.stdout)
    assert report["schema"] == "hawser.doctor/1"
    assert done.returncode == (0 if report["ok"] else 13), done.returncode
    checks = {check["name"]: check for check in report["checks"]}
    for name in ["memory.memlock", "memory.memfd", "kernel.cross_memory", "kernel.io_uring", "kernel.userfaultfd", "network.loopback4",
                 "devices.rdma", "backend.shm", "backend.tcp", "machine.clock", "config"]:
        assert name in checks, name
    for check in checks.values():
        assert check["verdict"] in ("ok", "warn", "fail") and check["found"], check
        assert check["verdict"] == "ok" or (check["why"] and check["remedy"]), check
    assert checks["memory.memfd"]["verdict"] == "ok", checks["memory.memfd"]
    assert sum(report["counts"].values()) == len(report["checks"])
    if checks["devices.rdma"]["found"].startswith("no device"):  # No fault, unless the configuration wants one.
        assert checks["backend.verbs"]["verdict"] == "warn", checks["backend.verbs"]
        wanted = run_json("doctor", env={"HAWSER_BACKENDS": "shm,verbs"}, expect=13)
        assert {check["name"]: check["verdict"] for check in wanted["checks"]}["backend.verbs"] == "fail"
    assert "alias" in checks["nixl.UCX"]["found"], checks["nixl.UCX"]
    refused = run_json("doctor", env={"HAWSER_NIXL_UCX": "native"}, expect=done.returncode)
    refused = {check["name"]: check for check in refused["checks"]}["nixl.UCX"]
    assert refused["verdict"] == "warn" and "HAWSER_NIXL_UCX" in refused["found"], refused
    # What it found is what the kernel says.
    first, last = pathlib.Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert checks["network.ports"]["found"] == f"{first} to {last} for connections", checks["network.ports"]
    pages = int(pathlib.Path("/proc/sys/vm/nr_hugepages").read_text())
    pool = f"{pages} pages reserved" if pages else "no reserved pool"
    assert checks["memory.hugetlb"]["found"] == pool, checks["memory.hugetlb"]
    assert checks["memory.hugetlb"]["verdict"] == "ok"  # Nobody needs one.
    for name, file, off in [("memory.thp_anon", "enabled", ["never"]),
                            ("memory.thp_shmem", "shmem_enabled", ["never", "deny"])]:
        path = pathlib.Path("/sys/kernel/mm/transparent_hugepage", file)
        word = path.read_text().split("[")[1].split("]")[0] if path.exists() else "unknown"
        check = checks[name]
        assert check["found"].endswith(f": {word}"), (word, check)
        bad = word in [*off, "unknown"]
        assert check["verdict"] == ("warn" if bad else "ok") and (file in check["remedy"]) == bad, (word, check)


def test_plugins():
    """Broken plug-ins are told of with their cause, and nothing else suffers."""
    with tempfile.TemporaryDirectory() as folder:
        broken = pathlib.Path(folder, "libhawser_backend_text.so")
        broken.write_text("this is no shared object")
        named = {"HAWSER_PLUGIN_PATH": f"/no/such/folder:{folder}", "HAWSER_BACKENDS": "loopback"}
        for env in ({"HAWSER_PLUGIN_PATH": folder}, named):
            reports = {one["name"]: one for one in run_json("info", env=env)["backends"]}
            assert not reports["text"]["open"] and not reports["text"]["in_use"], reports
            assert str(broken) in reports["text"]["error"]["message"], reports
            assert reports["loopback"]["open"] and reports["loopback"]["in_use"], reports
            assert str(broken) in run("info", env=env).stdout
        # Named, it is a failure; not named, a warning.
        for backends, verdict in (("all", "fail"), ("loopback,text", "fail"), ("loopback", "warn")):
            done = subprocess.run([PROGRAM, "doctor", "--json"], capture_output=True, text=True, timeout=60,
                                  env={**os.environ, **named, "HAWSER_BACKENDS": backends})
            checks = json.loads(done.stdout)["checks"]
            found = {check["name"]: check for check in checks}
            assert found["backend.text"]["verdict"] == verdict, (backends, found["backend.text"])
            assert str(broken) in found["backend.text"]["found"] and found["backend.text"]["remedy"], found
            assert found["backend.loopback"]["verdict"] == "ok", found["backend.loopback"]
            folders = [check for check in checks if check["name"] == "plugins"]
            assert [check["verdict"] for check in folders] == ["warn", "ok"], folders
            assert "/no/such/folder" in folders[0]["found"] and folders[0]["remedy"], folders
            if verdict == "fail":
                assert done.returncode == 13, done.returncode


COSTS = """schema = "hawser.cost_model/1"
host = "node1"

[within_host]
message_ns = {{ value = {message}, low = 1000.0, high = 9000 }}
byte_ns = 0.2
combined_byte_ns = 0.1
read_byte_ns = 0.1
board_ns = 1_000_000_000
"""


def test_bench_coll():
    """What it measures, alone and as the ranks of a launcher; --tune writes a file that the other commands read."""
    text = run("bench", "coll", "--help").stdout
    assert text.count("hawser bench coll") >= 3 and "Exit codes" in text and "hawser.bench_coll/1" in text, text
    assert max(len(line) for line in text.splitlines()) <= 100, text
    assert "'--no-such-option'" in run("bench", "coll", "--no-such-option", expect=2).stderr
    assert "hawser bench coll: " in run("bench", "coll", "--round", "3", expect=2).stderr
    assert "'sum' is none of barrier" in run("bench", "coll", "--operation", "sum", expect=2).stderr
    assert "--output is for" in run("bench", "coll", "--output", "x", expect=11).stderr
    rough = ["--repetitions", "20", "--bytes", "8,64K"]
    report = json.loads(run("bench", "coll", "--json", "-n", "3", *rough).stdout)
    assert report["schema"] == "hawser.bench_coll/1" and report["ok"] and report["ranks"] == 3, report
    assert report["cost_model"] == "built in" and report["hosts"] == 1, report
    operations = {row["operation"] for row in report["rows"]}
    assert operations >= {"barrier", "broadcast", "all_reduce", "all_gather", "reduce_scatter", "all_to_all"}, operations
    for row in report["rows"]:
        assert 0 < row["p50_ns"] <= row["p99_ns"] and row["model_ns"] > 0 and row["repetitions"] > 0, row
    shown = run("bench", "coll", "--operation", "all_reduce", *rough).stdout
    assert "2 ranks on one host" in shown and "coll_bench.py" in shown and "all_reduce" in shown, shown
    assert max(len(line) for line in shown.splitlines()) <= 100, shown
    under = run("run", "-n", "2", "--", PROGRAM, "bench", "coll", "--operation", "barrier", *rough).stdout
    assert "[0] 2 ranks on one host" in under and "[1]" not in under, under
    for operation in ("reduce", "gather", "scatter", "scan", "exclusive_scan"):
        run("bench", "coll", "-n", "3", "--operation", operation, *rough)
    mapped = json.loads(run("bench", "coll", "--json", "--operation", "all_reduce", "--mapped", "--bytes", "1M",
                            "--repetitions", "2").stdout)["rows"][0]
    assert mapped["algorithm"] == "mapped" and mapped["mapped"], mapped
    tcp = json.loads(run("bench", "coll", "--json", "--operation", "barrier", "--backend", "tcp", *rough).stdout)
    assert tcp["backends"] == "tcp" and tcp["rows"][0]["algorithm"] == "dissemination", tcp
    wrong = json.loads(run("bench", "coll", "--json", "--backend", "nothing", *rough, expect=12).stdout)
    assert wrong["schema"] == "hawser.bench_coll/1" and not wrong["ok"], wrong
    assert "nothing" in json.dumps(wrong["error"]), wrong


def test_tune():
    with tempfile.TemporaryDirectory() as folder:
        costs, other = os.path.join(folder, "costs.toml"), os.path.join(folder, "other.toml")
        # The machine may be too disturbed for a fit that makes sense; then that is said, and there is no file.
        for rounds in ("3", "5", "9", "15"):
            done = subprocess.run([PROGRAM, "bench", "coll", "--tune", "--rounds", rounds, "--output", costs, "--json"],
                                  capture_output=True, text=True, timeout=100)
            if done.returncode == 0:
                break
            assert done.returncode == 11 and not os.path.exists(costs), done
            assert "while the machine is quiet" in done.stderr, done
        report = json.loads(done.stdout)
        assert report["schema"] == "hawser.bench_coll/1" and report["ok"], report
        tune = report["tune"]
        assert tune["has_within_host"] and not tune["has_between_hosts"], tune
        assert set(tune["costs"]) == {"message_ns", "byte_ns", "combined_byte_ns", "read_byte_ns", "board_ns"}, tune
        for cost in tune["costs"].values():
            assert 0 < cost["low"] <= cost["value"] <= cost["high"], tune
        text = pathlib.Path(costs).read_text(encoding="utf-8")
        assert text == tune["file"] and "No [between_hosts]" in text and 'schema = "hawser.cost_model/1"' in text, text
        assert os.listdir(folder) == ["costs.toml"], os.listdir(folder)
        for given in (["--cost-model", costs], []):
            env = {} if given else {"HAWSER_COST_MODEL": costs}
            model = run_json("collectives", "--operation", "barrier", *given, env=env)["model"]
            assert model["message_ns"] == tune["costs"]["message_ns"]["value"] and costs in model["from"], model
            assert "built in between them" in model["from"], model
        assert "Cost model: built in" in run("collectives").stdout
        assert "[within_host]" in run("bench", "coll", "--help").stdout + text
        tcp = run("bench", "coll", "--tune", "--backend", "tcp", expect=11).stderr
        assert "says nothing of a network" in tcp and "--hosts" in tcp, tcp
        assert "one rank" in run("bench", "coll", "--tune", "-n", "1", expect=13).stderr
        assert "is a folder" in run("bench", "coll", "--tune", "--output", folder, expect=11).stderr
        # Where boards cost a second, no barrier goes by boards.
        pathlib.Path(other).write_text(COSTS.format(message="5000.5"), encoding="utf-8")
        rough = ["--operation", "barrier", "--repetitions", "20"]
        report = json.loads(run("bench", "coll", "--json", "--cost-model", other, *rough).stdout)
        assert report["cost_model"].startswith("told by rank 0: message_ns = 5000.5"), report
        assert report["rows"][0]["algorithm"] == "dissemination" and report["rows"][0]["model_ns"] == 5000.5, report
        rows = run_json("collectives", "--cost-model", other, "--operation", "barrier", "--ranks", "2")["rows"]
        assert rows[0]["choices"][0]["algorithm"] == "dissemination", rows
        pathlib.Path(other).write_text(COSTS.format(message="-1"), encoding="utf-8")
        for command in (["collectives"], ["bench", "coll", *rough]):
            told = run(*command, "--cost-model", other, expect=11).stderr
            assert "other.toml:5: message_ns = -1 is not a number above 0" in told, told
            assert "cannot read" in run(*command, "--cost-model", other + ".none", expect=12).stderr


def test_ca():
    with tempfile.TemporaryDirectory() as folder:
        authority = ["--folder", f"{folder}/ca"]
        assert run_json("ca", "init", "example.org", *authority)["domain"] == "example.org"
        assert "already" in run("ca", "init", "example.org", *authority, expect=11).stderr
        issued = run_json("ca", "issue", "store", "--san", "store-*", "--ttl", "1h", "--out", f"{folder}/store", *authority)
        assert issued["certificate"]["id"] == "spiffe://example.org/store", issued
        assert issued["certificate"]["san"] == ["store-*"], issued
        assert sorted(os.listdir(f"{folder}/store")) == ["ca.crl", "ca.crt", "tls.crt", "tls.key"]
        assert os.stat(f"{folder}/store/tls.key").st_mode & 0o777 == 0o600
        assert os.stat(f"{folder}/ca/ca.key").st_mode & 0o777 == 0o600
        env = dict(os.environ, HAWSER_IDENTITY=f"{folder}/store")
        finding = [one for one in run_json("doctor", env=env)["checks"] if one["name"] == "network.identity"]
        assert finding and "spiffe://example.org/store until" in finding[0]["found"], finding
        assert "spiffe" not in run("doctor").stdout
        assert run_json("info", env=env)["error"] is None
        assert "1 certificate of store is revoked" in run("ca", "revoke", "store", "--out", f"{folder}/store", *authority).stdout
        assert "revoked" in run("ca", "show", *authority).stdout
        finding = [one for one in run_json("doctor", env=env, expect=13)["checks"] if one["name"] == "network.identity"]
        assert finding[0]["verdict"] == "fail" and "revoked" in finding[0]["found"], finding
        assert "SPIFFE" in run("ca", "issue", "a b", *authority, expect=11).stderr
        assert "--ttl is below 1s" in run("ca", "issue", "store", "--ttl", "0s", *authority, expect=11).stderr
        assert "wants a name" in run("ca", "issue", *authority, expect=11).stderr
        assert "nothing to 'nobody'" in run("ca", "revoke", "nobody", *authority, expect=12).stderr
        assert "ca init" in run("ca", "show", "--folder", f"{folder}/none", expect=12).stderr
        run("ca", "sign", "x", expect=2)


def test_topo():
    topo = run_json("topo")
    assert topo["tree"]["kind"] == "machine" and topo["tree"]["children"]

    def count(node, kind):
        return (node["kind"] == kind) + sum(count(child, kind) for child in node["children"])

    assert count(topo["tree"], "core") >= 1
    assert "lo" in {device["name"] for device in topo["devices"]}
    assert "distance" in run("topo").stdout
    rdma = topo["rdma"]
    assert {one["name"] for one in rdma["devices"]} == {d["name"] for d in topo["devices"] if d["kind"] == "rdma"}, rdma
    assert rdma["library"] or rdma["library_error"], rdma
    for device in rdma["devices"]:
        assert device["open"] or device["error"]["message"], device
        for port in device["ports"]:
            scores = [gid["score"] for gid in port["gids"] if gid["usable"]]
            assert scores == sorted(scores, reverse=True), port
            assert port["usable"] or port["error"]["message"], port
    if any(device["open"] and port["usable"] for device in rdma["devices"] for port in device["ports"]):
        assert rdma["rails"], rdma
        assert all(name in run("topo").stdout for name in ("rdma port", "reason", "memory of"))


def check_run(result, requests, passes):
    assert result["ok"], result["error"]
    assert len(result["passes"]) == passes and result["passes"][0]["cold"]
    assert result["verified"] == {**result["verified"], "good": requests * passes, "of": requests * passes}
    for one in result["passes"]:
        assert one["requests"] == requests and one["bytes"] > 0 and one["gb_per_s_wall"] > 0
        assert 0 < one["latency_ns"]["p50"] <= one["latency_ns"]["p99"]
        assert one["moving_ns"] <= one["wall_ns"]
    assert result["explain"]


def test_demo():
    both = run_json("demo", *SMALL)
    assert both["ok"] and [result["backend"] for result in both["runs"]] == ["shm", "tcp"]
    for result in both["runs"]:
        check_run(result, requests=6, passes=2)
    again = run_json("demo", *SMALL, "--backend", "auto", "--no-verify")
    assert again["workload"] == both["workload"], "one seed, two workloads"
    assert again["runs"][0]["verified"]["of"] == 0
    # A latent plane, blocks of an odd size, more data than memory: several waves. And the raw loops.
    waves = run_json("demo", "--model", "deepseek-v3", "--block-tokens", "3", "--requests", "8", "--prompt-tokens",
                     "60", "--memory", "16MiB", "--passes", "1", "--concurrency", "3", "--backend", "shm")
    assert waves["geometry"]["block_bytes"] == 3 * 576 * 2 and waves["workload"]["waves"] > 1, waves["workload"]
    check_run(waves["runs"][0], requests=8, passes=2)
    assert waves["runs"][0]["ceiling"]["gb_per_s"] > 0 and waves["runs"][0]["warm"]["ratio"] > 0
    assert "µs/block" in run("demo", *SMALL, "--backend", "shm").stdout


def test_demo_progress():
    """A bar on a terminal, redrawn in place and gone at the end; none where nobody looks, and none beside JSON."""
    many = ["300" if each == "6" else each for each in SMALL]  # Requests: a few are over before there is a bar to draw.
    command = [PROGRAM, "demo", *many, "--backend", "shm"]
    environment = environment_of_a_user()

    def said_on_terminal(*more):
        ours, theirs = pty.openpty()
        process = subprocess.Popen([*command, *more], stdout=subprocess.PIPE, stderr=theirs, env=environment)
        os.close(theirs)
        process.stdout.read()
        said = b""
        while True:
            try:
                part = os.read(ours, 65536)
            except OSError:  # The last writer left.
                break
            if not part:
                break
            said += part
        os.close(ours)
        assert process.wait(60) == 0, said
        return said.decode()

    said = said_on_terminal()
    bars = re.findall(r"\r\x1b\[K(\S.*?) \[(#*)(\.*)\] (\d+)/(\d+)", said)
    assert bars, repr(said)
    for title, full, left, done, total in bars:
        assert title.startswith("shm wave ") and len(full + left) == 32, title
        assert int(done) <= int(total) and len(full) == 32 * int(done) // int(total), (full, done, total)
    assert said.endswith("\r\x1b[K"), repr(said[-80:])
    assert "\x1b" not in said_on_terminal("--json")
    done = run("demo", *SMALL, "--backend", "shm")
    assert "\x1b" not in done.stderr + done.stdout


def children_of(pid):
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            stat = (entry / "stat").read_text()
            command = (entry / "cmdline").read_bytes()
        except OSError:
            continue
        if int(stat.rsplit(")", 1)[1].split()[1]) == pid and b"--role" in command:
            found.append(int(entry.name))
    return found


def await_child(process):
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        found = children_of(process.pid)
        if found:
            return found[0]
        time.sleep(0.005)
    sys.exit("the demo started no second process")


def is_gone(pid):
    """Within two seconds; one that waits to be reaped by somebody else counts."""
    for _ in range(200):
        try:
            if pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.01)
    return False


def interrupted_demo(action):
    process = subprocess.Popen([PROGRAM, "demo", "--model", "llama-3.1-8b", "--backend", "tcp", "--passes", "500",
                                "--requests", "8", "--memory", "256MiB", "--prompt-tokens", "64", "--no-ceiling",
                                "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    child = await_child(process)
    time.sleep(1.0)
    action(process, child)
    start = time.monotonic()
    out, err = process.communicate(timeout=30)
    assert is_gone(child), "the second process outlived the first"
    return process.returncode, out, err, time.monotonic() - start


def test_demo_failures():
    code, out, err, took = interrupted_demo(lambda process, child: os.kill(child, signal.SIGKILL))
    assert code == 15 and "decode" in err and "signal 9" in err, (code, err)
    assert json.loads(out)["runs"][0]["error"]["code"] and took < 10, (out, took)
    code, out, err, took = interrupted_demo(lambda process, child: process.send_signal(signal.SIGINT))
    assert code == 17 and took < 10, (code, err, took)
    code, out, err, took = interrupted_demo(lambda process, child: process.kill())
    assert code == -signal.SIGKILL, code
    assert "choose one of" in run("demo", "--model", "gpt-2", expect=12).stderr
    assert "--memory" in run("demo", "--memory", "1MiB", expect=11).stderr
    assert "--head-dim" in run("demo", "--layers", "4", expect=11).stderr
    wrong = run_json("demo", *SMALL, "--backend", "pigeon", expect=12)
    assert not wrong["ok"] and "pigeon" in wrong["runs"][0]["error"]["message"], wrong


class Serve:
    """A `hawser serve --json` in the background; its lines as they come."""

    def __init__(self, *arguments, env=None, user=None):
        self.process = subprocess.Popen([PROGRAM, "serve", "--json", "--interval", "1s", *arguments],
                                        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                        env={**os.environ, **(env or {})}, user=user, group=user)
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"serve said nothing: {self.process.communicate()}")
        self.ready = json.loads(line)

    def end(self):
        self.process.send_signal(signal.SIGINT)
        out, err = self.process.communicate(timeout=20)
        assert self.process.returncode == 0, (self.process.returncode, out, err)
        return [json.loads(line) for line in out.splitlines()]


def test_bench():
    listed = json.loads(run("bench", "--list", "--json").stdout)
    ids = [row["id"] for row in listed["rows"]]
    assert len(ids) == len(set(ids)) and "shm.notify_rtt" in ids and "tcp.write.1m.c2" in ids, ids
    assert all(row["target"]["kind"] != "none" and row["what"] for row in listed["rows"])
    report = run_json("bench", "--quick", "--rounds", "1", "--row",
                      "shm.write.64k,shm.foreign.read.1m,shm.notify_rtt,shm.consume.64k,tcp.read.1m.c2,submit.10,table.*",
                      timeout=100)
    assert report["ok"] and report["backends"] and report["not_default"] == {}, report
    rows = {row["id"]: row for row in report["rows"]}
    assert len(rows) == 8 and all(row["state"] == "run" and row["value"] > 0 for row in rows.values()), rows
    for name in ["shm.write.64k", "shm.foreign.read.1m", "tcp.read.1m.c2"]:
        row = rows[name]
        assert row["ceiling"] > 0 and row["ratio"] > 0 and row["verified_bytes"] > 0, row
        assert row["p50_ns"] <= row["p99_ns"] and row["cold"] > 0 and row["ceiling_how"], row
    changed = run_json("bench", "--quick", "--row", "table.bytes1m", env={"HAWSER_DEADLINE": "7s"})
    assert changed["not_default"] == {"deadline": "7s"}, changed["not_default"]
    skipped = run_json("bench", "--quick", "--row", "ucx.shm.put.4k", env={"UCX_PERFTEST": "/no/such/program"})
    assert skipped["ok"] and skipped["rows"][0]["state"] == "skipped", skipped
    if not any(pathlib.Path("/sys/class").glob("infiniband/*")):
        verbs = run_json("bench", "--quick", "--backend", "verbs", "--row", "*.4k,*lat8")
        assert {row["id"] for row in verbs["rows"]} == {
            "verbs.put_lat8", "verbs.notify_lat8", "verbs.message_lat8", "verbs.write_lat8", "verbs.write.4k",
            "verbs.read.4k"}, verbs
        assert all(row["state"] == "skipped" and "RDMA" in row["error"]["message"] for row in verbs["rows"]), verbs
    wrong = run("bench", "--row", "no.such.row", expect=11)
    assert "--list" in wrong.stderr, wrong.stderr


def test_bench_report():
    """The page holds what --json prints, an earlier run makes the same page, and a place that cannot be written is told first."""
    with tempfile.TemporaryDirectory() as folder:
        page, again, figures = (os.path.join(folder, name) for name in ("a.html", "b.html", "figures.json"))
        report = run_json("bench", "--quick", "--row", "table.*", "--report", page)
        text = pathlib.Path(page).read_text(encoding="utf-8")
        held = re.search('<script type="application/json" id="results">(.*?)</script>', text, re.DOTALL)
        assert json.loads(held.group(1)) == report, held.group(1)
        assert not re.search(r"""(src|href)=["']?(https?:)?//""", text), "the page wants the network"
        pathlib.Path(figures).write_text(json.dumps(report), encoding="utf-8")
        run("bench", "--from", figures, "--report", again)
        assert pathlib.Path(again).read_text(encoding="utf-8") == text
        assert sorted(os.listdir(folder)) == ["a.html", "b.html", "figures.json"], os.listdir(folder)
        started = time.monotonic()
        for place in (folder, os.path.join(folder, "no", "a.html")):
            wrong = run("bench", "--report", place, expect=11)
            assert place.split("/no/")[0] in wrong.stderr, wrong.stderr
        assert time.monotonic() - started < 5, "it measured before it told"
        run("bench", "--from", figures, expect=2)
        run("bench", "--from", page, "--report", again, expect=11)
        run("bench", "--from", os.path.join(folder, "none"), "--report", again, expect=12)


def test_bench_failures():
    """A second process that is killed, and Ctrl-C, end the bench in order and leave nobody behind."""
    for action, expect in [("child", 15), ("interrupt", 17)]:
        process = subprocess.Popen([PROGRAM, "bench", "--rounds", "1000", "--row", "shm.notify_rtt", "--json"],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        child = await_child(process)
        time.sleep(1)
        if action == "child":
            os.kill(child, signal.SIGKILL)
        else:
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == expect, (action, process.returncode, out, err)
        assert is_gone(child), action


def check_ping(report, name):
    assert report["peer"] == name and report["lost"] == 0
    assert report["echo_ns"]["count"] == 20 and report["echo_ns"]["p50"] > 0
    assert report["bulk"]["write_gb_per_s"] > 0 and report["bulk"]["read_gb_per_s"] > 0
    assert report["paths"] and report["explain"]


def test_serve_ping():
    server = Serve("--name", "store", "--size", "8MiB")
    assert server.ready["event"] == "ready" and server.ready["region"]["bytes"] >= 8 << 20, server.ready
    target = server.ready["target"]
    for backend in ([], ["--backend", "tcp"], ["--backend", "shm", "--backend", "tcp"]):
        report = run_json("ping", target, "-c", "20", "--size", "4MiB", *backend)
        check_ping(report, "store")
    lines = server.end()
    events = [line["event"] for line in lines]
    assert "up" in events and "down" in events and events[-1] == "counters", events
    assert lines[-1]["counters"]["total"]["notifications_received"] >= 60, lines[-1]

    with tempfile.TemporaryDirectory() as folder:
        server = Serve("--name", "cards", "--size", "1MiB", "--directory", folder, "--backend", "shm")
        check_ping(run_json("ping", "cards", "--directory", folder, "-c", "20"), "cards")
        server.end()
    gone = run_json("ping", "nobody@127.0.0.1:1", "--timeout", "1s", expect=15)
    assert not gone["ok"] and "127.0.0.1:1" in json.dumps(gone["error"]), gone
    run("serve", "--listen", "nonsense", expect=11)
    assert run("serve", "--name", "short", "--for", "300ms", "--size", "1MiB").stdout.count("hawser ping") == 1


def test_top():
    with tempfile.TemporaryDirectory() as folder:
        env = {"HAWSER_STATUS_PAGE": folder}

        def shown(*more):
            return run_json("top", "--once", "--interval", "300ms", *more, env=env)["agents"]

        assert shown() == [] and "no agent" in run("top", "--once", env=env).stdout
        servers = [Serve("--name", name, "--size", "1MiB", env=env) for name in ("one", "two")]
        files = list(pathlib.Path(folder).iterdir())
        assert sorted(path.suffix for path in files) == [".ask", ".ask", ".status", ".status"], files
        assert all(path.stat().st_mode & 0o777 == 0o600 for path in files), files
        run("ping", servers[0].ready["target"], env=env)
        one, two = shown()
        assert (one["status"]["agent"], two["status"]["agent"]) == ("one", "two")
        assert one["process"] == servers[0].process.pid and one["state"] in ("up", "asleep"), one
        assert [agent["status"]["agent"] for agent in shown("two")] == ["two"]
        assert "two" in run("top", "--once", "two", env=env).stdout
        assert not run("top", "--once", "nobody", env=env, expect=12).stdout
        assert run_json("top", "nobody", "--once", env=env, expect=12)["ok"] is False
        for no_folder in (folder + "/none", "/etc/passwd"):
            assert "no folder" in run("top", "--once", "--folder", no_folder, expect=12).stderr
        run("top", "--once", "--interval", "9ms", env=env, expect=11)
        # Stopped: its page can be read all the same, and says so.
        servers[0].process.send_signal(signal.SIGSTOP)
        deadline = time.monotonic() + 30
        while shown("one")[0]["state"] != "stopped":
            assert time.monotonic() < deadline, shown("one")
        servers[0].process.kill()
        servers[0].process.wait()
        assert [agent["status"]["agent"] for agent in shown()] == ["two"]
        assert [agent["state"] for agent in shown("--dead", "one")] == ["dead"]
        servers[1].end()
        assert shown() == [] and len(shown("--dead")) == 1, "an agent that was closed leaves no page"
        off = Serve("--name", "unseen", "--size", "1MiB", env={"HAWSER_STATUS_PAGE": "off"})
        try:
            assert not [agent for agent in run_json("top", "--once")["agents"] if agent["status"]["agent"] == "unseen"]
        finally:
            off.end()


def test_explain():
    with tempfile.TemporaryDirectory() as folder:
        env = {"HAWSER_STATUS_PAGE": folder}
        server = Serve("--name", "served", "--size", "1MiB", env=env)
        pinger = subprocess.Popen([PROGRAM, "ping", server.ready["target"], "-c", "10000000"], stdout=subprocess.DEVNULL,
                                  env=dict(os.environ, **env))
        try:
            deadline = time.monotonic() + 60
            while True:
                done = subprocess.run([PROGRAM, "explain", "served", "--json"], capture_output=True, text=True,
                                      env=dict(os.environ, **env), check=False)
                if done.returncode == 0 and json.loads(done.stdout)["peers"][0].get("ways"):
                    break
                assert time.monotonic() < deadline, done
                time.sleep(0.1)
            peer = json.loads(done.stdout)["peers"][0]
            assert peer["agent"] == "served" and peer["state"] == "up" and peer["paths"][0]["about"], peer
            assert {"shm", "tcp"} <= {way["backend"] for way in peer["ways"]}, peer
            text = run("explain", "served", peer["peer"], env=env).stdout
            assert "shm" in text and "loopback reaches this agent only" in text and f"to {peer['peer']}: up" in text, text
            assert "no peer 'nobody'" in run("explain", "served", "nobody", env=env, expect=12).stderr
        finally:
            pinger.kill()
            pinger.wait()
        server.end()
        run("explain", "served", env=env, expect=12)
        run("explain", env=env, expect=2)


class Rude:
    """Callers of a status socket that do all that they should not, for as long as they are asked to."""

    def __init__(self, path):
        self.path, self.threads, self.stop = path, [], threading.Event()
        for manner in (self.garbage, self.never_reads, self.says_nothing, self.crowd):
            self.threads.append(threading.Thread(target=self.go_on, args=(manner,)))
            self.threads[-1].start()

    def go_on(self, manner):
        while not self.stop.is_set():
            try:
                manner()
            except (BlockingIOError, ConnectionError, BrokenPipeError, FileNotFoundError, TimeoutError):
                pass  # As it should be: the desk is full, or has hung up.

    def call(self):
        caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        caller.settimeout(2)
        caller.connect(self.path)
        return caller

    def garbage(self):
        with self.call() as caller:
            caller.sendall(os.urandom(100_000))

    def never_reads(self):
        with self.call() as caller:
            caller.sendall(b"describe\n")
            self.stop.wait(1)

    def says_nothing(self):
        with self.call() as caller:
            assert caller.recv(1) == b"", "the desk hangs up"

    def crowd(self):
        callers = []
        for _ in range(100):
            caller = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            caller.setblocking(False)
            callers.append(caller)
            try:
                caller.connect(self.path)
            except BlockingIOError:
                pass
        self.stop.wait(0.2)
        for caller in callers:
            caller.close()

    def end(self):
        self.stop.set()
        for thread in self.threads:
            thread.join(30)


def test_live():
    with tempfile.TemporaryDirectory() as folder:
        env = {"HAWSER_STATUS_PAGE": folder}
        server = Serve("--name", "served", "--size", "1MiB", env=env)
        pinger = subprocess.Popen([PROGRAM, "ping", server.ready["target"], "-c", "10000000"], stdout=subprocess.DEVNULL,
                                  stderr=subprocess.DEVNULL, env=dict(os.environ, **env))
        try:
            deadline = time.monotonic() + 60
            while subprocess.run([PROGRAM, "explain", "served", "--live"], capture_output=True, env=dict(os.environ, **env),
                                 check=False).returncode != 0:
                assert time.monotonic() < deadline
            told = run_json("explain", "served", "--live", env=env)["peers"]
            assert [peer["live"] for peer in told] == [True] and told[0]["state"] == "up" and told[0]["ways"], told
            agents = run_json("top", "--once", "--live", "--interval", "50ms", env=env)["agents"]
            assert len(agents) == 2 and all(agent["live"] for agent in agents), agents
            figures = run("metrics", "served", env=env).stdout
            assert 'hawser_peer_sessions_up{agent="served",peer="' in figures and figures.endswith("\n# EOF\n"), figures
            assert run_json("metrics", "served", env=env)["text"].count("# TYPE") == figures.count("# TYPE")
            pages = run_json("top", "--once", "--interval", "50ms", env=env)["agents"]
            served_socket = next(each["status"]["socket"] for each in pages if each["status"]["agent"] == "served")
            # Whatever callers do, others are answered and transfers go on.
            rude = Rude(f"{folder}/{served_socket}")
            try:
                def moved():
                    while True:
                        done = subprocess.run([PROGRAM, "metrics", "served"], capture_output=True, text=True,
                                              env=dict(os.environ, **env), check=False)
                        assert done.returncode in (0, 16), done  # Good, or too many callers for a second.
                        if done.returncode == 0:
                            return sum(int(number) for number in re.findall(
                                r"^hawser_agent_(?:notifications|messages|transfers)_total\{.*\} (\d+)$", done.stdout, re.M))

                before = moved()
                for _ in range(5):
                    now = moved()
                    assert now > before, (before, now)
                    before = now
                assert server.process.poll() is None and pinger.poll() is None
            finally:
                rude.end()
            # Stopped: that is said within a second, and its page is shown.
            server.process.send_signal(signal.SIGSTOP)
            before = time.monotonic()
            text = run("explain", "served", "--live", env=env).stdout
            assert time.monotonic() - before < 10
            assert "did not answer within 1.00 s. Shown is its page, " in text and "to ping-" in text, text
            told = run_json("explain", "served", "--live", env=env)["peers"][0]
            assert told["live"] is False and "did not answer" in told["not_live"], told
            assert "did not answer" in run("top", "--once", "--live", "served", "--interval", "50ms", env=env).stdout
            assert "did not answer" in run("metrics", "served", env=env, expect=16).stderr
            server.process.send_signal(signal.SIGCONT)
            assert run("metrics", "served", env=env).stdout.endswith("\n# EOF\n"), "and it answers again"
        finally:
            pinger.kill()
            pinger.wait()
        server.end()
        run("metrics", "served", env=env, expect=12)
        twins = [Serve("--name", "twin", "--size", "1MiB", env=env) for _ in range(2)]
        assert "--process" in run("metrics", "twin", env=env, expect=11).stderr
        assert run("metrics", "twin", "--process", str(twins[1].process.pid), env=env).stdout.endswith("# EOF\n")
        for twin in twins:
            twin.end()
        mute = Serve("--name", "mute", "--size", "1MiB", env=dict(env, HAWSER_STATUS_SOCKET="off"))
        assert "HAWSER_STATUS_SOCKET" in run("metrics", "mute", env=env, expect=13).stderr
        mute.end()


def same_file(one, other):
    assert one.read_bytes() == other.read_bytes(), (one, other)
    assert one.stat().st_mode == other.stat().st_mode, (one, other)
    assert one.stat().st_mtime_ns == other.stat().st_mtime_ns, (one, other)


def copy_down_and_up(target, served, here):
    """Single files, several, folders, there and back."""
    report = run_json("cp", f"{target}:big", str(here / "copied"))
    assert report["files"] == 1 and report["bytes"] == (served / "big").stat().st_size, report
    assert report["bytes_kept"] == 0 and report["gb_per_s"] > 0, report
    same_file(served / "big", here / "copied")
    run("cp", f"{target}:big", f"{target}:sub/empty", str(here) + "/")
    same_file(served / "sub/empty", here / "empty")
    run("cp", "-r", f"{target}:sub", str(here))
    assert run("cp", str(here / "big"), f"{target}:up/again").stdout.startswith("1 file")
    same_file(here / "big", served / "up/again")
    assert run_json("cp", "-r", str(here / "sub"), f"{target}:back")["files"] == 3
    for name in ["a", "deep/b", "empty"]:
        same_file(served / "sub" / name, here / "sub" / name)
        same_file(served / "sub" / name, served / "back" / name)
    assert not list(here.rglob("*.part")) and not list(served.rglob("*.part"))


def resume_from_parts(target, served, here):
    """What is there and right is kept, what is there and wrong is not."""
    data, chunk = (served / "big").read_bytes(), 4 << 20
    (here / "r.part").write_bytes(data[:2 * chunk] + bytes(chunk) + b"tail of something else")
    report = run_json("cp", f"{target}:big", str(here / "r"))
    assert report["bytes_kept"] == 2 * chunk and report["bytes"] == len(data), report
    same_file(served / "big", here / "r")
    (served / "w.part").write_bytes(bytes(chunk) + data[chunk:] + b"more than there is")
    report = run_json("cp", str(here / "r"), f"{target}:w")
    assert report["bytes_kept"] == len(data) - chunk, report
    same_file(here / "r", served / "w")


def refuse_what_is_wrong(target, served, here):
    (served / "link").symlink_to("/etc")
    for path, code in [("../big", 19), ("/etc/passwd", 19), ("link/passwd", 19), ("sub/../../x", 19), ("none", 12),
                       ("sub", 11)]:
        wrong = run_json("cp", f"{target}:{path}", str(here / "x"), expect=code)
        assert not wrong["ok"] and wrong["error"]["message"], wrong
    run("cp", str(here / "big"), f"{target}:../out", expect=19)
    assert not (served.parent / "out").exists() and not (served.parent / "out.part").exists()
    run("cp", str(here / "none"), f"{target}:x", expect=12)
    run("cp", str(here / "big"), str(here / "y"), expect=11)
    run("cp", f"{target}:big", f"{target}:sub/a", str(here / "no_folder"), expect=11)
    run("cp", "somewhere:big", str(here), expect=11)
    run("cp", "only_one", expect=2)


def kill_and_go_on(target, served, here, server):
    """Killed in the middle, on either side, the rest is there and the next copy ends well."""
    size = 48 << 20
    with open(served / "large", "wb") as file:
        file.truncate(size)
    for kill_server in [False, True]:
        for _ in range(10):  # A copy may be over before it is noticed.
            copy = subprocess.Popen([PROGRAM, "cp", f"{target}:large", str(here / "large")], stderr=subprocess.PIPE)
            part = here / "large.part"
            while copy.poll() is None and not (part.exists() and part.stat().st_size):
                time.sleep(0.0005)
            (server.process if kill_server else copy).kill()
            copy.communicate(timeout=60)
            if part.exists():
                break
            assert not kill_server or copy.returncode == 0, copy.returncode
            (here / "large").unlink()
            if kill_server:
                server, target = restart(served, server)
        assert part.exists() and not (here / "large").exists()
        if kill_server:
            assert copy.returncode == 15, copy.returncode
            server, target = restart(served, server)
        run("cp", f"{target}:large", str(here / "large"))
        assert (here / "large").stat().st_size == size and not part.exists()
        (here / "large").unlink()
    return server


def restart(served, server):
    server.process.communicate(timeout=60)
    server = Serve("--name", "store", "--size", "1MiB", "--dir", str(served))
    return server, server.ready["target"]


def test_cp():
    with tempfile.TemporaryDirectory() as folder:
        served, here = pathlib.Path(folder) / "served", pathlib.Path(folder) / "here"
        (served / "sub/deep").mkdir(parents=True)
        here.mkdir()
        (served / "big").write_bytes(os.urandom((13 << 20) + 77))
        (served / "big").chmod(0o640)
        (served / "sub/a").write_bytes(b"a")
        (served / "sub/deep/b").write_bytes(os.urandom(70_000))
        (served / "sub/empty").touch()
        server = Serve("--name", "store", "--size", "1MiB", "--dir", str(served))
        target = server.ready["target"]
        assert server.ready["folder"] == {"path": str(served), "writable": True}, server.ready
        copy_down_and_up(target, served, here)
        resume_from_parts(target, served, here)
        refuse_what_is_wrong(target, served, here)
        server = kill_and_go_on(target, served, here, server)
        last = server.end()[-1]
        assert last["files"]["bytes_read"] > 0 and last["files"]["refused"] == 0, last
        server = Serve("--name", "closed", "--size", "1MiB", "--dir", str(served), "--read-only")
        run("cp", str(here / "big"), f"{server.ready['target']}:x", expect=19)
        assert not (served / "x.part").exists()
        server.end()
        server = Serve("--name", "none", "--size", "1MiB")
        began = time.monotonic()
        assert "--dir" in run("cp", f"{server.ready['target']}:x", str(here), expect=13).stderr
        assert time.monotonic() - began < 10, "the greeting tells that the server takes no files"
        server.end()
    run("serve", "--dir", "/no/such/folder", expect=12)


def test_sim():
    one = run_json("sim", "--seed", "7")
    assert one["ok"] and one["mode"] == "stream" and one["seeds"] == 1 and one["transfers"] > 0, one
    assert run_json("sim", "--seed", "7") == one, "one seed, two runs"
    assert run_json("sim", "--seed", "8")["hash"] != one["hash"]
    many = run_json("sim", "--seed", "1", "--count", "50", "--mode", "mapped")
    assert many["ok"] and many["seeds"] == 50 and not many["failures"] and many["faults"] > 0, many
    cells = {(cell["fault"], cell["phase"]): cell["count"] for cell in many["coverage"]}
    assert ("reset", "close") in cells and ("half close", "close") not in cells, cells
    assert sum(cells.values()) == many["faults"], cells
    trace = run("sim", "--seed", "7", "--trace").stdout
    assert "agent-0 born" in trace and one["hash"] in trace, trace
    assert run("sim", "--count", "20").stdout.count("crash") == 1  # The table.
    ready = subprocess.run([PROGRAM, "sim", "--what", "quic", "--seed", "7"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if ready.returncode == 0:
        quic = run_json("sim", "--what", "quic", "--seed", "7", "--count", "20")
        assert quic["ok"] and quic["what"] == "quic" and quic["connections"] > 20 and quic["bytes"] > 0, quic
        assert run_json("sim", "--what", "quic", "--seed", "7", "--count", "20") == quic, "one seed, two runs"
        assert "c0o connect" in run("sim", "--what", "quic", "--seed", "7", "--trace").stdout
    else:
        assert "ngtcp2" in ready.stderr, ready.stderr  # It says what is missing.
    run("sim", "--what", "quic", "--mode", "stream", expect=11)
    run("sim", "--mode", "quantum", expect=2)
    run("sim", "--count", "0", expect=2)
    run("sim", "--trace", "--json", expect=2)


if __name__ == "__main__":
    globals()[f"test_{sys.argv[2]}"]()
