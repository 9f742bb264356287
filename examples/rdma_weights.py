"""A trainer lends its weights, generators in processes of their own fetch them and report back. No framework: handles are
pickled through a queue, as they would be through the calls of Monarch's or Ray's actors.

    python examples/rdma_weights.py
"""

import asyncio
import multiprocessing

from hawser.rdma import RDMAAction, RDMABuffer, notifications

LAYERS, BYTES, GENERATORS = 4, 1 << 20, 2


def generator(number, handles, counter, gate):
    """Reads all layers in one action, and counts itself in."""
    layers = [bytearray(BYTES) for _ in handles]
    fetch = RDMAAction()
    for layer, handle in zip(layers, handles):
        fetch.read_remote(layer, handle)

    async def work():
        await fetch.submit(timeout=30)
        before = await counter.fetch_add(1)
        mark = bytes([number + 1])
        await handles[0][number:number + 1].write_from(mark, notify=b"generator %d, after %d others" % (number, before))

    asyncio.run(work())
    assert all(set(layer) == {step + 1} or step == 0 for step, layer in enumerate(layers))
    gate.wait()  # What was told last is on its way until the owner has it.


async def trainer():
    weights = [bytearray([step + 1]) * BYTES for step in range(LAYERS)]
    handles, counter = [RDMABuffer(layer) for layer in weights], RDMABuffer(bytearray(8))
    context = multiprocessing.get_context("spawn")
    gate = context.Event()
    processes = [context.Process(target=generator, args=(number, handles, counter, gate)) for number in range(GENERATORS)]
    for process in processes:
        process.start()
    told = 0
    async for note in notifications():
        print(note.data.decode())
        told += 1
        if told == GENERATORS:
            break
    gate.set()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert weights[0][:GENERATORS] == bytes(range(1, GENERATORS + 1))
    for handle in (*handles, counter):
        await handle.drop()
    print("weights were fetched by", GENERATORS, "generators from", handles[0].owner.split("/")[0].split("-")[0])


if __name__ == "__main__":
    asyncio.run(trainer())
