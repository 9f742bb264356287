// What paths and ports tell of their queue pairs and devices, on the mock fabric.

#include <gtest/gtest.h>

#include "backend/verbs/port_test_pair.h"

namespace hawser::backend::verbs {
namespace {

TEST_F(VerbsPair, QueuePairsAndDevicesTellTheirNumbersAndCounts) {
  start();
  connect();
  const Piece pieces[] = {{a->memory.data(), 0, 4096}, {a->memory.data() + 8192, 16384, 4096}};
  const Piece in[] = {{a->memory.data() + 65536, 0, 1000}};
  ASSERT_EQ(submit(Operation::kWrite, pieces, 1).taken, 1u);
  ASSERT_EQ(submit(Operation::kRead, in, 2).taken, 1u);
  ASSERT_TRUE(say(to_b, "hello"));
  ASSERT_TRUE(run([&] { return is_done(1) && is_done(2) && !b->messages.empty(); }));
  run([] { return false; }, 50);
  const std::vector<std::uint32_t> numbers = fabric.qp_numbers();
  ASSERT_EQ(numbers.size(), 2u);
  const QueuePairCounters ours = to_b->counters().queue_pairs.at(0), theirs = b->up->counters().queue_pairs.at(0);
  EXPECT_TRUE(std::ranges::find(numbers, ours.number) != numbers.end());
  EXPECT_EQ(ours.peer_number, theirs.number);
  EXPECT_EQ(theirs.peer_number, ours.number);
  EXPECT_EQ(ours.state, "ready");
  EXPECT_EQ(ours.epoch, 1u);
  EXPECT_EQ(ours.device, "mock0");
  EXPECT_EQ(ours.port, 1u);
  EXPECT_EQ(ours.gid, "10.0.0.1");
  EXPECT_EQ(ours.peer_gid, "10.0.0.2");
  EXPECT_EQ(ours.mtu_bytes, 4096u);
  EXPECT_EQ(ours.flow.bytes_out, 8192u);
  EXPECT_EQ(ours.flow.bytes_in, 1000u);
  EXPECT_EQ(ours.flow.operations, 3u) << "two runs of remote bytes, and one";
  EXPECT_EQ(ours.flow.messages_out, 1u);
  EXPECT_EQ(theirs.flow.messages_in, 1u);
  EXPECT_EQ(ours.flow.errors + ours.flow.reconnects + ours.flow.receiver_not_ready, 0u);

  fabric.break_qp(ours.number);
  const Piece again[] = {{a->memory.data(), 0, 4096}};
  ASSERT_TRUE(run_slow([&] { return submit(Operation::kWrite, again, 3).taken == 1; }));
  ASSERT_TRUE(run_slow([&] { return is_done(3); }));
  EXPECT_EQ(to_b->counters().queue_pairs.at(0).flow.reconnects, 1u);
  fabric.raise("mock0", IBV_EVENT_LID_CHANGE);
  ASSERT_TRUE(run_slow([&] { return a->port->devices().at(0).faults == 1; }));
  ASSERT_TRUE(run_slow([&] { return to_b->counters().queue_pairs.at(0).flow.reconnects == 2; }));
  a->port->release_path(to_b);
  const DeviceCounters device = a->port->devices().at(0);
  EXPECT_EQ(device.device, "mock0");
  EXPECT_EQ(device.queue_pairs_gauge, 0u);
  EXPECT_EQ(device.flow.bytes_out, 8192u + 4096u) << "kept when the path is gone";
  EXPECT_EQ(device.flow.reconnects, 2u);
}

TEST_F(VerbsPair, AReceiverThatIsNotReadyIsCounted) {
  options.pair.messages = 0;
  start();
  connect();
  fabric.fail_next_with(IBV_WC_RNR_RETRY_EXC_ERR);
  const Piece piece[] = {{a->memory.data(), 0, 4096}};
  ASSERT_EQ(submit(Operation::kWrite, piece, 1).taken, 1u);
  ASSERT_TRUE(run_slow([&] { return is_done(1); }));
  EXPECT_TRUE(outcome(1).ok()) << outcome(1).to_string();
  const QueuePairFlow flow = to_b->counters().queue_pairs.at(0).flow;
  EXPECT_EQ(flow.receiver_not_ready, 1u);
  EXPECT_EQ(flow.errors, 1u);
  EXPECT_EQ(flow.reconnects, 1u);
}

TEST_F(VerbsPair, WhoPostsByHimselfIsToldWhatThisPathWouldPost) {
  fabric.tells_queues = true;
  start();
  connect();
  const Piece piece{a->memory.data() + 100, 4096, 1000};
  auto view = to_b->queue_pairs()->queue_pair(*binding, piece);
  ASSERT_TRUE(view.has_value()) << view.error().to_string();
  EXPECT_EQ(view->state.number, to_b->counters().queue_pairs.at(0).number);
  EXPECT_EQ(fabric.memory.registered().at(view->local_key)->addr, a->memory.data());
  EXPECT_EQ(view->local_address, reinterpret_cast<std::uintptr_t>(a->memory.data() + 100));
  EXPECT_EQ(fabric.memory.registered().at(view->remote_key)->addr, b->memory.data());
  EXPECT_EQ(view->remote_address, reinterpret_cast<std::uintptr_t>(b->memory.data() + 4096));
  EXPECT_NE(view->send_queue, nullptr);
  EXPECT_EQ(view->send_queue_stride, 64u);
  EXPECT_NE(view->doorbell, nullptr);

  fabric.tells_queues = false;
  view = to_b->queue_pairs()->queue_pair(*binding, {nullptr, 0, 0});
  ASSERT_TRUE(view.has_value());
  EXPECT_EQ(view->local_key, 0u);
  EXPECT_EQ(view->send_queue, nullptr);
  std::vector<std::byte> other(4096);
  EXPECT_EQ(to_b->queue_pairs()->queue_pair(*binding, {other.data(), 0, 4096}).error().code(), Code::kUnsupported);
  fabric.break_qp(view->state.number);
  const Piece touching[] = {piece};
  ASSERT_EQ(submit(Operation::kWrite, touching, 1).taken, 1u) << "one that is idle is not seen to be broken";
  ASSERT_TRUE(run([&] {
    const auto now_there = to_b->queue_pairs()->queue_pair(*binding, {nullptr, 0, 0});
    return !now_there && now_there.error().code() == Code::kNotFound;
  }));
}

}  // namespace
}  // namespace hawser::backend::verbs
