#pragma once

// MockMemory: what keys mean on the fabric in memory: registrations, and indirect keys over lists of them, as mlx5 has
// them, counted from 0 at the first piece's begin.
//
// Thread rule: one thread.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

class MockMemory {
 public:
  using Runs = std::vector<std::span<std::byte>>;

  ibv_mr* add(ibv_pd* pd, void* address, std::size_t size, int access);
  void end(ibv_mr* mr);
  /// Registrations of these contexts mean nothing any more, though their objects stay until `purge`.
  void revoke(const std::function<bool(const ibv_context*)>& is_of);
  void purge(const ibv_context* context);

  /// Means nothing until it is bound.
  std::uint32_t add_list();
  void bind_list(std::uint32_t key, int access, std::span<const ibv_sge> list);
  void end_list(std::uint32_t key);

  /// The bytes that a key means for a protection domain; nothing: no such key, right or range.
  std::optional<Runs> resolve(ibv_pd* pd, std::uint32_t key, std::uint64_t at, std::uint64_t size, int right) const;

  /// Objects that exist, keys of lists among them.
  std::size_t count() const { return registered_.size() + revoked_.size() + list_keys_; }
  std::uint64_t bytes_pinned() const { return bytes_pinned_; }
  /// By key.
  const std::map<std::uint32_t, ibv_mr*>& registered() const { return registered_; }
  int access_of(std::uint32_t key) const { return access_.at(key); }

 private:
  std::map<std::uint32_t, ibv_mr*> registered_;
  std::map<std::uint32_t, int> access_;
  std::map<std::uint32_t, std::vector<ibv_sge>> lists_;
  std::vector<ibv_mr*> revoked_;  ///< Of devices that were removed.
  std::uint32_t next_key_ = 1000;
  std::size_t list_keys_ = 0;
  std::uint64_t bytes_pinned_ = 0;
};

}  // namespace hawser::backend::verbs
