#include "runtime/last_words.h"

namespace hawser::runtime {

/// All classes bring the same ones, each in the same order.
Status LastWords::hear(Priority priority, const wire::RuntimeMessage& word, bool* counts) {
  *counts = false;
  const std::size_t place = by_class_[wire::index_of(priority)]++ - done_;
  if (place >= kLastWordsMax) return Status(Code::kCorrupt, "a peer says its last words in one class only");
  if (place == waiting_.size()) waiting_.push_back({.word = word});
  Heard& its = waiting_[place];
  its.word.body = {};  // They have none, and what was there is gone.
  const bool is_same = its.word.kind == word.kind && its.word.world == word.world && its.word.number == word.number &&
                       its.word.code == word.code;
  if (!is_same) return Status(Code::kCorrupt, "a peer's classes bring different last words");
  if (++its.classes < wire::kClasses) return {};
  waiting_.pop_front();  // Those before it came in each class before it did.
  ++done_;
  *counts = true;
  return {};
}

}  // namespace hawser::runtime
