#pragma once

// Registration: one range of memory that one device may reach, with the keys for it.
//
// The keys are good for as long as the Registration lives: whoever has an operation in flight holds it (or something
// that does), and the last holder deregisters it. The device's addresses of a range are `iova`s: for host memory the
// pointers themselves.
//
// Thread rule: make from any thread; afterwards const. Lifetime: shared; it keeps its Domain alive. The memory is the
// caller's and outlives it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include <hawser/memory.h>
#include <hawser/status.h>

#include "backend/verbs/devices/domain.h"
#include "backend/verbs/memory/registration_pages.h"

namespace hawser::backend::verbs {

/// What a work request needs to name memory: `size` bytes from `iova` on. Size 0: nothing is registered there.
struct Keys {
  std::uint64_t iova = 0;
  std::uint64_t size = 0;
  std::uint32_t lkey = 0;
  std::uint32_t rkey = 0;
  std::int16_t gpu = -1;   ///< Ordinal of the GPU whose memory it is; -1: the host's, which the CPU may read.
  std::int16_t node = -1;  ///< NUMA node of the host's memory; -1: several, or not known.
  explicit operator bool() const { return size != 0; }
};

/// How the device reaches the memory.
enum class RegistrationKind : std::uint8_t {
  kHost,        ///< Pages of this process.
  kDmabuf,      ///< A device's memory, by a dmabuf.
  kPeerMemory,  ///< A device's memory, by its address: the kernel has a peer-memory module.
  kIndirect,    ///< Several others under one key.
};
std::string_view to_string(RegistrationKind kind);

/// What is asked for.
struct Access {
  Rights rights = Rights::kReadWrite;  ///< Of peers. kNone: for work requests of this process only.
  bool relaxed_ordering = false;       ///< Lets the bus reorder; only who waits for completions may ask for it.
  friend bool operator==(const Access&, const Access&) = default;
};

/// A key that is no memory region of libibverbs's: it ends with this object.
class BoundKey {
 public:
  virtual ~BoundKey() = default;
  virtual std::uint32_t lkey() const = 0;
  virtual std::uint32_t rkey() const = 0;
};

class Registration {
 public:
  /// What a maker knows of the range.
  struct Range {
    std::uintptr_t address = 0;
    std::size_t size = 0;
    std::uint64_t iova = 0;  ///< The device's address of `address`.
    int gpu = -1;            ///< Ordinal of the GPU whose memory it is; -1: the host's.
  };
  /// Takes `mr`, which is of `domain`, and ends it.
  Registration(std::shared_ptr<Domain> domain, ibv_mr* mr, const Range& range, RegistrationKind kind, int flags);
  /// One key over what others registered.
  Registration(std::shared_ptr<Domain> domain, std::unique_ptr<BoundKey> key, const Range& range, int flags);
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  ~Registration();

  const std::shared_ptr<Domain>& domain() const { return domain_; }
  std::uintptr_t address() const { return range_.address; }
  std::size_t size() const { return range_.size; }
  std::uintptr_t end() const { return range_.address + range_.size; }
  std::uint64_t iova() const { return range_.iova; }
  std::uint32_t lkey() const { return lkey_; }
  std::uint32_t rkey() const { return rkey_; }
  RegistrationKind kind() const { return kind_; }
  int gpu() const { return range_.gpu; }
  std::int16_t node() const { return node_; }
  /// For its maker, before others see it.
  void set_node(int node) { node_ = static_cast<std::int16_t>(node); }
  /// What peers may do.
  Rights rights() const;
  /// Whether the device may write here for this process: false for memory that is mapped read-only.
  bool is_writable() const { return (flags_ & IBV_ACCESS_LOCAL_WRITE) != 0; }

  bool covers(std::uintptr_t address, std::size_t size) const {
    return address >= range_.address && address - range_.address <= range_.size &&
           size <= range_.size - (address - range_.address);
  }
  /// Whether it serves who asks for `access`.
  bool grants(const Access& access) const;
  /// Of `size` bytes at `address`, both within the range.
  Keys keys(std::uintptr_t address, std::size_t size) const {
    return {.iova = range_.iova + (address - range_.address),
            .size = size,
            .lkey = lkey_,
            .rkey = rkey_,
            .gpu = static_cast<std::int16_t>(range_.gpu),
            .node = node_};
  }

 private:
  const std::shared_ptr<Domain> domain_;
  ibv_mr* const mr_;  ///< Null where there is a key_.
  const std::unique_ptr<BoundKey> key_;
  const std::uint32_t lkey_;
  const std::uint32_t rkey_;
  const Range range_;
  const RegistrationKind kind_;
  const int flags_;
  std::int16_t node_ = -1;
};

/// IBV_ACCESS_* of what is asked for: always with local writes, never with atomics, which the owner's CPU does.
int access_flags(const Access& access);

/// Refuses ranges of no bytes, past the end of the address space, or larger than the device's largest.
Status check_range(const Domain& domain, std::uintptr_t address, std::size_t size);

/// "registering 4 MiB at 0x7f.. with mlx5_0: Cannot allocate memory (errno 12)", with advice.
Status registration_failed(const Domain& domain, std::uintptr_t address, std::size_t size, std::string_view what,
                           int error);

/// Registers pages of this process: exactly the range. Memory that is mapped read-only is registered when peers get no
/// right to write; the result is not writable then. Large ranges are touched by at most `threads` threads first (see
/// touch_pages). Errors: kBusy when the limit of locked memory is reached, kInvalid when it is not mapped.
Result<std::shared_ptr<Registration>> register_host(const std::shared_ptr<Domain>& domain, const void* address,
                                                    std::size_t size, const Access& access,
                                                    unsigned threads = kTouchThreadsMax);
inline Result<std::shared_ptr<Registration>> register_host(const std::shared_ptr<Domain>& domain, const void* address,
                                                           std::size_t size, Rights rights) {
  return register_host(domain, address, size, Access{.rights = rights});
}

}  // namespace hawser::backend::verbs
