#include "backend/verbs/library/raw_queue.h"

#include <infiniband/mlx5dv.h>

#include <utility>

#include "base/dylib.h"

namespace hawser::backend::verbs {

struct RawQueues::Library {
  explicit Library(base::Dylib its_handle) : handle(std::move(its_handle)) { handle.keep_loaded(); }
  base::Dylib handle;
  bool (*is_supported)(ibv_device*) = nullptr;
  int (*init_obj)(mlx5dv_obj*, std::uint64_t) = nullptr;
};

RawQueues::RawQueues() = default;
RawQueues::~RawQueues() = default;

int RawQueues::find(ibv_qp* qp, RawQueue* out) {
  const base::MutexLock lock(mutex_);
  if (!std::exchange(was_opened_, true)) {
    Result<base::Dylib> opened = base::Dylib::open({"libmlx5.so.1"});
    if (opened) {
      auto library = std::make_unique<Library>(*std::move(opened));
      Status missing;
      library->handle.bind("mlx5dv_is_supported", &library->is_supported, &missing);
      library->handle.bind("mlx5dv_init_obj", &library->init_obj, &missing);
      if (missing.ok()) library_ = std::move(library);
    }
  }
  if (library_ == nullptr || !library_->is_supported(qp->context->device)) return EOPNOTSUPP;
  mlx5dv_qp told{};
  mlx5dv_obj object{};
  object.qp.in = qp;
  object.qp.out = &told;
  if (const int error = library_->init_obj(&object, MLX5DV_OBJ_QP); error != 0) return error;
  *out = {.entries = told.sq.buf,
          .count = told.sq.wqe_cnt,
          .stride = told.sq.stride,
          .doorbell_record = told.dbrec,
          .doorbell = told.bf.reg};
  return 0;
}

}  // namespace hawser::backend::verbs
