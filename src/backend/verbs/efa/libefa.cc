#include "backend/verbs/efa/libefa.h"

#include <utility>

#include "base/dylib.h"

namespace hawser::backend::verbs {

struct LibEfa::Library {
  explicit Library(base::Dylib its_handle) : handle(std::move(its_handle)) { handle.keep_loaded(); }
  base::Dylib handle;
  int (*query_device)(ibv_context*, efadv_device_attr*, std::uint32_t) = nullptr;
  ibv_qp* (*create_qp_ex)(ibv_context*, ibv_qp_init_attr_ex*, efadv_qp_init_attr*, std::uint32_t) = nullptr;
};

LibEfa::LibEfa() = default;
LibEfa::~LibEfa() = default;

/// Null: `missing_` tells why. What it returns stays.
LibEfa::Library* LibEfa::open() {
  const base::MutexLock lock(mutex_);
  if (std::exchange(was_opened_, true)) return library_.get();
  Result<base::Dylib> opened = base::Dylib::open({"libefa.so.1"});
  if (!opened) {
    missing_ = Status(Code::kUnsupported, "libefa cannot be opened")
                   .because(opened.error())
                   .with_advice("install rdma-core's EFA provider (Debian: ibverbs-providers; AWS: the EFA installer)");
    return nullptr;
  }
  auto library = std::make_unique<Library>(*std::move(opened));
  Status first_missing;
  library->handle.bind("efadv_query_device", &library->query_device, &first_missing);
  library->handle.bind("efadv_create_qp_ex", &library->create_qp_ex, &first_missing);
  if (!first_missing.ok()) {
    missing_ = Status(Code::kUnsupported, "libefa is too old")
                   .because(first_missing)
                   .with_advice("install rdma-core 46 or later, the first with RDMA writes on EFA");
    return nullptr;
  }
  library_ = std::move(library);
  return library_.get();
}

Status LibEfa::state() {
  if (open() != nullptr) return {};
  const base::MutexLock lock(mutex_);
  return missing_;
}

int LibEfa::query_efa(ibv_context* context, efadv_device_attr* attr) {
  const Library* const library = open();
  return library == nullptr ? EOPNOTSUPP : library->query_device(context, attr, sizeof(*attr));
}

ibv_qp* LibEfa::create_srd(ibv_context* context, ibv_qp_init_attr_ex* attr) {
  const Library* const library = open();
  if (library == nullptr) {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  efadv_qp_init_attr special{};
  special.driver_qp_type = EFADV_QP_DRIVER_TYPE_SRD;
  return library->create_qp_ex(context, attr, &special, sizeof(special));
}

}  // namespace hawser::backend::verbs
