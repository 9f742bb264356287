"""The package hawser: files as regions, and directories."""

import asyncio
import datetime
import os
import pathlib
import socket
import subprocess
import sys
import threading
import time

import numpy
import pytest

import hawser
from conftest import SCALE, eventually, python_command

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "etcd"))
import with_etcd  # noqa: E402

PATIENCE = 60 * SCALE


@pytest.fixture
def agent():
    with hawser.Agent("files") as one:
        one.array = one.empty(65536, "uint8", name="memory")
        one.array[:] = numpy.arange(65536, dtype=numpy.uint64).astype(numpy.uint8)
        yield one
        del one.array


def test_there_and_back(agent, tmp_path):
    path = tmp_path / "data"
    file = agent.add_file(path, "data", create=True)
    assert (file.name, file.device, file.size, file.address) == ("data", "file", 2**63 - 1, 0)
    here = agent.self()
    agent.write(here, agent.array[:5000], here.range("data", 777, 5000), durable=True, notify=b"kept").wait(PATIENCE)
    assert eventually(agent.take_notification).data == b"kept"
    assert path.read_bytes()[777:] == agent.array[:5000].tobytes()
    back = agent.array[30000:35000]
    agent.read(here, here.range("data", 777, 5000), back).wait(PATIENCE)
    assert (back == agent.array[:5000]).all()
    blocks = here.table("data", [(0, 4096, 8192, 4)])
    agent.plan_write(here, agent.range_of(agent.array).region.table(4096), blocks, [9, 8], [3, 1]).submit().wait(PATIENCE)
    assert path.read_bytes()[3 * 8192:3 * 8192 + 4096] == agent.array[9 * 4096:10 * 4096].tobytes()
    with pytest.raises(hawser.FailedError) as caught:
        agent.read(here, here.range("data", 3 * 8192, 4097), agent.array[:4097]).wait(PATIENCE)
    assert str(3 * 8192 + 4096) in str(caught.value)
    file.close()
    with pytest.raises(hawser.Error):
        agent.write(here, agent.array[:8], here.range("data", 0, 8)).wait(PATIENCE)


@pytest.mark.parametrize("name_of", [str, os.fsencode, pathlib.Path, lambda path: os.open(path, os.O_RDWR),
                                     lambda path: open(path, "r+b")])
def test_names_of_files(agent, tmp_path, name_of):
    path = tmp_path / "\u00e4 file"
    path.write_bytes(b"before" * 100)
    file = name_of(path)
    info = hawser.query_file(file)
    assert info.exists and info.size == 600 and info.mode == os.stat(path).st_mode
    assert info.mtime_ns == os.stat(path).st_mtime_ns
    region = agent.add_file(file, size=4096)
    assert region.size == 4096 and region.name == ""
    if isinstance(file, int):
        os.close(file)  # The region has its own.
    elif hasattr(file, "close"):
        file.close()
    here = agent.self()
    agent.write(here, agent.array[:6], here.range(region.index, 3, 6)).wait(PATIENCE)
    assert path.read_bytes()[:9] == b"bef" + bytes(range(6))


def test_a_read_only_file(agent, tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"text" * 100)
    with open(path, "rb") as file:
        with pytest.raises(hawser.InvalidError):
            agent.add_file(file)
        region = agent.add_file(file, "text", rights="read")
    assert region.rights == "read" and not region.writable
    here = agent.self()
    agent.read(here, here.range("text", 4, 8), agent.array[:8]).wait(PATIENCE)
    assert agent.array[:8].tobytes() == b"texttext"
    with pytest.raises(hawser.DeniedError):
        agent.write(here, agent.array[:8], here.range("text", 0, 8)).wait(PATIENCE)
    assert path.read_bytes() == b"text" * 100


def test_wrong_files(agent, tmp_path):
    path, here = tmp_path / "absent", agent.self()
    assert not hawser.query_file(path).exists and hawser.query_file(path).size == 0
    with pytest.raises(hawser.NotFoundError) as caught:
        agent.add_file(path)
    assert str(path) in str(caught.value)
    file = agent.add_file(tmp_path / "file", "file", create=True)
    for number, call in enumerate([
            lambda: agent.add_file(None), lambda: agent.add_file(True), lambda: agent.add_file(-1),
            lambda: agent.add_file(10**6), lambda: agent.add_file(2**70), lambda: agent.add_file(b"a\0b"),
            lambda: agent.add_file(""), lambda: agent.add_file(tmp_path), lambda: agent.add_file(0.5),
            lambda: agent.add_file(path, rights="all"), lambda: agent.add_file(path, rights="none", create=True),
            lambda: agent.add_file(path, direct="maybe"), lambda: agent.add_file(path, size=2**63, create=True),
            lambda: agent.add_file(path, "file", create=True), lambda: agent.add_file(0, create=True),
            lambda: hawser.query_file(None), lambda: hawser.query_file(10**6), lambda: hawser.query_file(""),
            lambda: memoryview(file), lambda: agent.range_of(bytearray(8)), lambda: agent.read_signal(file.range(0, 8)),
            lambda: agent.plan_write(here, file.range(0, 8), here.range("memory", 0, 8)),
            lambda: agent.write(here, agent.array[:8], here.range("memory", 64, 8), durable=True),
            lambda: hawser.FileInfo()]):
        try:
            call()
        except (hawser.Error, TypeError, BufferError, OverflowError):
            continue
        pytest.fail(f"call {number} was accepted")
    with hawser.Agent("memory only", backends=["loopback"]) as other:
        with pytest.raises(hawser.UnsupportedError):
            other.add_file(tmp_path / "other", create=True)
        other.add_backend("file")
        other.add_file(tmp_path / "other", create=True)


def test_files_under_asyncio(agent, tmp_path):
    agent.add_file(tmp_path / "dropped", "file", create=True)  # Dropped at once, so it is closed.
    region = agent.add_file(tmp_path / "data", "data", create=True)
    here = agent.self()

    async def move():
        plans = [agent.plan_write(here, agent.array[at:at + 4096], here.range("data", at, 4096))
                 for at in range(0, 65536, 4096)]
        await asyncio.gather(*[asyncio.wait_for(finish(plan), PATIENCE) for plan in plans])

    async def finish(plan):
        await plan.submit(durable=True)

    asyncio.run(move())
    assert (tmp_path / "data").read_bytes() == agent.array.tobytes() and region.name == "data"
    with pytest.raises(hawser.NotFoundError):
        here.region("file")


def use_directory(make):
    one, two = make(), make()
    with pytest.raises(hawser.NotFoundError):
        one.get("values/a")
    first = one.put("values/a", b"one\0")
    assert two.get("values/a", PATIENCE).value == b"one\0" and two.get("values/a").version == first
    with pytest.raises(hawser.BusyError):
        two.put("values/a", "x", create_only=True)
    with pytest.raises(hawser.BusyError):
        two.put("values/a", "x", if_version=0)
    second = two.put("values/a", "two", if_version=first)
    assert second > first
    one.put("values/b", bytearray(b"b"), lease=3600, timeout=PATIENCE)
    assert [(entry.key, entry.value) for entry in two.list("values/")] == [("values/a", b"two"), ("values/b", b"b")]
    with two.watch("values/") as watch:
        picture = {}
        while picture != {"values/a": b"two", "values/b": b"b"}:
            apply(picture, watch.wait(PATIENCE))
        assert watch.wait(0.01) is None
        assert one.erase("values/b") and not one.erase("values/b")
        with pytest.raises(hawser.BusyError):
            one.erase("values/a", if_version=first)
        one.put("values/a", "three")
        for event in watch:
            apply(picture, event)
            if picture == {"values/a": b"three"}:
                break
    with pytest.raises(hawser.InvalidError):
        watch.wait(0)
    assert list(watch) == [] and isinstance(one.warnings(), list)
    with hawser.Agent("one", directory=one) as here, hawser.Agent("two", directory=two) as there:
        assert here.find_peer("two", PATIENCE).name == "two" and there.find_peer("one", PATIENCE).name == "one"
    assert one.erase("values/a")
    for call in [lambda: one.put("", "x"), lambda: one.get("x" * 2000), lambda: one.put("k", 5), lambda: one.put("k"),
                 lambda: one.put("k", "v", if_version=-1), lambda: one.put("k", "v", lease=-1), lambda: one.watch(5),
                 lambda: one.put("k", "v", lease=1, tied=True), lambda: one.get("k", timeout="soon"),
                 lambda: one.put("k", b"x" * (2 << 20))]:
        with pytest.raises((hawser.Error, TypeError)):
            call()


def apply(picture, event):
    assert event is not None and event.kind in ("all", "changed", "erased")
    if event.kind == "all":
        picture.clear()
    for entry in event.entries:
        if event.kind == "erased":
            picture.pop(entry.key, None)
        else:
            picture[entry.key] = entry.value


def await_directory(make):
    one, two = make(), make()

    async def follow(watch, picture, wanted):
        async for event in watch:
            apply(picture, event)
            if picture == wanted:
                return

    async def work():
        with pytest.raises(hawser.NotFoundError):
            await one.get_async("awaited/a")
        first = await one.put_async("awaited/a", b"one\0", timeout=PATIENCE)
        entry = await two.get_async("awaited/a", timeout=datetime.timedelta(seconds=PATIENCE))
        assert (entry.value, entry.version) == (b"one\0", first)
        for refused in [{"create_only": True}, {"if_version": 0}]:
            with pytest.raises(hawser.BusyError):
                await two.put_async("awaited/a", "x", **refused)
        assert await two.put_async("awaited/a", "two", if_version=first, lease=3600) > first
        await asyncio.gather(*(one.put_async(f"awaited/b{number}", str(number)) for number in range(20)))
        assert len(await two.list_async("awaited/")) == 21
        picture, wanted = {}, {"awaited/a": b"three"}
        with two.watch("awaited/") as watch:
            follower = asyncio.ensure_future(follow(watch, picture, wanted))
            assert all(await asyncio.gather(*(one.erase_async(f"awaited/b{number}") for number in range(20))))
            assert await one.erase_async("awaited/b0") is False
            with pytest.raises(hawser.BusyError):
                await one.erase_async("awaited/a", if_version=1)
            await one.put_async("awaited/a", "three")
            await asyncio.wait_for(follower, PATIENCE)
            assert await watch.wait_async(0.01) is None
            waiting = asyncio.ensure_future(watch.wait_async())
            await asyncio.sleep(0.05)
            waiting.cancel()  # The watch itself goes on.
            with pytest.raises(asyncio.CancelledError):
                await waiting
            await one.put_async("awaited/a", "four")
            assert (await watch.wait_async(PATIENCE)).entries[0].value == b"four"
            ended = asyncio.ensure_future(follow(watch, {}, None))
            await asyncio.sleep(0.05)
        await asyncio.wait_for(ended, PATIENCE)  # Cancelling the watch ends the iteration.
        assert await one.erase_async("awaited/a")
        for wrong in [lambda: one.put_async("", "x"), lambda: one.get_async("x" * 2000), lambda: one.put_async("k", 5),
                      lambda: one.put_async("k", "v", lease=1, tied=True), lambda: one.get_async("k", timeout="soon")]:
            with pytest.raises((hawser.Error, TypeError, ValueError)):
                await wrong()

    asyncio.run(asyncio.wait_for(work(), PATIENCE))


def test_an_inproc_directory_is_awaited():
    await_directory(lambda: hawser.inproc_directory("awaited"))


def test_a_folder_is_awaited(tmp_path):
    await_directory(lambda: hawser.file_directory(str(tmp_path)))


def test_the_loop_goes_on_while_a_directory_is_away():
    """Nobody answers at that address: the loop turns meanwhile, and a wait that is over or cancelled ends."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        away = hawser.etcd_directory(f"127.0.0.1:{closed.getsockname()[1]}", timeout=PATIENCE)

        async def work():
            turns = 0
            asking = asyncio.ensure_future(away.get_async("a", timeout=0.3))
            while not asking.done():
                turns += 1
                await asyncio.sleep(0.005)
            with pytest.raises(hawser.TimedOutError, match="get"):
                await asking
            cancelled = asyncio.ensure_future(away.put_async("a", "b"))
            await asyncio.sleep(0.02)
            cancelled.cancel()
            with pytest.raises(asyncio.CancelledError):
                await cancelled
            return turns

        assert asyncio.run(asyncio.wait_for(work(), PATIENCE)) > 5


def test_an_inproc_directory():
    use_directory(lambda: hawser.inproc_directory("python"))


def test_a_folder(tmp_path):
    use_directory(lambda: hawser.file_directory(str(tmp_path)))


def test_other_threads_run_while_one_waits(tmp_path):
    directory = hawser.file_directory(str(tmp_path))
    watch, seen = directory.watch("k"), []
    assert watch.wait(PATIENCE).kind == "all"
    thread = threading.Thread(target=lambda: seen.append(watch.wait(PATIENCE)))
    thread.start()
    directory.put("k", "v", timeout=PATIENCE)
    thread.join(PATIENCE)
    assert seen[0].kind == "changed" and seen[0].entries[0].value == b"v"


def test_a_cancelled_watch_ends_who_waits_in_another_thread(tmp_path):
    directory, ended, waits = hawser.file_directory(str(tmp_path)), [], threading.Event()

    def follow(watch):
        for event in watch:
            waits.set()
        ended.append("iterated")

    def wait(watch):
        watch.wait(PATIENCE)
        waits.set()
        ended.append(watch.wait())

    for way in (follow, wait):
        waits.clear()
        watch = directory.watch("k")
        thread = threading.Thread(target=way, args=(watch,), daemon=True)
        thread.start()
        assert waits.wait(PATIENCE)
        watch.cancel()
        thread.join(PATIENCE)
        assert not thread.is_alive()
    assert ended == ["iterated", None]


def test_ctrl_c_ends_a_watch():
    code = """
import hawser, signal, os, threading
watch = hawser.inproc_directory("nothing").watch("x")
watch.wait(60)
try:
    threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    watch.wait(60)
except KeyboardInterrupt:
    raise SystemExit(3)
"""
    assert subprocess.run(python_command(code), timeout=60 * SCALE).returncode == 3


@pytest.fixture(scope="module")
def etcd():
    if with_etcd.program() is None:
        pytest.skip(with_etcd.SKIPPED)
    with with_etcd.Etcd() as server:
        yield server


def test_an_etcd(etcd):
    use_directory(lambda: hawser.etcd_directory(["127.0.0.1:1", etcd.endpoint], prefix="python/", lease=5, timeout=20))
    assert hawser.etcd_directory(etcd.endpoint).kind == "etcd"
    with pytest.raises(hawser.NotFoundError):
        hawser.etcd_directory(etcd.endpoint).get("values/a")  # Another prefix.


def test_an_etcd_is_awaited(etcd):
    await_directory(lambda: hawser.etcd_directory(etcd.endpoint, prefix="awaited/", lease=5, timeout=20))


class Counting:
    """A watch that counts how often it is looked at."""

    def __init__(self, watch):
        self.watch, self.looks = watch, 0

    def _look(self):
        self.looks += 1
        return self.watch._look()

    def __getattr__(self, name):
        return getattr(self.watch, name)


def test_an_etcd_rings(etcd):
    """Who awaits its news sleeps until there are some, and is then woken."""
    directory = hawser.etcd_directory(etcd.endpoint, prefix="rings/", timeout=20)
    other = hawser.etcd_directory(etcd.endpoint, prefix="rings/", timeout=20)

    async def run():
        watch = directory.watch("")
        assert (await watch.wait_async(PATIENCE)).kind == "all"
        counting = Counting(watch)
        assert await hawser._aio._event_of(counting, time.monotonic() + 0.5) is None
        assert counting.looks <= 4, counting.looks
        looks = counting.looks
        waiting = asyncio.ensure_future(hawser._aio._event_of(counting, time.monotonic() + PATIENCE))
        await other.put_async("key", "value")
        assert (await waiting).entries[0].value == b"value" and counting.looks <= looks + 4
        waiting = asyncio.ensure_future(watch.wait_async())
        await asyncio.sleep(0.05)
        watch.cancel()
        assert await asyncio.wait_for(waiting, PATIENCE) is None

    asyncio.run(run())


def test_an_etcd_by_settings(etcd):
    settings = {"directory": f"etcd://{etcd.endpoint}/settings/", "etcd.lease": "5s"}
    with hawser.Agent("here", settings=settings) as here, hawser.Agent("there", settings=settings) as there:
        assert here.find_peer("there", PATIENCE).name == "there" and there.find_peer("here", PATIENCE).name == "here"


def test_tied_values_go_with_their_process(etcd):
    code = f"""
import hawser, os, signal
directory = hawser.etcd_directory("{etcd.endpoint}", lease=2, timeout=20)
directory.put("tied", "mine", tied=True, timeout=60)
os.kill(os.getpid(), signal.SIGKILL)
"""
    assert subprocess.run(python_command(code), timeout=90 * SCALE).returncode == -9
    directory = hawser.etcd_directory(etcd.endpoint, timeout=20)
    with directory.watch("tied") as watch:
        picture = {}
        apply(picture, watch.wait(PATIENCE))
        while picture:
            apply(picture, watch.wait(PATIENCE))
    handle = hawser.etcd_directory(etcd.endpoint, timeout=20)
    handle.put("mine", "here", tied=True)
    del handle  # Says farewell.
    with directory.watch("mine") as watch:
        picture = {"mine": b""}
        while picture:
            apply(picture, watch.wait(PATIENCE))


def test_an_etcd_that_does_not_answer():
    directory = hawser.etcd_directory("127.0.0.1:1", timeout=0.2)
    begun = time.monotonic()
    with pytest.raises(hawser.DisconnectedError) as caught:
        directory.get("k", PATIENCE)
    assert "127.0.0.1:1" in str(caught.value) and time.monotonic() - begun < PATIENCE
    with pytest.raises((hawser.TimedOutError, hawser.DisconnectedError)):
        directory.get("k", 0)
    for options in [{"endpoints": []}, {"endpoints": "one,,two"}, {"endpoints": 5}, {"lease": 0.5}, {"timeout": 1e-3},
                    {"ca": "/no/such/file"}, {"password": "without a user"}, {"prefix": "x" * 600}, {"lease": "long"}]:
        with pytest.raises((hawser.Error, TypeError)):
            hawser.etcd_directory(**options)
