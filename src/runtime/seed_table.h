#pragma once

// SeedTable: the values that a seed keeps, and who waits for which. Without a socket or a clock.
//
// Thread rule: one thread. Lifetime: copies what it is given.

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/peer.h>
#include <hawser/status.h>

namespace hawser::runtime {

inline constexpr std::size_t kSeedKeysMax = 65'536;
inline constexpr std::size_t kSeedBytesMax = std::size_t{64} << 20;  ///< Of keys and values together.
inline constexpr std::size_t kSeedWaitersMax = 65'536;
inline constexpr std::size_t kSeedWaitersOfPeerMax = 64;

/// Who asked, and the number of the question.
struct SeedWaiter {
  Incarnation peer;
  std::uint64_t id = 0;
};

class SeedTable {
 public:
  /// Replaces a value that is there. `waiters` gets those who waited for the key. kBusy: there is no room.
  Status set(std::string_view key, std::string_view value, std::vector<SeedWaiter>* waiters);
  /// The value; nothing where nobody has set it yet: then the waiter is remembered. kBusy: too many wait.
  Result<std::optional<std::string>> get(std::string_view key, const SeedWaiter& waiter);
  /// The peer is gone: it waits no more.
  void forget(const Incarnation& peer);

  std::size_t waiting() const { return waiting_; }

 private:
  void release(const SeedWaiter& waiter);

  std::map<std::string, std::string, std::less<>> values_;
  std::size_t bytes_ = 0;
  std::map<std::string, std::vector<SeedWaiter>, std::less<>> waiters_;
  std::map<Incarnation, std::size_t> waiting_of_;
  std::size_t waiting_ = 0;
};

}  // namespace hawser::runtime
