#pragma once

// AnswerBudget: how many answers may go to addresses that have proven nothing: Retry and version negotiation. A sender
// may write any address into its datagrams, so an answer may go to a victim. Token buckets bound them: one over all,
// and one for each source (places/source.h) outside of this host.
//
// A flood from invented addresses may use up the bucket over all. Then honest newcomers that need such an answer have
// to ask again; their QUIC does so by itself.
//
// Thread rule: one thread. Memory: fixed, kSources buckets. A source that is not among them begins with a full bucket,
// and takes the place of the source with the fullest bucket of those that share its place.

#include <array>
#include <cstddef>
#include <cstdint>

#include <hawser/time.h>

namespace hawser::backend::quic {

class AnswerBudget {
 public:
  static constexpr std::uint32_t kBurst = 512;           ///< Answers at once,
  static constexpr std::uint32_t kPerSecond = 1000;      ///< and in each second,
  static constexpr std::uint32_t kSourceBurst = 64;      ///< to one source at once,
  static constexpr std::uint32_t kSourcePerSecond = 50;  ///< and in each second.
  static constexpr std::size_t kSources = 256;

  /// `salt`: random, so that nobody can choose which sources share a place.
  explicit AnswerBudget(std::uint64_t salt) : salt_(salt) {}

  /// True where one more answer may go. `is_here`: to this host, where addresses are not invented.
  bool take(std::uint64_t source, bool is_here, Instant now);
  /// Answers that were not given. It only grows.
  std::uint64_t held_back() const { return held_back_; }

 private:
  struct Bucket {
    std::uint64_t source = 0;
    double tokens = 0;
    Instant at = Instant::min();  ///< When `tokens` was right; min: never.
  };
  static constexpr std::size_t kWays = 4;  ///< Buckets that share a place.

  static void refill(Bucket& bucket, std::uint32_t burst, std::uint32_t per_second, Instant now);
  Bucket& bucket_of(std::uint64_t source, Instant now);

  const std::uint64_t salt_;
  Bucket all_;
  std::array<Bucket, kSources> sources_ = {};
  std::uint64_t held_back_ = 0;
};

}  // namespace hawser::backend::quic
