#include "backend/verbs/mock/mock_memory.h"

#include <algorithm>

namespace hawser::backend::verbs {

ibv_mr* MockMemory::add(ibv_pd* pd, void* address, std::size_t size, int access) {
  auto* mr = new ibv_mr{};
  mr->context = pd->context;
  mr->pd = pd;
  mr->addr = address;
  mr->length = size;
  mr->lkey = mr->rkey = ++next_key_;
  registered_[mr->rkey] = mr;
  access_[mr->rkey] = access;
  bytes_pinned_ += size;
  return mr;
}

void MockMemory::end(ibv_mr* mr) {
  registered_.erase(mr->rkey);
  access_.erase(mr->rkey);
  bytes_pinned_ -= mr->length;
  delete mr;
}

void MockMemory::revoke(const std::function<bool(const ibv_context*)>& is_of) {
  std::erase_if(registered_, [&](const auto& each) {
    if (!is_of(each.second->context)) return false;
    bytes_pinned_ -= each.second->length;
    access_.erase(each.first);
    revoked_.push_back(each.second);
    return true;
  });
}

void MockMemory::purge(const ibv_context* context) {
  std::erase_if(revoked_, [&](ibv_mr* mr) {
    if (mr->context != context) return false;
    delete mr;
    return true;
  });
}

std::uint32_t MockMemory::add_list() {
  access_[++next_key_] = 0;
  lists_[next_key_] = {};
  ++list_keys_;
  return next_key_;
}

void MockMemory::bind_list(std::uint32_t key, int access, std::span<const ibv_sge> list) {
  lists_[key].assign(list.begin(), list.end());
  access_[key] = access;
}

void MockMemory::end_list(std::uint32_t key) {
  access_.erase(key);
  lists_.erase(key);
  --list_keys_;
}

std::optional<MockMemory::Runs> MockMemory::resolve(ibv_pd* pd, std::uint32_t key, std::uint64_t at, std::uint64_t size,
                                                    int right) const {
  const auto access = access_.find(key);
  if (access == access_.end() || (access->second & right) != right) return std::nullopt;
  if (const auto found = registered_.find(key); found != registered_.end()) {
    const ibv_mr& mr = *found->second;
    const auto base = reinterpret_cast<std::uintptr_t>(mr.addr);
    const bool inside = mr.pd == pd && at >= base && size <= mr.length && at - base <= mr.length - size;
    if (!inside) return std::nullopt;
    return Runs{{reinterpret_cast<std::byte*>(at), size}};
  }
  Runs runs;
  for (const ibv_sge& piece : lists_.at(key)) {
    const std::uint64_t part = at < piece.length ? std::min<std::uint64_t>(size, piece.length - at) : 0;
    if (part > 0) {
      const auto inner = resolve(pd, piece.lkey, piece.addr + at, part, right);
      if (!inner) return std::nullopt;
      runs.insert(runs.end(), inner->begin(), inner->end());
    }
    size -= part;
    at = part > 0 ? 0 : at - piece.length;
  }
  if (size > 0) return std::nullopt;
  return runs;
}

}  // namespace hawser::backend::verbs
