#pragma once

// BookJudge: what agents keep in their books, once all is quiet. Counters say what was seen, room taken at one side was
// used at the other and is free again, and nothing is left over.
//
// Thread rule: one thread.

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "proto/credit.h"
#include "sim/life.h"
#include "sim/verdict.h"

namespace hawser::simulation {

class BookJudge {
 public:
  using Lives = std::vector<std::unique_ptr<Life>>;
  explicit BookJudge(Verdict& verdict) : verdict_(verdict) {}

  void check_counters(Life& life);
  /// Whether each session that stands has a path by the agents' first backend.
  static bool all_go_best(const Lives& lives);
  void check_best(const Lives& lives);
  /// Nothing waits or is unacknowledged between two that stand in session.
  static bool all_told(const Lives& lives);
  void check_books(const Lives& lives);
  /// What `life` sent within so many heartbeats though nobody wanted anything.
  void check_silent(const Life& life, std::uint64_t sends, std::int64_t heartbeats);

 private:
  void check_credit(Life& from, Life& to);
  template <typename Receiver>
  void check_room(Life& from, Life& to, std::string_view what, const proto::CreditSender& sender,
                  const Receiver& receiver, std::uint64_t untold);

  Verdict& verdict_;
};

}  // namespace hawser::simulation
