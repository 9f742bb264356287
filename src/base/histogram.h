#pragma once

// Histogram: how long things took. Eight buckets per power of two over all of 64 bits, so a quantile is at most 1/8
// too high, adding is a few instructions and two histograms merge by addition. 4 KiB each.
//
// Thread rule: Histogram is confined to a lane. SharedHistogram has one writer at a time and any readers, who take a
// snapshot; what is added meanwhile may be in some of its numbers and not yet in others.

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace hawser::base {

class Histogram {
 public:
  static constexpr std::size_t kBucketCount = 496;  // 8 exact values, then 8 buckets for each of 61 powers of two

  static constexpr std::size_t bucket_of(std::uint64_t value) {
    if (value < 8) return static_cast<std::size_t>(value);
    const int shift = static_cast<int>(std::bit_width(value)) - 4;  // leaves the highest bit and three below it
    return static_cast<std::size_t>(shift) * 8 + static_cast<std::size_t>(value >> shift);
  }
  /// The largest value in a bucket.
  static constexpr std::uint64_t bucket_last(std::size_t bucket) {
    if (bucket < 8) return bucket;
    const std::size_t shift = bucket / 8 - 1;
    return ((std::uint64_t{8} + bucket % 8) << shift) + ((std::uint64_t{1} << shift) - 1);
  }

  void add(std::uint64_t value) {
    ++buckets_[bucket_of(value)];
    ++count_;
    sum_ += value;
    max_ = value > max_ ? value : max_;
  }
  void merge(const Histogram& other);
  void clear() { *this = Histogram(); }

  std::uint64_t count() const { return count_; }
  std::uint64_t sum() const { return sum_; }
  std::uint64_t max() const { return max_; }
  std::uint64_t mean() const { return count_ == 0 ? 0 : sum_ / count_; }
  /// The value that a share `p` (0 to 1) of all values does not exceed, rounded up to its bucket's end but never above
  /// max(); 0 when empty.
  std::uint64_t quantile(double p) const;
  std::uint64_t bucket_count(std::size_t bucket) const { return buckets_[bucket]; }

 private:
  friend class SharedHistogram;
  std::array<std::uint64_t, kBucketCount> buckets_{};
  std::uint64_t count_ = 0;
  std::uint64_t sum_ = 0;
  std::uint64_t max_ = 0;
};

class SharedHistogram {
 public:
  void add(std::uint64_t value) {
    // One writer: a load and a store, not a locked instruction.
    bump(buckets_[Histogram::bucket_of(value)], 1);
    bump(sum_, value);
    if (value > max_.load(std::memory_order_relaxed)) max_.store(value, std::memory_order_relaxed);
  }
  /// Its count is the sum of its buckets, so that its quantiles agree with themselves.
  Histogram snapshot() const;

 private:
  static void bump(std::atomic<std::uint64_t>& word, std::uint64_t by) {
    word.store(word.load(std::memory_order_relaxed) + by, std::memory_order_relaxed);
  }

  std::array<std::atomic<std::uint64_t>, Histogram::kBucketCount> buckets_{};
  std::atomic<std::uint64_t> sum_{0};
  std::atomic<std::uint64_t> max_{0};
};

}  // namespace hawser::base
