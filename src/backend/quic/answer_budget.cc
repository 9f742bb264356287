#include "backend/quic/answer_budget.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace hawser::backend::quic {
namespace {

/// SplitMix64's finalizer.
std::uint64_t mix(std::uint64_t value) {
  value = (value ^ (value >> 30)) * 0xbf58476d1ce4e5b9u;
  value = (value ^ (value >> 27)) * 0x94d049bb133111ebu;
  return value ^ (value >> 31);
}

}  // namespace

void AnswerBudget::refill(Bucket& bucket, std::uint32_t burst, std::uint32_t per_second, Instant now) {
  if (bucket.at == Instant::min()) {
    bucket.tokens = burst;
  } else if (now > bucket.at) {
    const double seconds = std::chrono::duration<double>(now - bucket.at).count();
    bucket.tokens = std::min<double>(burst, bucket.tokens + seconds * per_second);
  }
  bucket.at = std::max(bucket.at, now);
}

AnswerBudget::Bucket& AnswerBudget::bucket_of(std::uint64_t source, Instant now) {
  const std::size_t place = mix(source ^ salt_) % (kSources / kWays);
  const auto ways = std::span(sources_).subspan(place * kWays, kWays);
  Bucket* fullest = nullptr;
  for (Bucket& bucket : ways) {
    if (bucket.at != Instant::min() && bucket.source == source) return bucket;
    if (bucket.at != Instant::min()) refill(bucket, kSourceBurst, kSourcePerSecond, now);
    const bool is_better = fullest == nullptr || bucket.at == Instant::min() ||
                           (fullest->at != Instant::min() && bucket.tokens > fullest->tokens);
    if (is_better) fullest = &bucket;
  }
  *fullest = Bucket{.source = source};
  return *fullest;
}

bool AnswerBudget::take(std::uint64_t source, bool is_here, Instant now) {
  refill(all_, kBurst, kPerSecond, now);
  Bucket* const its = is_here ? nullptr : &bucket_of(source, now);
  if (its != nullptr) refill(*its, kSourceBurst, kSourcePerSecond, now);
  if (all_.tokens < 1 || (its != nullptr && its->tokens < 1)) {
    ++held_back_;
    return false;
  }
  all_.tokens -= 1;
  if (its != nullptr) its->tokens -= 1;
  return true;
}

}  // namespace hawser::backend::quic
