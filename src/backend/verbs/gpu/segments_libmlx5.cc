#include <cerrno>
#include <utility>

#include "backend/verbs/gpu/segments_mlx5.h"
#include "base/dylib.h"

namespace hawser::backend::verbs {
namespace {

struct Mlx5Table {
  bool (*is_supported)(ibv_device*);
  ibv_qp* (*create_qp)(ibv_context*, ibv_qp_init_attr_ex*, mlx5dv_qp_init_attr*);
  mlx5dv_qp_ex* (*qp_ex)(ibv_qp_ex*);
  mlx5dv_mkey* (*create_mkey)(mlx5dv_mkey_init_attr*);
  int (*destroy_mkey)(mlx5dv_mkey*);
  ibv_qp_ex* (*to_qp_ex)(ibv_qp*);
};

class LibMlx5 final : public Mlx5 {
 public:
  LibMlx5(base::Dylib mlx5, base::Dylib ibverbs, const Mlx5Table& table)
      : mlx5_(std::move(mlx5)), ibverbs_(std::move(ibverbs)), table_(table) {
    mlx5_.keep_loaded();  // Providers register what they never take back.
    ibverbs_.keep_loaded();
  }

  bool supports(ibv_device* device) override { return table_.is_supported(device); }

  ibv_qp* create_qp(ibv_pd* pd, const ibv_qp_init_attr& attr) override {
    ibv_qp_init_attr_ex extended{};
    extended.send_cq = attr.send_cq;
    extended.recv_cq = attr.recv_cq;
    extended.cap = attr.cap;
    extended.qp_type = attr.qp_type;
    extended.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    extended.pd = pd;
    extended.send_ops_flags = IBV_QP_EX_WITH_SEND;
    mlx5dv_qp_init_attr special{};
    special.comp_mask = MLX5DV_QP_INIT_ATTR_MASK_SEND_OPS_FLAGS;
    special.send_ops_flags = MLX5DV_QP_EX_WITH_MR_LIST;
    return table_.create_qp(pd->context, &extended, &special);
  }

  mlx5dv_mkey* create_mkey(ibv_pd* pd, std::uint16_t entries) override {
    mlx5dv_mkey_init_attr attr{.pd = pd, .create_flags = MLX5DV_MKEY_INIT_ATTR_FLAGS_INDIRECT, .max_entries = entries};
    return table_.create_mkey(&attr);
  }
  int destroy_mkey(mlx5dv_mkey* key) override { return table_.destroy_mkey(key); }

  int post_list(ibv_qp* qp, mlx5dv_mkey* key, std::uint32_t access, std::span<ibv_sge> list,
                std::uint64_t wr_id) override {
    ibv_qp_ex* extended = table_.to_qp_ex(qp);
    mlx5dv_qp_ex* special = extended != nullptr ? table_.qp_ex(extended) : nullptr;
    if (special == nullptr) return EOPNOTSUPP;
    ibv_wr_start(extended);
    extended->wr_id = wr_id;
    extended->wr_flags = IBV_SEND_INLINE | IBV_SEND_SIGNALED;
    mlx5dv_wr_mr_list(special, key, access, static_cast<std::uint16_t>(list.size()), list.data());
    return ibv_wr_complete(extended);
  }

 private:
  base::Dylib mlx5_;
  base::Dylib ibverbs_;
  const Mlx5Table table_;
};

}  // namespace

Result<std::unique_ptr<Mlx5>> open_mlx5() {
  Result<base::Dylib> mlx5 = base::Dylib::open({"libmlx5.so.1"});
  if (!mlx5) return Status(Code::kUnsupported, "libmlx5 cannot be opened").because(mlx5.error());
  Result<base::Dylib> ibverbs = base::Dylib::open({"libibverbs.so.1"});
  if (!ibverbs) return Status(Code::kUnsupported, "libibverbs cannot be opened").because(ibverbs.error());
  Mlx5Table table{};
  Status missing;
  mlx5->bind("mlx5dv_is_supported", &table.is_supported, &missing);
  mlx5->bind("mlx5dv_create_qp", &table.create_qp, &missing);
  mlx5->bind("mlx5dv_qp_ex_from_ibv_qp_ex", &table.qp_ex, &missing);
  mlx5->bind("mlx5dv_create_mkey", &table.create_mkey, &missing);
  mlx5->bind("mlx5dv_destroy_mkey", &table.destroy_mkey, &missing);
  ibverbs->bind("ibv_qp_to_qp_ex", &table.to_qp_ex, &missing);
  if (!missing.ok()) {
    return Status(Code::kUnsupported, "libmlx5 is too old for indirect keys: rdma-core 28 or later").because(missing);
  }
  return std::unique_ptr<Mlx5>(new LibMlx5(*std::move(mlx5), *std::move(ibverbs), table));
}

}  // namespace hawser::backend::verbs
