#pragma once

// DeviceList: the list of devices as libibverbs lends it. Devices are good while it lives, opened ones longer.
//
// Thread rule: one thread. Lifetime: within its Verbs'.

#include <cerrno>
#include <cstddef>
#include <span>

#include "backend/verbs/library/verbs.h"

namespace hawser::backend::verbs {

class DeviceList {
 public:
  explicit DeviceList(Verbs& verbs) : verbs_(verbs) {
    errno = 0;
    list_ = verbs_.get_device_list(&count_);
    if (list_ == nullptr) error_ = errno != 0 ? errno : ENOSYS;
  }
  ~DeviceList() {
    if (list_ != nullptr) verbs_.free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  /// 0, or why there is no list.
  int error() const { return error_; }
  std::span<ibv_device* const> devices() const {
    return {list_, list_ == nullptr ? 0 : static_cast<std::size_t>(count_)};
  }

 private:
  Verbs& verbs_;
  ibv_device** list_ = nullptr;
  int count_ = 0;
  int error_ = 0;
};

}  // namespace hawser::backend::verbs
