// The ring and the pin under every interleaving of two threads with store buffers.

#include <gtest/gtest.h>

#include <memory>

#include "backend/shm/interleave.h"
#include "backend/shm/pin.h"
#include "backend/shm/ring.h"

namespace hawser::backend::shm {
namespace {

using interleave::Explorer;
using interleave::Replay;

constexpr std::size_t kConsumerBell = 0;
constexpr std::size_t kProducerBell = 1;

/// Shared memory of a ring, numbered for the explorer.
template <typename M>
struct Model {
  explicit Model(std::size_t count) : storage(count) {
    for (auto& line : storage) {
      for (auto& word : line.words) word.cell = cells++;
    }
    for (RingSide<M>* side : {&producer_side, &consumer_side}) {
      for (auto* word : {&side->pin, &side->tail, &side->asleep, &side->room_wanted}) word->cell = cells++;
    }
  }
  RingLines<M> lines() { return {storage.data(), storage.size()}; }

  std::size_t cells = 0;
  std::vector<RingLine<M>> storage;
  RingSide<M> producer_side;
  RingSide<M> consumer_side;
};

/// Message `number`: one word, or two lines where it is to be long.
std::vector<std::byte> message(std::size_t number, bool is_long) {
  std::vector<std::byte> bytes(is_long ? kLinePayload + 8 : 8);
  for (std::size_t i = 0; i < bytes.size(); i += 8) bytes[i] = static_cast<std::byte>(number * 16 + i / 8 + 1);
  return bytes;
}

template <typename M>
void produce(Model<M>& model, const std::vector<bool>& longs) {
  RingProducer<M> producer(model.lines(), &model.producer_side, &model.consumer_side);
  for (std::size_t number = 0; number < longs.size(); ++number) {
    const auto bytes = message(number, longs[number]);
    for (;;) {
      Replay::phase(number * 64 + producer.used_lines());
      const Put put = producer.put(RecordKind::kMessage, bytes, {});
      if (put == Put::kCorrupt) Replay::fail("the producer saw a wrong tail");
      if (put == Put::kDone) break;
      if (producer.await_room(static_cast<std::uint32_t>(bytes.size()))) interleave::wait_bell(kProducerBell);
    }
    if (producer.must_ring()) interleave::ring_bell(kConsumerBell);
  }
}

template <typename M>
void consume(Model<M>& model, const std::vector<bool>& longs, std::size_t batch) {
  RingConsumer<M> consumer(model.lines(), &model.consumer_side, &model.producer_side);
  const auto give_back = [&] {
    if (consumer.give_back()) interleave::ring_bell(kProducerBell);
  };
  for (std::size_t number = 0; number < longs.size();) {
    Replay::phase(number);
    Record record;
    const Got got = consumer.next(&record);
    if (got == Got::kCorrupt) Replay::fail("the consumer saw a wrong header");
    if (got == Got::kRecord) {
      const auto expected = message(number, longs[number]);
      std::vector<std::byte> bytes(expected.size());
      if (record.size != expected.size()) return Replay::fail("a message has a wrong size");
      consumer.take(record, bytes.data());
      if (bytes != expected) return Replay::fail("a message is torn, lost or out of order");
      if (++number % batch == 0) give_back();
    } else if (consumer.holds_taken()) {
      give_back();
    } else if (consumer.arm()) {
      interleave::wait_bell(kConsumerBell);
    }
  }
}

template <typename M>
Explorer explorer(Model<M>& model, const std::vector<bool>& longs, std::size_t batch = 1) {
  return Explorer(
      std::vector<std::uint64_t>(model.cells), 2,
      {[&model, longs] { produce(model, longs); }, [&model, longs, batch] { consume(model, longs, batch); }});
}

TEST(RingModel, WrapsWithoutLossOrLostWake) {
  Model<interleave::Machine> model(4);
  auto runs = explorer(model, {false, false, false, false, false});
  EXPECT_EQ(runs.run(), "");
  EXPECT_GT(runs.states(), 1000u);
}

// What was taken is given back later, for several records at once.
TEST(RingModel, WrapsWhereRecordsAreGivenBackTogether) {
  Model<interleave::Machine> model(4);
  EXPECT_EQ(explorer(model, {false, false, false, false, false}, 2).run(), "");
  Model<interleave::Machine> larger(8);
  EXPECT_EQ(explorer(larger, {false, true, false, true, true, true}, 3).run(), "");
}

TEST(RingModel, RecordsOfTwoLinesWrap) {
  Model<interleave::Machine> model(8);
  auto runs = explorer(model, {false, true, false, true, true, true});
  EXPECT_EQ(runs.run(), "");
}

TEST(RingModel, RunsWrap) {
  Model<interleave::RunMachine> model(8);
  auto runs = explorer(model, {false, true, false, true, true, true});
  EXPECT_EQ(runs.run(), "");
}

TEST(RingModel, StreamedRunsWrap) {
  Model<interleave::StreamMachine> model(8);
  auto runs = explorer(model, {false, true, false, true, true, true});
  EXPECT_EQ(runs.run(), "");
}

TEST(RingModel, FindsTheMissingFenceBehindAStreamedRun) {
  Model<interleave::UnfencedStreamMachine> model(8);
  auto runs = explorer(model, {true});
  EXPECT_EQ(runs.run(), "a message is torn, lost or out of order");
}

TEST(RingModel, FindsTheMissingFence) {
  Model<interleave::UnfencedMachine> model(4);
  auto runs = explorer(model, {false, false});
  EXPECT_EQ(runs.run(), "all threads wait for each other");
}

// A producer that dies is one that is never run again: it must leave no record that is not whole.
template <typename M>
std::string run_dead_producer() {
  Model<M> model(8);
  const std::vector<bool> longs = {true, false, true};
  const auto look = [&] {
    RingConsumer<M> consumer(model.lines(), &model.consumer_side, &model.producer_side);
    for (std::size_t number = 0; number < longs.size(); ++number) {
      Record record;
      const Got got = consumer.next(&record);
      if (got == Got::kNone) return;
      const auto expected = message(number, longs[number]);
      std::vector<std::byte> bytes(expected.size());
      if (got == Got::kCorrupt || record.size != expected.size()) return Replay::fail("a torn header");
      consumer.take(record, bytes.data());
      if (bytes != expected) return Replay::fail("a torn record");
    }
  };
  return Explorer(std::vector<std::uint64_t>(model.cells), 2, {[&] { produce(model, longs); }, look}).run();
}

TEST(RingModel, DeadProducerLeavesWholeRecordsOnly) {
  EXPECT_EQ(run_dead_producer<interleave::Machine>(), "");
  EXPECT_EQ(run_dead_producer<interleave::RunMachine>(), "");
  EXPECT_EQ(run_dead_producer<interleave::StreamMachine>(), "");
}

/// An initiator that writes under its pin, an owner that closes and then uses the memory itself.
template <typename M>
std::string run_pin(PinFence fence, bool membarrier) {
  struct Cells {
    typename M::Word pin, memory;
    typename M::GateWord gate;
  } cells;
  cells.pin.cell = 0;
  cells.memory.cell = 1;
  cells.gate.cell = 2;
  const auto initiate = [&] {
    for (int i = 0; i < 2; ++i) {
      if (!enter_pin<M>(cells.pin, cells.gate, 3, 7, fence)) return;
      cells.memory.store(1, std::memory_order_relaxed);
      leave_pin<M>(cells.pin);
    }
  };
  const auto close = [&] {
    cells.gate.store(0, std::memory_order_relaxed);
    if (membarrier) {
      interleave::membarrier();
    } else {
      M::fence();
    }
    if (is_inside<M>(cells.pin, 3, 7)) return;  // asked again later
    cells.memory.store(9, std::memory_order_relaxed);
    M::fence();
    if (cells.memory.load(std::memory_order_relaxed) != 9) Replay::fail("written after close");
  };
  return Explorer({0, 0, 7}, 0, {initiate, close}).run();
}

TEST(PinModel, NothingIsWrittenAfterClose) {
  EXPECT_EQ(run_pin<interleave::Machine>(PinFence::kFull, false), "");
  EXPECT_EQ(run_pin<interleave::Machine>(PinFence::kLight, true), "");
  EXPECT_EQ(run_pin<interleave::Machine>(PinFence::kFull, true), "");
}

TEST(PinModel, FindsTheMissingBarrier) {
  EXPECT_EQ(run_pin<interleave::Machine>(PinFence::kLight, false), "written after close");
}

}  // namespace
}  // namespace hawser::backend::shm
