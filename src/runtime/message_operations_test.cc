#include "runtime/message_operations.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace hawser::runtime {
namespace {

TEST(MessageOperations, OnePlaceNeedsNoPieces) {
  const std::array<std::byte, 5> bytes = {};
  const std::shared_ptr<Send> send = make_send(std::span(bytes));
  EXPECT_EQ(send->data, bytes.data());
  EXPECT_EQ(send->envelope.bytes, 5U);
  const std::vector<std::span<const std::byte>> parts = {{}, std::span(bytes), {}};
  const Result<std::shared_ptr<Send>> in_parts = make_send(std::span(parts));
  ASSERT_TRUE(in_parts.has_value());
  EXPECT_EQ((*in_parts)->pieces, nullptr) << "empty parts do not count";
  EXPECT_EQ((*in_parts)->data, bytes.data());
}

TEST(MessageOperations, SeveralPlacesAreKept) {
  std::array<std::byte, 5> first = {}, second = {};
  const std::vector<std::span<std::byte>> parts = {std::span(first), std::span(second).first(2)};
  const Result<std::shared_ptr<Receive>> receive = make_receive(std::span(parts));
  ASSERT_TRUE(receive.has_value());
  EXPECT_EQ((*receive)->capacity, 7U);
  EXPECT_EQ((*receive)->run(5).data(), second.data());
  EXPECT_TRUE((*receive)->has_buffer);
}

TEST(MessageOperations, WithoutABufferOneIsMadeLater) {
  EXPECT_FALSE(make_receive(std::nullopt)->has_buffer);
  std::array<std::byte, 3> into = {};
  const std::shared_ptr<Receive> receive = make_receive(std::span<std::byte>(into));
  EXPECT_TRUE(receive->has_buffer);
  EXPECT_EQ(receive->capacity, 3U);
}

TEST(MessageOperations, TheNumberOfPartsHasALimit) {
  const std::vector<std::span<const std::byte>> parts(kPiecesMax + 1);
  EXPECT_TRUE(make_send(std::span(parts).first(kPiecesMax)).has_value());
  const Result<std::shared_ptr<Send>> send = make_send(std::span(parts));
  ASSERT_FALSE(send.has_value());
  EXPECT_EQ(send.error().code(), Code::kInvalid);
  EXPECT_NE(send.error().to_string().find("65537 parts"), std::string::npos) << send.error().to_string();
}

}  // namespace
}  // namespace hawser::runtime
