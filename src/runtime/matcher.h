#pragma once

// Matcher: brings together messages and receives, by world, use, source and tag.
//
// Of receives that fit a message the oldest gets it, and of messages that fit a receive the oldest is given: so
// messages of one source and tag never overtake one another. Finding either takes no longer when others wait, except
// for receives of any tag or source, which look at the messages of their world one by one.
//
// Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "runtime/operation.h"

namespace hawser::runtime {

class Matcher {
 public:
  Matcher() = default;
  ~Matcher();
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;

  /// The receive that this message belongs to, which waits no more. Null: nobody wants it yet.
  Receive* take_receive(const wire::MessageEnvelope& envelope, const void* source);
  /// The oldest message that fits. Null: there is none. It stays until `drop`.
  Arrived* find(const Pattern& pattern);
  /// A message of the world's collective of that number that has another digest, or any one. Null: there is none.
  /// Looks at the kept messages of the world's collectives.
  const Arrived* find_misfit(std::uint64_t world, std::uint64_t number, std::optional<std::uint64_t> digest);
  /// From now on it waits for a message.
  void wait(Receive& receive);
  /// It waits no more. Nothing where it did not.
  void forget(Receive& receive);
  /// Keeps a message that nobody wants yet.
  Arrived& keep(std::unique_ptr<Arrived> arrived);
  void drop(Arrived& arrived);

  /// The oldest first. A visit may end the one that it is given.
  void for_each_waiting(const std::function<void(Receive&)>& visit);
  void for_each_kept(const std::function<void(Arrived&)>& visit);
  std::size_t waiting() const { return waiting_; }
  std::size_t kept() const { return kept_; }
  /// Empty ones among them, for tests.
  std::size_t buckets() const { return buckets_.size(); }

 private:
  struct Key {
    std::uint64_t world, tag;
    const void* source;
    wire::MessageUse use;
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const;
  };
  /// All with one world, use, source and tag.
  struct Bucket {
    base::IntrusiveList<Receive, &Receive::hook> receives;
    base::IntrusiveList<Arrived, &Arrived::bucket_hook> messages;
  };
  using UseKey = std::pair<std::uint64_t, wire::MessageUse>;
  /// All of one world and use: those with a wildcard, and all messages.
  struct Use {
    base::IntrusiveList<Receive, &Receive::hook> receives;
    base::IntrusiveList<Arrived, &Arrived::use_hook> messages;
  };
  struct UseHash {
    std::size_t operator()(const UseKey& key) const {
      return std::hash<std::uint64_t>()(key.first * 2 + static_cast<std::uint64_t>(key.second));
    }
  };

  static bool is_exact(const Pattern& pattern) { return pattern.source != nullptr && pattern.tag; }
  /// A planted bug.
  Arrived* find_in_any_world(const Pattern& pattern);
  static bool fits(const Pattern& pattern, const wire::MessageEnvelope& envelope, const void* source);
  /// Empty ones are kept up to a number: a steady flow makes none anew.
  void tidy(const Key& key);
  void tidy_use(std::uint64_t world, wire::MessageUse use);

  std::unordered_map<Key, Bucket, Hash> buckets_;
  std::unordered_map<UseKey, Use, UseHash> uses_;
  std::uint64_t next_order_ = 1;
  std::size_t waiting_ = 0, kept_ = 0;
};

}  // namespace hawser::runtime
