#pragma once

// PathIndex: which session a path belongs to. Events of one path come in runs, so the last answer is kept.
//
// Thread rule: confined to the lane.

#include <unordered_map>

namespace hawser::backend {
class Path;
}

namespace hawser::agent {

struct Session;

class PathIndex {
 public:
  void add(const backend::Path* path, Session& session) {
    by_path_[path] = &session;
    forget_last();
  }
  /// Null: it was forgotten, or never known.
  Session* find(const backend::Path* path) {
    if (path == last_path_) return last_;
    const auto found = by_path_.find(path);
    last_path_ = path;
    last_ = found == by_path_.end() ? nullptr : found->second;
    return last_;
  }
  void forget(const backend::Path* path) {
    by_path_.erase(path);
    forget_last();
  }
  /// A session is about to go that has no path any more.
  void forget_last() {
    last_path_ = nullptr;
    last_ = nullptr;
  }
  void clear() {
    by_path_.clear();
    forget_last();
  }

 private:
  std::unordered_map<const backend::Path*, Session*> by_path_;
  const backend::Path* last_path_ = nullptr;
  Session* last_ = nullptr;
};

}  // namespace hawser::agent
