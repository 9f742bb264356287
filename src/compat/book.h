#pragma once

// Book: which registration stands for which addresses. NIXL names memory by address; Hawser by region and offset.
//
// Thread rule: the owner's lock. Lifetime: entries hold what they stand for.

#include <algorithm>
#include <bit>
#include <cstdint>
#include <iterator>
#include <map>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include <hawser/compat/descs.h>

#include "compat/plugins.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr BackendMask kAllBackends = ~BackendMask{0};

/// The same addresses may be there several times. `Range` is of the whole registration.
template <typename Range>
class Book {
 public:
  struct Entry {
    std::uint64_t len = 0;
    Range range;
    BackendMask backends = 0;
  };
  using Key = std::tuple<MemType, std::uint64_t, std::uint64_t>;  ///< Type, device, address.
  using Map = std::multimap<Key, Entry>;

  /// Looks descriptors up one after another. Neighbours in a list mostly lie in one registration or in the next one, so
  /// few of them pay for a search.
  class Cursor {
   public:
    Cursor(const Book& book, MemType type) : book_(book), type_(type), at_(book.entries_.end()) {}
    /// Null when `desc` does not lie wholly in one registration.
    const Entry* find(const Desc& desc, std::uint64_t* offset) {
      if (at_ != book_.entries_.end()) {
        if (holds(at_, desc, offset)) return &at_->second;
        if (const auto next = std::next(at_); next != book_.entries_.end() && holds(next, desc, offset)) {
          at_ = next;
          return &at_->second;
        }
      }
      return search(desc, offset);
    }

   private:
    bool holds(typename Map::const_iterator at, const Desc& desc, std::uint64_t* offset) const {
      const auto& [type, dev, addr] = at->first;
      *offset = desc.addr - addr;  // Huge when it lies before.
      return desc.dev == dev && type == type_ && *offset <= at->second.len && desc.len <= at->second.len - *offset;
    }
    const Entry* search(const Desc& desc, std::uint64_t* offset) {
      auto at = book_.entries_.upper_bound(Key{type_, desc.dev, desc.addr});
      const std::uint64_t longest = book_.longest(type_);
      while (at != book_.entries_.begin()) {
        --at;
        const auto& [type, dev, addr] = at->first;
        if (type != type_ || dev != desc.dev || desc.addr - addr > longest) return nullptr;
        if (!holds(at, desc, offset)) continue;
        at_ = at;
        return &at->second;
      }
      return nullptr;
    }

    const Book& book_;
    const MemType type_;
    typename Map::const_iterator at_;
  };

  void add(MemType type, const Desc& desc, Entry entry) {
    ++count_of(type, entry.len);
    entries_.emplace_hint(entries_.end(), Key{type, desc.dev, desc.addr},
                          std::move(entry));  // They mostly come sorted.
  }
  /// Takes one with exactly these values away from `backends`: out of the book when none is left. False: there is none.
  bool take(MemType type, const Desc& desc, BackendMask backends, std::optional<Entry>* out) {
    const Key key{type, desc.dev, desc.addr};
    if (entries_.empty() || std::prev(entries_.end())->first < key) return false;
    auto [at, end] = entries_.equal_range(key);
    for (; at != end; ++at) {
      if (at->second.len != desc.len || (at->second.backends & backends) == 0) continue;
      at->second.backends &= ~backends;
      if (at->second.backends != 0) return true;
      --count_of(type, desc.len);
      *out = std::move(at->second);
      entries_.erase(at);
      return true;
    }
    return false;
  }
  /// One with exactly these values; null: there is none.
  Entry* find_exact(MemType type, const Desc& desc) {
    auto [at, end] = entries_.equal_range(Key{type, desc.dev, desc.addr});
    for (; at != end; ++at) {
      if (at->second.len == desc.len) return &at->second;
    }
    return nullptr;
  }
  /// One that `desc` lies in and that `is_wanted(entry)`.
  template <typename IsWanted>
  const Entry* find_if(MemType type, const Desc& desc, std::uint64_t* offset, IsWanted&& is_wanted) const {
    for (auto at = entries_.upper_bound(Key{type, desc.dev, desc.addr}); at != entries_.begin();) {
      --at;
      const auto& [its_type, dev, addr] = at->first;
      *offset = desc.addr - addr;
      if (its_type != type || dev != desc.dev || *offset > longest(type)) return nullptr;
      const std::uint64_t len = at->second.len;
      if (*offset <= len && desc.len <= len - *offset && is_wanted(at->second)) return &at->second;
    }
    return nullptr;
  }
  /// Takes those out of which `is_unwanted(key, entry)`.
  template <typename IsUnwanted>
  void erase_if(IsUnwanted&& is_unwanted) {
    for (auto at = entries_.begin(); at != entries_.end();) {
      const auto each = at++;
      if (!is_unwanted(each->first, each->second)) continue;
      --count_of(std::get<0>(each->first), each->second.len);
      entries_.erase(each);
    }
  }
  /// Some registration of that device; null: there is none.
  const Entry* of_device(MemType type, std::uint64_t dev) const {
    const auto at = entries_.lower_bound(Key{type, dev, 0});
    const bool is_there = at != entries_.end() && std::get<0>(at->first) == type && std::get<1>(at->first) == dev;
    return is_there ? &at->second : nullptr;
  }
  const Map& entries() const { return entries_; }
  /// No registration of that type is longer; at most twice what one is.
  std::uint64_t longest(MemType type) const {
    std::uint64_t longest = 0;
    for (const Lengths& each : lengths_) {
      if (each.type == type && each.count != 0) longest = std::max(longest, ~std::uint64_t{0} >> (64 - each.bits));
    }
    return longest;
  }

 private:
  /// How many registrations of a type have a length of so many bits. Books have few kinds of them.
  struct Lengths {
    MemType type;
    int bits;  ///< From 1.
    std::size_t count = 0;
  };
  std::size_t& count_of(MemType type, std::uint64_t len) {
    const int bits = std::max(static_cast<int>(std::bit_width(len)), 1);
    for (Lengths& each : lengths_) {
      if (each.type == type && each.bits == bits) return each.count;
    }
    return lengths_.emplace_back(Lengths{.type = type, .bits = bits}).count;
  }

  Map entries_;
  std::vector<Lengths> lengths_;  ///< At most 64 of each type.
};

}  // namespace compat
HAWSER_NAMESPACE_END
