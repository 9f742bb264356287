"""The looks of an event loop at what its tasks await (hawser/_lookout.py), on requests that are none of a world."""

import asyncio
import time

import pytest

from hawser import _lookout


class Request:
    def __init__(self, over=False, error=None):
        self.over, self.error, self.looks = over, error, 0

    def _look(self):
        self.looks += 1
        if self.error is not None:
            raise self.error
        return self.over


def test_what_is_over_is_not_waited_for():
    async def main():
        await _lookout.finished(Request(over=True))

    asyncio.run(main())


def test_each_ends_by_itself():
    async def main():
        requests = [Request() for _ in range(100)]
        waits = [asyncio.create_task(_lookout.finished(each)) for each in requests]
        for request, wait in zip(requests, waits):
            assert not wait.done()
            request.over = True
            await asyncio.wait_for(wait, 20)
        assert all(wait.done() for wait in waits)

    asyncio.run(main())


def test_an_error_is_that_of_its_own_wait():
    async def main():
        bad, good = Request(), Request()
        waits = [asyncio.create_task(_lookout.finished(each)) for each in (bad, good)]
        await asyncio.sleep(0.01)
        bad.error = ValueError("odd")
        with pytest.raises(ValueError, match="odd"):
            await asyncio.wait_for(waits[0], 20)
        assert not waits[1].done()
        good.over = True
        await asyncio.wait_for(waits[1], 20)

    asyncio.run(main())


def test_a_cancelled_wait_is_not_looked_at():
    async def main():
        given_up, kept = Request(), Request()
        wait = asyncio.create_task(_lookout.finished(given_up))
        other = asyncio.create_task(_lookout.finished(kept))
        await asyncio.sleep(0.01)
        wait.cancel()
        await asyncio.sleep(0.01)
        looks, kept_looks = given_up.looks, kept.looks
        while kept.looks < kept_looks + 3:
            await asyncio.sleep(0.001)
        assert given_up.looks <= looks + 1
        kept.over = True
        await asyncio.wait_for(other, 20)

    asyncio.run(main())


def test_idle_waits_take_little_of_the_loop():
    class Slow(Request):
        def _look(self):
            time.sleep(1e-4)
            return super()._look()

    async def main():
        requests = [Slow() for _ in range(20)]
        waits = [asyncio.create_task(_lookout.finished(each)) for each in requests]
        await asyncio.sleep(0.1)
        before = requests[0].looks
        await asyncio.sleep(1)
        assert 1 <= requests[0].looks - before <= 100  # A look at all takes 2 ms, a tenth of the time is for looks.
        for each in requests:
            each.over = True
        await asyncio.wait_for(asyncio.gather(*waits), 20)

    asyncio.run(main())


def test_loops_of_their_own():
    async def main():
        request = Request()
        wait = asyncio.create_task(_lookout.finished(request))
        await asyncio.sleep(0.01)
        request.over = True
        await asyncio.wait_for(wait, 20)

    for _ in range(3):
        asyncio.run(main())
    assert len(_lookout._lookouts) <= 3
