#include "backend/stream/outlet.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "base/bytes.h"

namespace hawser::backend::stream {
namespace {

TEST(Outlet, GathersAllThatWaitsWithoutABound) {
  Outlet outlet;
  outlet.add_bytes(base::as_bytes("first"));
  outlet.sent(5);
  outlet.add_bytes(base::as_bytes("goodbye"));
  std::array<iovec, 4> parts;
  ASSERT_EQ(outlet.gather(parts, UINT64_MAX), 1u);
  EXPECT_EQ(std::string_view(static_cast<const char*>(parts[0].iov_base), parts[0].iov_len), "goodbye");
}

/// A payload of two pieces, of which some is sent; the rest is copied, and its memory used for something else.
TEST(Outlet, WhatIsKeptGoesOnAsItWas) {
  for (std::uint64_t sent = 1; sent < 16 + 12 + 4 + 16; ++sent) {
    std::string memory = "abcdefghijkl";
    auto* const bytes = reinterpret_cast<std::byte*>(memory.data());
    const std::array<Piece, 2> pieces{Piece{bytes, 0, 5}, Piece{bytes + 5, 0, 7}};
    Outlet outlet;
    const std::uint64_t begin = outlet.end();
    std::byte* const head = outlet.add(16);
    std::fill_n(head, 16, std::byte{'h'});
    const std::uint64_t end = outlet.add_payload({.pieces = pieces, .bytes = 12, .head = head, .frame_begin = begin});
    std::string seen;
    const auto send = [&](std::uint64_t most) {
      std::array<iovec, 8> parts;
      std::uint64_t size = 0;
      for (const iovec& part : std::span(parts).first(outlet.gather(parts, most))) {
        seen.append(static_cast<const char*>(part.iov_base), part.iov_len);
        size += part.iov_len;
      }
      outlet.sent(size);
      outlet.released(outlet.sent_total());
    };
    send(sent);
    EXPECT_TRUE(outlet.keep_frame(end)) << sent;
    memory.assign(12, '-');
    while (outlet.has_unsent()) send(3);
    EXPECT_EQ(seen.substr(0, 28), std::string(16, 'h') + "abcdefghijkl") << sent;
    EXPECT_EQ(seen[wire::padded(12) + 16], '\0') << "its trailer says that it is good";
  }
}

TEST(Outlet, SaysWhenTheStreamRefersToWhatIsKept) {
  std::string memory = "abcdefgh";
  const Piece piece{reinterpret_cast<std::byte*>(memory.data()), 0, 8};
  Outlet outlet;
  std::byte* const head = outlet.add(16);
  const std::uint64_t end = outlet.add_payload({.pieces = {&piece, 1}, .bytes = 8, .head = head});
  outlet.sent(20);
  EXPECT_FALSE(outlet.keep_frame(end));
  outlet.released(20);
  EXPECT_TRUE(outlet.keep_frame(end));
}

}  // namespace
}  // namespace hawser::backend::stream
