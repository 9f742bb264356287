#include "base/copy.h"

#include <gtest/gtest.h>

#include <vector>

#include "base/copy_shared_cache.h"
#include "base/rng.h"

namespace hawser::base {
namespace {

constexpr CopyHint kStreaming = {.total_bytes = 1 << 30, .scattered = true};
constexpr std::byte kGuard{0xee};

std::vector<std::byte> random_bytes(std::size_t size) {
  Rng rng(size + 1);
  std::vector<std::byte> bytes(size);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(rng.below(256));
  return bytes;
}

// Bytes of the target outside [at, at + size) must keep the guard.
void expect_copied(const std::vector<std::byte>& target, std::size_t at, const std::byte* source, std::size_t size) {
  for (std::size_t i = 0; i < target.size(); ++i) {
    const bool inside = i >= at && i - at < size;
    ASSERT_EQ(target[i], inside ? source[i - at] : kGuard) << "at " << i << ", size " << size << ", offset " << at;
  }
}

TEST(Copy, SmallSizesAreExact) {
  const std::vector<std::byte> source = random_bytes(200);
  for (std::size_t size = 0; size <= 130; ++size) {
    std::vector<std::byte> target(200, kGuard);
    copy_bytes(target.data() + 17, source.data() + 3, size);
    expect_copied(target, 17, source.data() + 3, size);
  }
}

TEST(Copy, EveryKernelAtEveryAlignment) {
  const std::vector<std::byte> source = random_bytes(40'000);
  for (const CopyKernels* kernel : all_kernels()) {
    SCOPED_TRACE(kernel->name);
    for (const std::size_t size : {0u, 1u, 63u, 64u, 255u, 256u, 257u, 1024u, 1030u, 4096u, 16384u, 16500u, 36999u}) {
      for (const std::size_t at : {0u, 1u, 63u, 64u, 100u}) {
        std::vector<std::byte> target(40'000, kGuard);
        kernel->stream({target.data() + at, source.data() + (at * 7) % 129, size});
        stream_fence();
        expect_copied(target, at, source.data() + (at * 7) % 129, size);
      }
    }
  }
}

TEST(Copy, EveryKernelCopiesManyPieces) {
  const std::vector<std::byte> source = random_bytes(300'000);
  for (const CopyKernels* kernel : all_kernels()) {
    SCOPED_TRACE(kernel->name);
    Rng rng(9);
    for (std::size_t count = 0; count < 12; ++count) {
      std::vector<std::byte> target(source.size(), kGuard);
      std::vector<std::byte> expected = target;
      std::vector<CopyPiece> pieces;
      std::size_t at = rng.below(64);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t size = rng.chance(0.3) ? rng.below(200) : rng.below(20'000);
        const std::size_t from = rng.below(source.size() - size);
        pieces.push_back({target.data() + at, source.data() + from, size});
        std::copy_n(source.data() + from, size, expected.data() + at);
        at += size + rng.below(64);
      }
      if (kernel->copy_pieces(pieces, kStreaming)) stream_fence();
      ASSERT_EQ(target, expected);
      EXPECT_FALSE(kernel->copy_pieces(pieces, {}));
      ASSERT_EQ(target, expected);
    }
  }
}

TEST(Copy, LargeCachedPiecesAreExactHoweverTheyLie) {
  const std::vector<std::byte> source = random_bytes(kStringMoveMin * 2 + 300);
  for (const CopyKernels* kernel : all_kernels()) {
    SCOPED_TRACE(kernel->name);
    for (const bool is_read_elsewhere : {false, true}) {
      const std::size_t least = is_read_elsewhere ? kStringMoveSharedMin : kStringMoveMin;
      for (const std::size_t size : {least - 1, least, least + 64, least * 2 + 1}) {
        for (const std::size_t at : {0u, 1u, 63u, 100u}) {
          std::vector<std::byte> target(source.size() + 200, kGuard);
          kernel->cached({target.data() + at, source.data() + (at * 7) % 129, size},
                         {.read_elsewhere = is_read_elsewhere});
          expect_copied(target, at, source.data() + (at * 7) % 129, size);
        }
      }
    }
  }
}

TEST(Copy, CachedCopiesAreExactAtEverySizeAndWhereTheCLibraryIsSlow) {
  const std::vector<std::byte> source = random_bytes(3 * 4096);
  for (const std::size_t at : {0u, 1u, 8u, 15u, 4095u}) {
    for (const std::size_t size : {0u, 1u, 63u, 64u, 65u, 1'023u, 1'024u, 2'048u, 4'096u, 5'000u}) {
      std::vector<std::byte> target(source.size() + 200, kGuard);
      copy_cached(target.data() + at, source.data(), size);
      expect_copied(target, at, source.data(), size);
    }
  }
}

TEST(Copy, KernelsAreFoundByName) {
  ASSERT_FALSE(all_kernels().empty());
  EXPECT_EQ(all_kernels().front(), &kernels());
  for (const CopyKernels* kernel : all_kernels()) EXPECT_EQ(kernels_named(kernel->name), kernel);
  EXPECT_NE(kernels_named("memcpy"), nullptr) << "it runs everywhere";
  EXPECT_EQ(kernels_named("mmx"), nullptr);
}

TEST(Copy, StreamsWhatOutgrowsTheCaches) {
  EXPECT_FALSE(streams(64 * 1024, {}));
  EXPECT_EQ(streams(64 * 1024, {.read_elsewhere = true}), !shared_cache_pays());
  EXPECT_TRUE(streams(64 << 20, {.read_elsewhere = true}));
  EXPECT_TRUE(streams(64 << 20, {}));
  EXPECT_TRUE(streams(64 * 1024, {.total_bytes = 64 << 20}));
  EXPECT_TRUE(streams(4096, {.total_bytes = 1 << 20, .scattered = true}));
  EXPECT_FALSE(streams(4096, {.scattered = true})) << "one page is soon read";
  EXPECT_FALSE(streams(100, {.total_bytes = 64 << 20, .scattered = true}));
}

TEST(Copy, StreamsWhatAnotherCoreReadsFromALimitOn) {
  const bool is_far = !shared_cache_pays();
  EXPECT_FALSE(streams(kStreamNextMin - 1, {.read_elsewhere = true}));
  EXPECT_EQ(streams(kStreamNextMin, {.read_elsewhere = true}), is_far);
  EXPECT_FALSE(streams(kStreamLaterMin - 1, {.read_elsewhere = true, .read_later = true}));
  EXPECT_EQ(streams(kStreamLaterMin, {.read_elsewhere = true, .read_later = true}), is_far);
  EXPECT_FALSE(streams(kStreamNextMin, {.read_later = true})) << "without another core it says nothing";
}

}  // namespace
}  // namespace hawser::base
