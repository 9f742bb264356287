#pragma once

// NIXL's descriptors and lists of them: memory named by address, length and device.
//
// Thread rule: values. Lifetime: a list holds copies; the memory that it names is never touched.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/export.h>
#include <hawser/status.h>

HAWSER_NAMESPACE_BEGIN
namespace compat {

enum class MemType : std::uint8_t { kDram = 0, kVram = 1, kBlock = 2, kObject = 3, kFile = 4 };
/// "DRAM", "VRAM", "BLOCK", "OBJECT", "FILE".
HAWSER_API std::string_view to_string(MemType type);

/// The meaning of `dev` depends on the memory: the number of a GPU, an open file, a volume.
struct Desc {
  std::uint64_t addr = 0, len = 0, dev = 0;
  friend bool operator==(const Desc&, const Desc&) = default;
};
static_assert(sizeof(Desc) == 24, "rows of three 64-bit numbers are lists of these");

/// `count` blocks of `len` bytes, `stride` apart.
struct StridedDesc {
  std::uint64_t addr = 0, len = 0, dev = 0, stride = 0, count = 1;
  friend bool operator==(const StridedDesc&, const StridedDesc&) = default;
};
static_assert(sizeof(StridedDesc) == 40, "rows of five 64-bit numbers are lists of these");

/// For registration. `meta` is a file's path and mode, or an object's key; it is no part of what matches.
struct RegDesc : Desc {
  RegDesc() = default;
  RegDesc(std::uint64_t its_addr, std::uint64_t its_len, std::uint64_t its_dev = 0, std::string its_meta = {})
      : Desc{its_addr, its_len, its_dev}, meta(std::move(its_meta)) {}
  std::string meta;
  friend bool operator==(const RegDesc&, const RegDesc&) = default;
};

/// kInvalid, naming both numbers.
HAWSER_API Status index_status(std::string_view call, std::uint64_t index, std::uint64_t size);

namespace detail {
HAWSER_API void prefer_huge_pages(void* memory, std::size_t bytes) noexcept;
}

/// A list of one memory type. Empty lists are lists.
template <typename T>
class DescList {
 public:
  explicit DescList(MemType type = MemType::kDram) : type_(type) {}
  DescList(MemType type, std::span<const T> all) : type_(type) {
    reserve(all.size());
    all_.assign(all.begin(), all.end());
  }

  MemType type() const { return type_; }
  std::size_t size() const { return all_.size(); }
  bool empty() const { return all_.empty(); }
  auto begin() const { return all_.begin(); }
  auto end() const { return all_.end(); }
  auto begin() { return all_.begin(); }
  auto end() { return all_.end(); }
  std::span<const T> span() const { return all_; }

  /// kInvalid when there is no such index.
  Result<T> at(std::size_t index) const {
    if (index < all_.size()) return all_[index];
    return index_status("at", index, all_.size());
  }
  Status set(std::size_t index, T desc) {
    if (index >= all_.size()) return index_status("set", index, all_.size());
    all_[index] = std::move(desc);
    return {};
  }
  Status remove(std::size_t index) {
    if (index >= all_.size()) return index_status("remove", index, all_.size());
    all_.erase(all_.begin() + static_cast<std::ptrdiff_t>(index));
    return {};
  }
  void add(T desc) { all_.push_back(std::move(desc)); }
  template <typename... Args>
  void add(std::uint64_t addr, std::uint64_t len, std::uint64_t dev = 0, Args&&... args) {
    all_.push_back(T{addr, len, dev, std::forward<Args>(args)...});
  }
  /// Long lists lie in huge pages, where the system has them.
  void reserve(std::size_t size) {
    if (all_.capacity() >= size) return;
    all_.reserve(size);
    detail::prefer_huge_pages(all_.data(), size * sizeof(T));
  }
  void resize(std::size_t size) { all_.resize(size); }
  void clear() { all_.clear(); }
  /// Where an equal one stands; size() when there is none.
  std::size_t index_of(const T& desc) const {
    return static_cast<std::size_t>(std::find(all_.begin(), all_.end(), desc) - all_.begin());
  }
  friend bool operator==(const DescList&, const DescList&) = default;

 private:
  MemType type_;
  std::vector<T> all_;
};

using XferDescList = DescList<Desc>;
using RegDescList = DescList<RegDesc>;

HAWSER_API std::string to_string(const XferDescList& list);
HAWSER_API std::string to_string(const RegDescList& list);
/// Without what only registration needs.
HAWSER_API XferDescList trim(const RegDescList& list);

}  // namespace compat
HAWSER_NAMESPACE_END
