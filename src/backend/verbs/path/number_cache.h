#pragma once

// NumberCache: which path of a port has a queue pair, by its lane and the device's number of it: each completion asks.
//
// Numbers come and go with the queue pairs, and nobody says so: what is known is checked with the path when it is used.
//
// Thread rule: one thread at a time. Lifetime: a path that goes is forgotten first.

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

namespace hawser::backend::verbs {

/// `Path` has `bool has_number(lane, number) const`.
template <typename Path>
class NumberCache {
 public:
  /// Null: none of `paths` has it.
  Path* find(std::uint32_t lane, std::uint32_t number, const std::vector<std::unique_ptr<Path>>& paths) {
    const std::uint64_t key = std::uint64_t{lane} << 32 | number;
    if (key == last_key_ && last_path_ != nullptr && last_path_->has_number(lane, number)) return last_path_;
    last_key_ = key;
    last_path_ = nullptr;
    const auto known = by_key_.find(key);
    if (known != by_key_.end() && known->second->has_number(lane, number)) return last_path_ = known->second;
    if (known != by_key_.end()) by_key_.erase(known);
    for (const auto& path : paths) {
      if (!path->has_number(lane, number)) continue;
      by_key_[key] = path.get();
      return last_path_ = path.get();
    }
    return nullptr;
  }
  void forget(const Path* path) {
    std::erase_if(by_key_, [path](const auto& each) { return each.second == path; });
    if (last_path_ == path) last_path_ = nullptr;
  }

 private:
  std::unordered_map<std::uint64_t, Path*> by_key_;
  std::uint64_t last_key_ = 0;  ///< What was looked for last, and
  Path* last_path_ = nullptr;   ///< found.
};

}  // namespace hawser::backend::verbs
