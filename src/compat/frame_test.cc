#include "compat/frame.h"

#include <gtest/gtest.h>

namespace hawser::compat {
namespace {

TEST(ExchangeFrame, GoesThereAndBack) {
  const Frame frame{.kind = Frame::Kind::kLoad, .name = "worker", .body = std::string("a\0b", 3)};
  const std::string bytes = encode_frame(frame);
  EXPECT_EQ(bytes.size(), kFrameHead + 9);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut) {
    const auto part = decode_frame(std::string_view(bytes).substr(0, cut));
    ASSERT_TRUE(part) << cut;
    EXPECT_FALSE(*part) << cut;
  }
  const auto whole = decode_frame(bytes + "more");
  ASSERT_TRUE(whole && *whole);
  EXPECT_EQ((*whole)->kind, frame.kind);
  EXPECT_EQ((*whole)->name, frame.name);
  EXPECT_EQ((*whole)->body, frame.body);
}

TEST(ExchangeFrame, ItsHeadTellsItsKindAndSizes) {
  const std::string bytes = encode_frame({.kind = Frame::Kind::kProven, .name = "abc", .body = std::string(300, 'x')});
  EXPECT_FALSE(head_of(std::string_view(bytes).substr(0, kFrameHead - 1)));
  const auto head = head_of(std::string_view(bytes).substr(0, kFrameHead));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->kind, Frame::Kind::kProven);
  EXPECT_EQ(head->name_size, 3u);
  EXPECT_EQ(head->body_size, 300u);
}

TEST(ExchangeFrame, WhatIsNoneIsSaidAtOnce) {
  EXPECT_EQ(decode_frame("GET / HTTP/1.1").status().code(), Code::kCorrupt);
  const std::string good = encode_frame({.kind = Frame::Kind::kAsk, .name = "n"});
  const auto with = [&](std::size_t at, char byte) {
    std::string bytes = good;
    bytes[at] = byte;
    return decode_frame(bytes).status().code();
  };
  EXPECT_EQ(with(4, 1), Code::kCorrupt) << "version";
  EXPECT_EQ(with(4, 3), Code::kCorrupt) << "version";
  EXPECT_EQ(with(5, 0), Code::kCorrupt) << "kind";
  EXPECT_EQ(with(5, 9), Code::kCorrupt) << "kind";
  EXPECT_EQ(with(7, 1), Code::kCorrupt) << "zero";
  EXPECT_EQ(with(9, 1), Code::kCorrupt) << "name";
  EXPECT_EQ(with(15, 127), Code::kCorrupt) << "body";
}

}  // namespace
}  // namespace hawser::compat
