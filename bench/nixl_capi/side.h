#pragma once

// Side: one agent of the library under test, with its UCX backend and its memory, plain pages that the client maps.
//
// Thread rule: one thread. Lifetime: what it makes must die before it.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "blocks.h"
#include "library.h"

namespace nixl_bench {

/// How long a worker waits for the other side, in one operation.
inline constexpr int kPatienceSeconds = 60;

/// A wait that spins: looks at the clock now and then.
class Patience {
 public:
  explicit Patience(const char* what);
  /// Failure when it took too long.
  void spin() {
    if ((++spins_ & 255) == 0) look();
  }

 private:
  void look() const;

  const char* what_;
  std::int64_t end_ns_;
  std::uint32_t spins_ = 0;
};

std::int64_t now_ns();

class DescList {
 public:
  DescList(const Library& library, std::uintptr_t base, std::span<const std::uint64_t> offsets, std::uint64_t size);
  DescList(DescList&& other) noexcept : library_(other.library_), handle_(std::exchange(other.handle_, nullptr)) {}
  DescList& operator=(DescList&&) = delete;
  ~DescList();
  nixl_capi_xfer_dlist_t get() const { return handle_; }

 private:
  const Library& library_;
  nixl_capi_xfer_dlist_t handle_ = nullptr;
};

class RegList {
 public:
  /// `count` regions of `size` bytes, one after the other.
  RegList(const Library& library, std::uintptr_t base, std::uint64_t size, std::uint32_t count);
  RegList(const RegList&) = delete;
  RegList& operator=(const RegList&) = delete;
  ~RegList();
  nixl_capi_reg_dlist_t get() const { return handle_; }

 private:
  const Library& library_;
  nixl_capi_reg_dlist_t handle_ = nullptr;
};

class Side {
 public:
  struct Setup {
    std::string name;
    bool progress_thread = false;
    std::uint64_t arena = 0;
    bool touch = true;  ///< And register all of it.
  };
  Side(const Library& library, const Setup& setup);
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;
  /// Ends the agent, so that what the library keeps outside of the process goes, too. Nothing else may follow.
  void close();

  const Library& library() const { return library_; }
  nixl_capi_agent_t agent() const { return agent_; }
  std::byte* memory() const { return memory_; }
  std::uintptr_t base() const { return reinterpret_cast<std::uintptr_t>(memory_); }
  std::uint64_t arena() const { return setup_.arena; }

  /// What others load.
  std::vector<std::uint8_t> metadata() const;
  /// The agent's name.
  std::string load(std::span<const std::uint8_t> metadata) const;

  nixl_capi_xfer_req_t create(nixl_capi_xfer_op_t op, const DescList& local, const DescList& remote,
                              const std::string& peer, nixl_capi_opt_args_t options = nullptr) const;
  /// Polls until it is over; `status` is what the post gave.
  void finish(nixl_capi_xfer_req_t request, int status) const;
  void run(nixl_capi_xfer_req_t request) const { finish(request, post(request)); }
  int post(nixl_capi_xfer_req_t request) const { return library_.post_xfer_req(agent_, request, nullptr); }
  void release(nixl_capi_xfer_req_t request) const;

  /// Calls `take` for each notification that came: the sender's name and the text. Their number.
  std::size_t take_notifications(const std::function<void(const std::string&, std::string_view)>& take);
  void notify(const std::string& peer, std::string_view text) const;
  /// The map that notifications are read into; empty between calls.
  nixl_capi_notif_map_t map() const { return map_; }

 private:
  void open_backend();

  const Library& library_;
  const Setup setup_;
  nixl_capi_agent_t agent_ = nullptr;
  nixl_capi_backend_t backend_ = nullptr;
  nixl_capi_notif_map_t map_ = nullptr;
  std::byte* memory_ = nullptr;
};

}  // namespace nixl_bench
