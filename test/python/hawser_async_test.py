"""The package hawser under asyncio."""

import asyncio
import gc
import os
import threading
import weakref

import pytest

import hawser

PATIENCE = 30


@pytest.fixture(params=[True, False], ids=["driven", "polled"])
def agents(request):
    with hawser.Agent("one", driver=request.param) as one, hawser.Agent("two") as two:
        one.array, two.array = one.empty(65536, name="memory"), two.empty(65536, name="memory")
        one.peer = one.add_peer(two.card())
        two.add_peer(one.card())
        yield one, two
        del one.peer, one.array, two.array


def run(coroutine):
    async def bounded():
        return await asyncio.wait_for(coroutine, PATIENCE)

    return asyncio.run(bounded())


def write(agent, at, **options):
    return agent.write(agent.peer, agent.array[at:at + 16], agent.peer.range("memory", at, 16), **options)


def test_atomics_are_awaited(agents):
    one, _ = agents

    async def work():
        word = one.peer.range("memory", 8, 8)
        await one.fetch_add(word, 0)
        found = await asyncio.gather(*(one.fetch_add(word, 3) for _ in range(100)))
        assert sorted(found) == list(range(0, 300, 3))
        assert await one.compare_swap(word, 300, 1) == 300

    run(work())


def test_transfers_are_awaited(agents):
    one, two = agents

    async def work():
        await write(one, 0)  # The first one links the loop, the others report to it.
        await asyncio.gather(*(write(one, 16 * number) for number in range(200)))
        done = write(one, 0)
        await asyncio.sleep(0.01)
        await done
        await done

    one.array[:] = 5
    run(work())
    assert (two.array[:3200] == 5).all()
    run(work())  # Another loop.


def test_failures_time_outs_and_cancellation(agents):
    one, _ = agents
    word = one.range_of(one.array).region.range(64, 8)

    async def work():
        with pytest.raises(hawser.TimedOutError):
            await write(one, 0, after=(word, 1), deadline=0.02)
        held = write(one, 0, after=(word, 1))
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(held, 0.02)
        with pytest.raises(hawser.CancelledError):
            await held
        assert held.status == "cancelled"

    run(work())


def test_notifications_and_messages_are_iterated(agents):
    one, two = agents
    two.open_channel(20)

    async def listen():
        got = []
        async for note in two.notifications():
            got.append(note.data)
            if len(got) == 20:
                return got

    async def hear():
        async for message in two.messages(20):
            return message.data

    async def work():
        listener = asyncio.ensure_future(listen())
        hearer = asyncio.ensure_future(hear())
        for number in range(20):
            await write(one, 0, notify=b"%d" % number)
        await one.peer.send_async(20, b"hello")
        assert await hearer == b"hello"
        assert sorted(await listener, key=int) == [b"%d" % number for number in range(20)]

    run(work())


def test_iteration_ends_when_the_agent_is_closed(agents):
    _, two = agents

    async def work():
        async def listen():
            return [event async for event in two.events()], [note async for note in two.notifications()]

        listener = asyncio.ensure_future(listen())
        await asyncio.sleep(0.01)
        await asyncio.to_thread(two.close)
        return await listener

    assert run(work())[1] == []


def test_loops_of_several_threads_at_once(agents):
    """Whoever waits hears, whichever loop came last."""
    one, two = agents
    word = one.range_of(one.array).region.range(64, 8)
    waits, went_by = threading.Event(), threading.Event()
    heard = []

    async def wait():
        async def listen():
            async for note in one.notifications():
                return note.data

        listener = asyncio.ensure_future(listen())
        await write(one, 0)
        held = write(one, 0, after=(word, 1))
        waiting = asyncio.ensure_future(finish(held))
        await asyncio.sleep(0)
        assert not held.done
        waits.set()
        assert await asyncio.to_thread(went_by.wait, PATIENCE)
        await waiting
        two.peer.notify(b"hello")
        heard.append(await listener)
        await asyncio.gather(*(write(one, 16 * number) for number in range(50)))

    async def finish(transfer):
        await transfer

    async def go_by():
        await write(one, 128)
        await asyncio.gather(*(write(one, 128) for _ in range(50)))
        one.array[64] = 1

    two.peer = two.add_peer(one.card())
    thread = threading.Thread(target=lambda: run(wait()))
    thread.start()
    assert waits.wait(PATIENCE)
    run(go_by())
    went_by.set()
    thread.join()
    assert heard == [b"hello"]
    del two.peer


def test_loops_that_are_over_leave_nothing(agents):
    one, _ = agents
    word = one.range_of(one.array).region.range(64, 8)

    async def work():
        with pytest.raises(hawser.TimedOutError):
            await write(one, 0, after=(word, 1), deadline=0.001)

    run(work())
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        run(work())
    assert len(os.listdir("/proc/self/fd")) < before + 5, "each asyncio.run left a queue"


def test_a_wait_ends_when_the_agent_is_closed(agents):
    one, _ = agents
    word = one.range_of(one.array).region.range(64, 8)

    async def work():
        await write(one, 0)
        held = write(one, 0, after=(word, 1))
        closing = asyncio.ensure_future(asyncio.to_thread(one.close))
        with pytest.raises(hawser.Error):
            await held
        await closing

    run(work())


def test_agents_go_though_a_loop_knew_them():
    async def work():
        agent = hawser.Agent("brief")
        array = agent.empty(4096, name="memory")
        await agent.write(agent.self(), array[:8], agent.self().range("memory", 8, 8))
        gone = weakref.ref(agent)
        del agent, array
        gc.collect()
        return gone

    assert run(work())() is None
