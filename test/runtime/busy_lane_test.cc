// Operations that begin while another thread does something in the rank's lane: the caller does not wait for it.

#include <gtest/gtest.h>

#include <hawser/world.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <future>
#include <optional>
#include <utility>
#include <vector>

#include "local_worlds.h"
#include "with_quic.h"

namespace hawser {
namespace {

using namespace std::chrono_literals;

class BusyLane : public LocalWorlds, public testing::WithParamInterface<const char*> {
 protected:
  void SetUp() override {
    open(2, GetParam());
    HandlerOptions in_turn;
    in_turn.runs_inline = true;
    const Status status = worlds_[0].register_handler(
        "hold",
        [this](const IncomingCall&) -> Result<CallAnswer> {
          held_.set_value();
          was_let_go_ = done_.get_future().wait_for(10s) == std::future_status::ready;
          return CallAnswer();
        },
        in_turn);
    ASSERT_TRUE(status.ok()) << status.to_string();
  }
  /// What this thread does while rank 0's driver stands in its turn.
  template <typename Todo>
  void while_held(Todo todo) {
    Request call = worlds_[1].icall(0, "hold", {});
    ASSERT_EQ(held_.get_future().wait_for(20s), std::future_status::ready) << "the handler does not run";
    todo();
    done_.set_value();
    expect_ok(call);
    EXPECT_TRUE(was_let_go_) << "a call of rank 0 waited until its driver was done";
  }
  static void expect_ok(Request& request) {
    const Status status = request.wait(20s);
    EXPECT_TRUE(status.ok()) << status.to_string();
  }

  std::promise<void> held_, done_;
  std::atomic<bool> was_let_go_{false};
};

TEST_P(BusyLane, MessagesBeginWithoutAWait) {
  std::array<std::uint64_t, 3> sent = {1, 2, 3}, got = {};
  std::uint64_t answer = 7, answered = 0;
  std::vector<Request> requests;
  for (std::uint64_t& each : got)
    requests.push_back(worlds_[1].ireceive(std::as_writable_bytes(std::span(&each, 1)), 0, 5));
  while_held([&] {
    for (const std::uint64_t& each : sent)
      requests.push_back(worlds_[0].isend(std::as_bytes(std::span(&each, 1)), 1, 5));
    requests.push_back(worlds_[0].ireceive(std::as_writable_bytes(std::span(&answered, 1)), 1, 6));
  });
  requests.push_back(worlds_[1].isend(std::as_bytes(std::span(&answer, 1)), 0, 6));
  for (Request& each : requests) expect_ok(each);
  EXPECT_EQ(got, sent) << "they overtook one another";
  EXPECT_EQ(answered, answer);
}

TEST_P(BusyLane, MessagesThatBeginLaterOvertakeNone) {
  std::array<std::uint64_t, 2> sent = {1, 2}, got = {};
  std::vector<Request> requests;
  while_held([&] { requests.push_back(worlds_[0].isend(std::as_bytes(std::span(&sent[0], 1)), 1, 5)); });
  requests.push_back(worlds_[0].isend(std::as_bytes(std::span(&sent[1], 1)), 1, 5));
  for (std::uint64_t& each : got)
    requests.push_back(worlds_[1].ireceive(std::as_writable_bytes(std::span(&each, 1)), 0, 5));
  for (Request& each : requests) expect_ok(each);
  EXPECT_EQ(got, sent);
}

TEST_P(BusyLane, CollectivesAndCallsBeginWithoutAWait) {
  ASSERT_TRUE(worlds_[1]
                  .register_handler("twice",
                                    [](const IncomingCall& call) -> Result<CallAnswer> {
                                      CallAnswer answer(call.arguments.begin(), call.arguments.end());
                                      answer.insert(answer.end(), call.arguments.begin(), call.arguments.end());
                                      return answer;
                                    })
                  .ok());
  meet(worlds_);  // The first collective of a world registers memory for its board.
  const std::array<std::uint64_t, 1> argument = {9};
  std::array<std::int64_t, 2> in = {3, 4}, out = {};
  std::optional<Request> call;
  std::vector<Request> requests;
  while_held([&] {
    requests.push_back(worlds_[0].iall_reduce(&in[0], &out[0], 1, DataType::kInt64, ReduceOp::kSum));
    requests.push_back(worlds_[0].ibarrier());
    call = worlds_[0].icall(1, "twice", std::as_bytes(std::span(argument)));
  });
  requests.push_back(worlds_[1].iall_reduce(&in[1], &out[1], 1, DataType::kInt64, ReduceOp::kSum));
  requests.push_back(worlds_[1].ibarrier());
  for (Request& each : requests) expect_ok(each);
  expect_ok(*call);
  EXPECT_EQ(call->bytes().size(), 2 * sizeof(argument));
  EXPECT_EQ(out, (std::array<std::int64_t, 2>{7, 7}));
}

TEST_P(BusyLane, AgreementsBeginWithoutAWait) {
  std::optional<Request> agreement;
  while_held([&] { agreement = worlds_[0].iagree(true); });
  Request other = worlds_[1].iagree(false);
  expect_ok(*agreement);
  expect_ok(other);
  const Result<bool> agreed = worlds_[0].agreed(*agreement);
  ASSERT_TRUE(agreed.has_value()) << agreed.error().to_string();
  EXPECT_FALSE(*agreed);
}

TEST_P(BusyLane, AShrinkBeginsWithoutAWait) {
  std::optional<Request> shrink;
  while_held([&] { shrink = worlds_[0].ishrink(); });
  Request other = worlds_[1].ishrink();
  expect_ok(*shrink);
  expect_ok(other);
  EXPECT_EQ(worlds_[0].shrunk(*shrink).value().size(), 2U);
  EXPECT_EQ(worlds_[1].shrunk(other).value().size(), 2U);
}

TEST_P(BusyLane, WhatIsDroppedBeforeItBeganIsCancelled) {
  std::uint64_t first = 0, second = 0;
  const std::uint64_t sent = 4;
  std::optional<Request> dropped;
  while_held([&] { dropped = worlds_[0].ireceive(std::as_writable_bytes(std::span(&first, 1)), 1, 5); });
  dropped.reset();
  Request kept = worlds_[0].ireceive(std::as_writable_bytes(std::span(&second, 1)), 1, 5);
  ASSERT_TRUE(worlds_[1].send(std::as_bytes(std::span(&sent, 1)), 0, 5).ok());
  expect_ok(kept);
  EXPECT_EQ(first, 0U);
  EXPECT_EQ(second, sent);
}

TEST_P(BusyLane, AWorldThatClosesEndsWhatWasLeft) {
  std::uint64_t place = 0;
  std::optional<Request> request;
  while_held([&] { request = worlds_[0].ireceive(std::as_writable_bytes(std::span(&place, 1)), 1, 5); });
  worlds_.clear();
  EXPECT_FALSE(request->wait(20s).ok());
  EXPECT_TRUE(request->done());
}

INSTANTIATE_TEST_SUITE_P(Over, BusyLane, testing::ValuesIn(with_quic<const char*>({"shm", "tcp"}, "quic")),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace hawser
