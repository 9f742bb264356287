#pragma once

// Inside: how the library's own code gets at what stands behind a public handle. Users have no way there.
//
// Thread rule: that of the handle.

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN

/// A friend of the handles.
struct Inside {
  template <typename Handle>
  static const auto& core(const Handle& handle) {
    return handle.core_;
  }
  template <typename Handle>
  static void let_go(Handle& handle) {
    handle.core_.reset();
  }
  template <typename Handle>
  static auto slot(const Handle& handle) {
    return handle.slot_;
  }
};

/// The pointer behind the handle; null where the handle is empty.
template <typename Handle>
const auto& core_of(const Handle& handle) {
  return Inside::core(handle);
}
/// Empties a handle that is not its owner's: what is behind it stays as it is.
template <typename Handle>
void let_go(Handle& handle) {
  Inside::let_go(handle);
}
/// The slot behind a transfer's handle.
template <typename Handle>
auto slot_of(const Handle& handle) {
  return Inside::slot(handle);
}

HAWSER_NAMESPACE_END
