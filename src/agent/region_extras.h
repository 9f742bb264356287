#pragma once

// RegionExtras: what backends want in the card entry of one region. Mostly that is nothing, or a byte for one of them,
// and then it takes no memory of its own.
//
// Thread rule: the owner's.

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

namespace hawser::agent {

class RegionExtras {
 public:
  /// `backend`: see OpenBackend::number.
  void add(std::uint32_t backend, std::string_view bytes) {
    const Head head{backend, static_cast<std::uint32_t>(bytes.size())};
    packed_.append(reinterpret_cast<const char*>(&head), sizeof(head));
    packed_.append(bytes);
  }

  /// Empty bytes: nothing is left of this backend.
  void replace(std::uint32_t backend, std::string_view bytes) {
    RegionExtras others;
    for_each([&](std::uint32_t each, std::string_view its_own) {
      if (each != backend) others.add(each, its_own);
    });
    if (!bytes.empty()) others.add(backend, bytes);
    *this = std::move(others);
  }

  /// Calls `visit(backend, bytes)` for each, in the order of `add`; the bytes are good until the next change.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (std::string_view rest = packed_; !rest.empty();) {
      Head head;
      std::memcpy(&head, rest.data(), sizeof(head));
      visit(head.backend, rest.substr(sizeof(head), head.size));
      rest.remove_prefix(sizeof(head) + head.size);
    }
  }

  bool empty() const { return packed_.empty(); }
  void clear() { packed_ = {}; }

 private:
  struct Head {
    std::uint32_t backend;
    std::uint32_t size;
  };
  std::string packed_;  ///< Heads, each with its bytes. A short one lies within the string itself.
};

}  // namespace hawser::agent
