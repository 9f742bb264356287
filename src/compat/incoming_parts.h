#pragma once

// IncomingParts: notifications that come in several parts (parts.h), put together for each peer. A peer that is gone
// leaves what it did not finish; that is dropped, once all that it sent before was taken.
//
// Thread rule: one thread at a time. Memory: bounded for all peers together (AssemblyBudget); a peer is known while
// something of it waits for its end.

#include <cstddef>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/compat/agent.h>

#include "base/line_gate.h"
#include "base/log.h"
#include "compat/parts.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class IncomingParts {
 public:
  struct Sender {
    const void* key = nullptr;  ///< Of its incarnation.
    std::string name;
    std::function<bool()> is_gone;  ///< Asked as long as something of it waits.
  };

  explicit IncomingParts(const base::Logger& log) : log_(log) {}

  /// Those that are gone now: what they sent has come, and only has to be taken.
  std::vector<const void*> gone() const;
  /// A marked notification. What it completes goes to `into`.
  void take(Sender from, std::string_view text, NotificationMap& into);
  /// Nothing more comes of these.
  void forget(const std::vector<const void*>& gone);
  bool empty() const { return all_.empty(); }

 private:
  struct Incoming {
    Incoming(Sender its_sender, AssemblyBudget* budget) : sender(std::move(its_sender)), assembler(budget) {}
    Sender sender;
    Assembler assembler;
  };

  const base::Logger& log_;
  base::LineGate line_gate_;
  AssemblyBudget budget_;
  std::map<const void*, Incoming> all_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
