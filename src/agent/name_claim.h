#pragma once

// NameClaim: whether an agent may write its card under its key in the directory, and on which condition. Another agent
// of its name may be there: an earlier one that still runs, or a later one. The one that was born later has the key,
// and each write is a compare-and-swap, so neither overwrites what it has not seen.
//
// Thread rule: confined, no time and no I/O in it.

#include <cstdint>
#include <optional>

#include <hawser/directory.h>

#include "base/id128.h"

namespace hawser::agent {

/// An incarnation with its place in the order of those of one name.
struct Holder {
  std::uint64_t born = 0;
  base::Id128 incarnation;
  friend auto operator<=>(const Holder&, const Holder&) = default;
};

class NameClaim {
 public:
  /// Our own. Before the first answer.
  void set_self(const Holder& self) { self_ = self; }

  /// What was read: nothing under the key.
  void on_free() { *this = NameClaim(self_, State::kFree, 0); }
  /// What was read, or a watch told. `holder` is missing when the value there is no card.
  void on_value(std::uint64_t version, const std::optional<Holder>& holder);
  /// Our card stands in this version.
  void on_written(std::uint64_t version) { *this = NameClaim(self_, State::kHeld, version); }
  /// A write was refused, its end is unknown, or somebody changed the key.
  void on_unsure() { *this = NameClaim(self_, State::kUnknown, 0); }

  bool must_read() const { return state_ == State::kUnknown; }
  bool is_held() const { return state_ == State::kHeld; }
  bool is_held_in(std::uint64_t version) const { return is_held() && version == version_; }
  bool is_free() const { return state_ == State::kFree; }
  /// What is known of the key is this version, and it may be replaced.
  bool stands_at(std::uint64_t version) const {
    return (is_held() || state_ == State::kReplaceable) && version == version_;
  }
  /// A later agent has the key: nothing may be written until it is free.
  bool is_displaced() const { return state_ == State::kDisplaced; }
  /// Who that is.
  const Holder& holder() const { return holder_; }
  /// The condition of the next write. Only when neither `must_read` nor `is_displaced`.
  PutOptions condition() const;

 private:
  enum class State : std::uint8_t { kUnknown, kFree, kHeld, kReplaceable, kDisplaced };
  NameClaim(const Holder& self, State state, std::uint64_t version) : self_(self), state_(state), version_(version) {}

 public:
  NameClaim() = default;

 private:
  Holder self_;
  State state_ = State::kUnknown;
  std::uint64_t version_ = 0;
  Holder holder_;
};

/// When an agent says that it was born: by its clock, but after `before`, the one whose card it finds under its key.
constexpr std::uint64_t born_after(std::uint64_t clock_ns, const std::optional<Holder>& before) {
  if (!before || before->born < clock_ns) return clock_ns;
  return before->born == UINT64_MAX ? UINT64_MAX : before->born + 1;
}

}  // namespace hawser::agent
