#pragma once

// TiedValues: the values that stand for this handle. They share one lease that is kept alive; when it or the whole
// store was lost, they are put again.
//
// A value that never arrived is put whatever is there; one that was lost is put only where nobody else has put
// something since: that would be a successor.
//
// Thread rule: confined to the worker. Lifetime: borrows the operations.

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "directory/etcd/operations.h"

namespace hawser::directory::etcd {

inline constexpr std::size_t kTiedMax = 1024;
inline constexpr std::size_t kTiedBytesMax = std::size_t{64} << 20;

class TiedValues {
 public:
  using Warn = std::function<void(const std::string& about, std::string text)>;

  TiedValues(Operations& operations, Duration ttl, Warn warn)
      : operations_(operations), ttl_(ttl), warn_(std::move(warn)) {}

  /// The lease to put under.
  Result<std::int64_t> lease(Instant deadline);
  /// The lease is gone, and with it what was put under it.
  void lost();

  /// kBusy beyond the bounds.
  Status check_room(const std::string& key, std::size_t bytes) const;
  void hold(const std::string& key, std::string value, bool is_there);
  /// One that did not arrive and is to be put only where nothing is.
  void hold_for_free_key(const std::string& key, std::string value);
  /// Somebody else's from now on.
  void release(const std::string& key);

  /// Does what is due; says when to come again.
  Instant upkeep(Instant now);
  /// Takes all away at once instead of when the lease ends.
  void farewell(Instant deadline);

 private:
  enum class State : std::uint8_t { kThere, kWanted, kLost };
  struct Value {
    std::string bytes;
    State state = State::kWanted;
  };

  bool is_complete() const;
  void keep_alive(Instant now);
  void put_again(Instant now);
  /// False: not now.
  bool restore(const std::string& key, Value& value, Instant deadline, bool* is_others);

  Operations& operations_;
  const Duration ttl_;
  const Warn warn_;
  std::map<std::string, Value> values_;  ///< At most kTiedMax.
  std::size_t bytes_ = 0;                ///< At most kTiedBytesMax.
  std::int64_t lease_ = 0;               ///< 0: none.
  Instant keep_at_ = Instant::max();
  Instant again_at_ = Instant::min();
};

}  // namespace hawser::directory::etcd
