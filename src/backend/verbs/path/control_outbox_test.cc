#include "backend/verbs/path/control_outbox.h"

#include <gtest/gtest.h>

#include <vector>

namespace hawser::backend::verbs {
namespace {

/// A control stream with room for so many messages.
class NarrowPath final : public Path {
 public:
  PathState state() const override { return PathState::kUp; }
  Result<Binding*> bind(const RemoteRegionRef&) override { return Status(Code::kUnsupported, "no regions"); }
  void unbind(std::uint32_t, std::uint32_t) override {}
  Submitted submit(std::span<const Chunk>, Instant) override { return {}; }
  bool send(wire::Link, std::span<const std::byte> head, std::span<const std::byte>) override {
    if (room == 0) return false;
    --room;
    sent.emplace_back(reinterpret_cast<const char*>(head.data()), head.size());
    return true;
  }
  void cancel(std::uint64_t) override {}
  PathCounters counters() const override { return {}; }
  std::string describe() const override { return "narrow"; }

  int room = 0;
  std::vector<std::string> sent;
};

TEST(ControlOutbox, SendsInOrderWhatThereIsRoomFor) {
  ControlOutbox outbox;
  NarrowPath control;
  for (const char* text : {"one", "two", "three"}) EXPECT_TRUE(outbox.add(text));
  outbox.send_to(control);
  EXPECT_TRUE(control.sent.empty());
  control.room = 2;
  outbox.send_to(control);
  EXPECT_EQ(control.sent, (std::vector<std::string>{"one", "two"}));
  EXPECT_FALSE(outbox.empty());
  control.room = 2;
  outbox.send_to(control);
  EXPECT_EQ(control.sent.back(), "three");
  EXPECT_TRUE(outbox.empty());
}

TEST(ControlOutbox, IsBounded) {
  ControlOutbox outbox;
  for (std::size_t i = 0; i < ControlOutbox::kMessagesMax; ++i) {
    EXPECT_FALSE(outbox.is_full());
    EXPECT_TRUE(outbox.add("x"));
  }
  EXPECT_TRUE(outbox.is_full());
  EXPECT_FALSE(outbox.add("one too many"));
  NarrowPath control;
  control.room = 1;
  outbox.send_to(control);
  EXPECT_TRUE(outbox.add("y"));
  outbox.clear();
  EXPECT_TRUE(outbox.empty());
}

}  // namespace
}  // namespace hawser::backend::verbs
