#pragma once

// Word: a short message about a world, from one of its ranks to another. A pure value.

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/bytes.h"
#include "runtime/question.h"
#include "wire/runtime.h"

namespace hawser::runtime {

struct Word {
  wire::RuntimeMessage message;
  std::string text;

  /// With a view of the text as its body, for as long as neither moves nor changes.
  const wire::RuntimeMessage& whole() {
    message.body = base::as_bytes(text);
    return message;
  }
};

/// What a peer said of worlds that are not known here yet.
using EarlyWords = std::deque<Word>;

/// The world is at an end.
inline Word revoke_word(std::uint64_t world, const Status& why) {
  return {{.kind = wire::RuntimeKind::kRevoke, .world = world, .code = why.code()},
          std::string(why.message().substr(0, wire::kRevokeTextMax))};
}

/// A rank has failed; or, with proof, is dead.
inline Word failed_word(std::uint64_t world, std::uint32_t rank, bool is_dead) {
  return {{.kind = wire::RuntimeKind::kFailed, .world = world, .rank = rank, .flag = is_dead}, {}};
}

/// This rank has done all that it called, and leaves.
inline Word left_word(std::uint64_t world) { return {{.kind = wire::RuntimeKind::kLeft, .world = world}, {}}; }

/// This rank has written on its board, and the peer had asked to be told.
inline Word bell_word(std::uint64_t world) { return {{.kind = wire::RuntimeKind::kBell, .world = world}, {}}; }

inline Word check_word(std::uint64_t world, const Question& question) {
  return {{.kind = wire::RuntimeKind::kCheck,
           .world = world,
           .number = question.number,
           .digest = question.digest,
           .flag = question.awaits},
          {}};
}

/// Answers that: see wire/runtime.h for what each code says.
inline Word checked_word(std::uint64_t world, std::uint64_t number, Code code) {
  return {{.kind = wire::RuntimeKind::kChecked, .world = world, .code = code, .number = number}, {}};
}

}  // namespace hawser::runtime
