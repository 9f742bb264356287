#pragma once

// CallLedger: what a rank called by the last numbers of a world. A message of a collective whose number is here with
// another digest tells that the ranks differ in what they call, also where this rank waits for no message of that
// sender: of two roots of one broadcast neither does.
//
// Thread rule: under the lane's lock. Memory: 6 KiB from the first call on.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hawser::runtime {

class CallLedger {
 public:
  static constexpr std::size_t kKept = 256;

  void note(std::uint64_t number, std::uint64_t digest) {
    if (entries_ == nullptr) entries_ = std::make_unique<Entries>();
    (*entries_)[number % kKept] = {.number = number, .digest = digest, .is_there = true};
  }
  /// False: it is the same, or that number was not called yet, or too long ago.
  bool differs(std::uint64_t number, std::uint64_t digest) const {
    if (entries_ == nullptr) return false;
    const Entry& entry = (*entries_)[number % kKept];
    return entry.is_there && entry.number == number && entry.digest != digest;
  }

 private:
  struct Entry {
    std::uint64_t number = 0, digest = 0;
    bool is_there = false;
  };
  using Entries = std::array<Entry, kKept>;

  std::unique_ptr<Entries> entries_;
};

}  // namespace hawser::runtime
