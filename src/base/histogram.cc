#include "base/histogram.h"

#include <algorithm>
#include <cmath>

namespace hawser::base {

void Histogram::merge(const Histogram& other) {
  for (std::size_t i = 0; i < kBucketCount; ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  max_ = std::max(max_, other.max_);
}

std::uint64_t Histogram::quantile(double p) const {
  if (count_ == 0) return 0;
  const double share = p > 0 ? std::min(p, 1.0) : 0.0;  // NaN counts as 0
  const double exact = std::ceil(share * static_cast<double>(count_));
  const std::uint64_t rank = exact < 1 ? 1 : std::min(count_, static_cast<std::uint64_t>(exact));
  std::uint64_t seen = 0;
  for (std::size_t i = 0; i < kBucketCount; ++i) {
    seen += buckets_[i];
    if (seen >= rank) return std::min(bucket_last(i), max_);
  }
  return max_;
}

Histogram SharedHistogram::snapshot() const {
  Histogram copy;
  for (std::size_t i = 0; i < Histogram::kBucketCount; ++i) {
    copy.buckets_[i] = buckets_[i].load(std::memory_order_relaxed);
    copy.count_ += copy.buckets_[i];
  }
  copy.sum_ = sum_.load(std::memory_order_relaxed);
  copy.max_ = max_.load(std::memory_order_relaxed);
  return copy;
}

}  // namespace hawser::base
