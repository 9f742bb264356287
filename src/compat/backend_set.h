#pragma once

// BackendSet: the backends that were created for one agent. The place of one among them is its bit.
//
// Thread rule: `has_any`, `remote`, `movers` and `first` by any thread; all else under the owner's lock.

#include <atomic>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/compat/agent.h>

#include "compat/book.h"
#include "compat/plugins.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

/// One backend of the agent.
struct CreatedBackend {
  const Plugin* plugin = nullptr;
  Params params;  ///< In force, defaults included.
};

class BackendSet {
 public:
  /// `agent` is for errors, `owner` what handles of its backends carry.
  BackendSet(std::string_view agent, const void* owner) : agent_(agent), owner_(owner) {}

  void add(CreatedBackend made);
  bool has(const Plugin& plugin) const;
  const std::vector<CreatedBackend>& all() const { return all_; }
  bool has_any() const { return count_.load(std::memory_order_acquire) != 0; }
  /// Those that reach other agents.
  BackendMask remote() const { return remote_.load(std::memory_order_acquire); }
  /// Those that move bytes between such memories, whoever registered them: what reaches no other agent moves between
  /// memory and files of this one.
  BackendMask movers(MemType ours, MemType theirs, bool is_self) const {
    const bool is_storage = is_self && (ours == MemType::kFile) != (theirs == MemType::kFile);
    return is_storage ? kAllBackends : remote();
  }
  /// Most agents have one, which stays the first for ever. None where the first is not in `mask`.
  Backend first(BackendMask mask) const;
  /// The first in `mask`, in the order of creation.
  Backend first_of(BackendMask mask) const;

  /// Those that `opt` names, or all. kInvalidParam when one is another agent's.
  Result<BackendMask> named(std::string_view call, const OptArgs* opt) const;
  /// Those of them that register memory of that type; never none.
  Result<BackendMask> takers(std::string_view call, MemType type, const OptArgs* opt) const;
  /// "UCX, POSIX"
  std::string names() const;

 private:
  Backend handle(const Plugin& plugin) const { return {std::string(plugin.name), owner_}; }

  const std::string agent_;
  const void* const owner_;
  std::vector<CreatedBackend> all_;
  std::atomic<std::size_t> count_{0};
  std::atomic<BackendMask> remote_{0};
  const Plugin* first_ = nullptr;  ///< Published with the count, and constant from then on.
};

}  // namespace compat
HAWSER_NAMESPACE_END
