#pragma once

// SeedTable: the values that a seed keeps, who has written them, and who waits for which. Without a socket or a clock.
//
// A key is an entry of a folder: "hawser/WORLD/RANK" is the entry RANK of the world's folder. An entry belongs to its
// writer until that is gone, and a writer has one entry in a folder: no rank takes another's place.
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

/// Who sets a value, and what errors call it.
struct SeedWriter {
  Incarnation peer;
  std::string name;
};

class SeedTable {
 public:
  /// Replaces a value that is there. `waiters` gets those who waited for the key. kDenied: the entry belongs to another
  /// writer, or this writer has another entry in the folder; the error names both. kBusy: there is no room.
  Status set(std::string_view key, std::string_view value, const SeedWriter& writer, std::vector<SeedWaiter>* waiters);
  /// The value; nothing where nobody has set it yet: then the waiter is remembered. kBusy: too many wait.
  Result<std::optional<std::string>> get(std::string_view key, const SeedWaiter& waiter);
  /// The peer is gone: it waits no more. What it has written stays, and whoever writes there next gets the entry.
  void forget(const Incarnation& peer);

  std::size_t waiting() const { return waiting_; }

 private:
  using EntryByFolder = std::map<std::string, std::string, std::less<>>;

  Status check_writer(std::string_view key, const SeedWriter& writer) const;
  void release(const SeedWaiter& waiter);

  std::map<std::string, std::string, std::less<>> values_;
  std::size_t bytes_ = 0;
  std::map<std::string, SeedWriter, std::less<>> writers_;  ///< By key, while they are there.
  std::map<Incarnation, EntryByFolder> entries_of_;         ///< The keys in writers_, by writer.
  std::map<std::string, std::vector<SeedWaiter>, std::less<>> waiters_;
  std::map<Incarnation, std::size_t> waiting_of_;
  std::size_t waiting_ = 0;
};

}  // namespace hawser::runtime
