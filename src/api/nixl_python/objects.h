#pragma once

// The contents of NIXL's Python classes: lists by value, everything that has a handle in a table.
//
// Handles are numbers that are never used again, so a released or invented one is told from a good one.
// Thread rule: used with Python's global lock held; calls that may take long give it up (see gil.h).

#include <hawser/compat/agent.h>
#include <nanobind/nanobind.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/gil.h"

namespace hawser::api::nixl_python {

namespace nb = nanobind;

/// Makes NIXL's twelve exception classes.
void bind_errors(nb::module_& module);
/// Raises the class of NIXL's code of `status`; its text is the code's name, as clients match it. The whole story
/// is in its attribute `details` and, from Python 3.11 on, a note.
[[noreturn]] void raise(const Status& status);
/// As above, for a code without a status.
[[noreturn]] void raise(compat::NixlCode code, const std::string& details);
inline void check(const Status& status) {
  if (!status.ok()) raise(status);
}
template <typename T>
T take(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}

/// A str (as UTF-8), bytes or a bytearray, as all are given for names and messages. Views `from`, but for a bytearray,
/// which others may change while Python's lock is given up.
class Text {
 public:
  Text() = default;
  Text(nb::handle from, const char* what);
  std::string_view view() const { return is_own_ ? std::string_view(own_) : lent_; }
  operator std::string_view() const { return view(); }

 private:
  bool is_own_ = false;
  std::string own_;
  std::string_view lent_;
};
nb::str str_of(std::string_view text);
inline nb::bytes bytes_of(std::string_view bytes) { return nb::bytes(bytes.data(), bytes.size()); }

struct XferList {
  compat::XferDescList list;
  mutable int readers = 0;  ///< Threads that read it without Python's lock; nobody may change it then.
};
struct RegList {
  compat::RegDescList list;
  mutable int readers = 0;
};
/// While it lives, the list is read without Python's lock. Made and destroyed with it.
template <typename Holder>
class Reading {
 public:
  explicit Reading(const Holder& holder) : holder_(holder) { ++holder_.readers; }
  ~Reading() { --holder_.readers; }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  const Holder& holder_;
};
/// For memory views, which need a GPU: kept, compared, never used.
struct RemoteList {
  compat::MemType type = compat::MemType::kDram;
  std::vector<std::pair<compat::Desc, std::string>> all;
};

/// One thing of an agent under a handle.
template <typename T>
class Table {
 public:
  std::uint64_t add(std::shared_ptr<T> object) {
    const std::uint64_t handle = ++last_;
    all_.emplace(handle, std::move(object));
    return handle;
  }
  /// Raises nixlInvalidParamError for what is no handle.
  const std::shared_ptr<T>& find(std::uint64_t handle, const char* what) const {
    const auto found = all_.find(handle);
    if (found == all_.end()) {
      raise(compat::NixlCode::kInvalidParam,
            std::string(what) + " " + std::to_string(handle) + " was released or never made");
    }
    return found->second;
  }
  void remove(std::uint64_t handle) { all_.erase(handle); }
  /// The handle of one that `is_it`.
  template <typename Test>
  std::optional<std::uint64_t> find_if(Test is_it) const {
    for (const auto& [handle, object] : all_) {
      if (is_it(*object)) return handle;
    }
    return std::nullopt;
  }

 private:
  static inline std::uint64_t last_ = 0x1000;  ///< Over all agents: another agent's handle is not one of ours.
  std::unordered_map<std::uint64_t, std::shared_ptr<T>> all_;
};

/// Integers as make_xfer_req wants them, from a list, what else gives them one by one, or a one-dimensional array of
/// any integer type.
class Indices {
 public:
  Indices(nb::handle from, const char* what);
  std::span<const std::int32_t> view() const { return view_; }

 private:
  void from_items(nb::handle from);
  void from_array(nb::handle from, const char* what);

  nb::object owner_;
  std::vector<std::int32_t> own_;
  std::span<const std::int32_t> view_;
};

/// Rows of `columns` 64-bit integers, as they lie; ValueError for anything else.
std::span<const std::uint64_t> rows_of(nb::handle array, std::size_t columns, nb::object& owner);

void bind_values(nb::module_& module);
void bind_lists(nb::module_& module);
void bind_agent(nb::module_& module);

}  // namespace hawser::api::nixl_python
