#include "backend/verbs/gpu/segments_mlx5.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <thread>
#include <utility>

#include "base/fd.h"
#include "base/format.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

/// More than any device has; a list must fit in one work request.
constexpr int kSegmentPieces = 64;
/// Polls before the thread lets others run.
constexpr int kSpins = 1000;
constexpr int kGidsMax = 256;

Status key_failed(const Domain& domain, std::string_view call, int error) {
  return base::errno_status(base::format("{} for an indirect key of {}", call, domain.name()), error != 0 ? error : EIO)
      .with_device(domain.name());
}

bool is_no_gid(const ibv_gid& gid) {
  return std::all_of(std::begin(gid.raw), std::end(gid.raw), [](std::uint8_t byte) { return byte == 0; });
}

/// Where a queue pair finds itself.
struct Self {
  std::uint8_t port = 0;
  ibv_port_attr attr{};
  ibv_gid gid{};
  std::uint8_t gid_index = 0;
  bool is_global = false;
};

Result<Self> find_self(const Domain& domain) {
  Verbs& verbs = domain.verbs();
  Self self;
  for (int port = 1; port <= domain.attributes().phys_port_cnt; ++port) {
    self.port = static_cast<std::uint8_t>(port);
    const int error = verbs.query_port(domain.context(), self.port, &self.attr);
    if (error != 0 || self.attr.state != IBV_PORT_ACTIVE) continue;
    self.is_global = self.attr.link_layer == IBV_LINK_LAYER_ETHERNET;
    if (!self.is_global) return self;
    for (int index = 0; index < std::min(self.attr.gid_tbl_len, kGidsMax); ++index) {
      self.gid_index = static_cast<std::uint8_t>(index);
      if (verbs.query_gid(domain.context(), self.port, index, &self.gid) == 0 && !is_no_gid(self.gid)) return self;
    }
  }
  return Status(Code::kUnsupported, base::format("{} has no active port with an address", domain.name()))
      .with_device(domain.name());
}

Result<std::vector<ibv_sge>> list_of(const std::vector<std::shared_ptr<Registration>>& pieces) {
  std::vector<ibv_sge> list;
  std::uintptr_t at = pieces.front()->address();
  for (const std::shared_ptr<Registration>& piece : pieces) {
    if (piece->address() != at || piece->size() > std::numeric_limits<std::uint32_t>::max()) {
      return Status(Code::kInvalid, "pieces of an indirect key follow each other, each below 4 GiB");
    }
    list.push_back({piece->iova(), static_cast<std::uint32_t>(piece->size()), piece->lkey()});
    at = piece->end();
  }
  return list;
}

}  // namespace

/// A queue pair connected to itself, with its completion queue.
class Mlx5Keys::Loop {
 public:
  static Result<std::unique_ptr<Loop>> make(const std::shared_ptr<Domain>& domain, Mlx5& mlx5, std::size_t pieces_max) {
    HAWSER_TRY_ASSIGN(const Self self, find_self(*domain));
    std::unique_ptr<Loop> loop(new Loop(domain));
    errno = 0;
    loop->cq_ = domain->verbs().create_cq(domain->context(), 4, nullptr, nullptr, 0);
    if (loop->cq_ == nullptr) return key_failed(*domain, "ibv_create_cq", errno);
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = loop->cq_;
    attr.qp_type = IBV_QPT_RC;
    attr.cap = {.max_send_wr = 4,
                .max_recv_wr = 0,
                .max_send_sge = 1,
                .max_recv_sge = 0,
                .max_inline_data = static_cast<std::uint32_t>(pieces_max * sizeof(ibv_sge))};
    errno = 0;
    loop->qp_ = mlx5.create_qp(domain->pd(), attr);
    if (loop->qp_ == nullptr) return key_failed(*domain, "mlx5dv_create_qp", errno);
    HAWSER_TRY(loop->connect(self));
    return loop;
  }
  ~Loop() {
    if (qp_ != nullptr) domain_->end([verbs = &domain_->verbs(), qp = qp_] { return verbs->destroy_qp(qp); });
    if (cq_ != nullptr) domain_->end([verbs = &domain_->verbs(), cq = cq_] { return verbs->destroy_cq(cq); });
  }
  Loop(const Loop&) = delete;
  Loop& operator=(const Loop&) = delete;

  ibv_qp* qp() const { return qp_; }
  ibv_cq* cq() const { return cq_; }

 private:
  explicit Loop(std::shared_ptr<Domain> domain) : domain_(std::move(domain)) {}

  Status modify(ibv_qp_attr& attr, int mask, std::string_view state) {
    const int error = domain_->verbs().modify_qp(qp_, &attr, mask);
    return error == 0 ? Status() : key_failed(*domain_, base::format("ibv_modify_qp to {}", state), error);
  }

  Status connect(const Self& self) {
    ibv_qp_attr init{};
    init.qp_state = IBV_QPS_INIT;
    init.port_num = self.port;
    HAWSER_TRY(modify(init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS, "INIT"));
    ibv_qp_attr ready{};
    ready.qp_state = IBV_QPS_RTR;
    ready.path_mtu = IBV_MTU_1024;
    ready.dest_qp_num = qp_->qp_num;
    ready.ah_attr.dlid = self.attr.lid;
    ready.ah_attr.port_num = self.port;
    ready.ah_attr.is_global = self.is_global ? 1 : 0;
    ready.ah_attr.grh.dgid = self.gid;
    ready.ah_attr.grh.sgid_index = self.gid_index;
    ready.ah_attr.grh.hop_limit = 1;
    HAWSER_TRY(modify(ready,
                      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                          IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
                      "RTR"));
    ibv_qp_attr send{};
    send.qp_state = IBV_QPS_RTS;
    send.timeout = 14;
    send.retry_cnt = 7;
    return modify(
        send,
        IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC,
        "RTS");
  }

  const std::shared_ptr<Domain> domain_;
  ibv_cq* cq_ = nullptr;
  ibv_qp* qp_ = nullptr;
};

class Mlx5Keys::Key final : public BoundKey {
 public:
  Key(std::shared_ptr<Mlx5> mlx5, mlx5dv_mkey* key, std::vector<std::shared_ptr<Registration>> pieces)
      : mlx5_(std::move(mlx5)), key_(key), pieces_(std::move(pieces)) {}
  ~Key() override {
    const std::shared_ptr<Domain> domain = pieces_.front()->domain();
    const std::uintptr_t begin = pieces_.front()->address();
    const std::size_t size = pieces_.back()->end() - begin;
    domain->end([mlx5 = mlx5_, key = key_] { return mlx5->destroy_mkey(key); }, {begin, size});
  }
  std::uint32_t lkey() const override { return key_->lkey; }
  std::uint32_t rkey() const override { return key_->rkey; }

 private:
  const std::shared_ptr<Mlx5> mlx5_;
  mlx5dv_mkey* const key_;
  const std::vector<std::shared_ptr<Registration>> pieces_;  ///< Ended after the key.
};

Mlx5Keys::Mlx5Keys(std::shared_ptr<Domain> domain, std::shared_ptr<Mlx5> mlx5, const Clock& clock,
                   std::size_t pieces_max)
    : domain_(std::move(domain)), mlx5_(std::move(mlx5)), clock_(clock), pieces_max_(pieces_max) {}

Mlx5Keys::~Mlx5Keys() = default;

Result<std::unique_ptr<Mlx5Keys>> Mlx5Keys::open(std::shared_ptr<Domain> domain, std::shared_ptr<Mlx5> mlx5,
                                                 const Clock& clock) {
  if (!mlx5->supports(domain->context()->device)) {
    return Status(Code::kUnsupported, base::format("{} is no mlx5 device: it has no indirect keys", domain->name()))
        .with_device(domain->name());
  }
  const auto pieces_max = static_cast<std::size_t>(std::clamp(domain->attributes().max_sge, 1, kSegmentPieces));
  return std::unique_ptr<Mlx5Keys>(new Mlx5Keys(std::move(domain), std::move(mlx5), clock, pieces_max));
}

Result<std::shared_ptr<Registration>> Mlx5Keys::bind(const std::vector<std::shared_ptr<Registration>>& pieces,
                                                     const Access& access) {
  if (pieces.empty() || pieces.size() > pieces_max_) {
    return Status(Code::kInvalid, base::format("an indirect key of {} has 1 to {} pieces, not {}", domain_->name(),
                                               pieces_max_, pieces.size()));
  }
  HAWSER_TRY_ASSIGN(std::vector<ibv_sge> list, list_of(pieces));
  const base::MutexLock lock(mutex_);
  if (loop_ == nullptr) {
    HAWSER_TRY_ASSIGN(loop_, Loop::make(domain_, *mlx5_, pieces_max_));
  }
  errno = 0;
  mlx5dv_mkey* mkey = mlx5_->create_mkey(domain_->pd(), static_cast<std::uint16_t>(pieces_max_));
  if (mkey == nullptr) return key_failed(*domain_, "mlx5dv_create_mkey", errno);
  auto key = std::make_unique<Key>(mlx5_, mkey, pieces);
  const int flags = access_flags(access) & ~IBV_ACCESS_RELAXED_ORDERING;
  if (const Status status = post_and_wait(mkey, list, flags); !status.ok()) {
    loop_.reset();  // Before the key: the work request may still be on its way.
    return status;
  }
  const std::uintptr_t begin = pieces.front()->address();
  const Registration::Range range{begin, pieces.back()->end() - begin, 0, pieces.front()->gpu()};
  return std::make_shared<Registration>(domain_, std::move(key), range, flags);
}

Status Mlx5Keys::post_and_wait(mlx5dv_mkey* key, std::span<ibv_sge> list, int access) {
  const std::uint64_t wr_id = ++next_wr_id_;
  const int posted = mlx5_->post_list(loop_->qp(), key, static_cast<std::uint32_t>(access), list, wr_id);
  if (posted != 0) return key_failed(*domain_, "posting the list", posted);
  const Instant deadline = clock_.now() + kBindMax;
  for (int spins = 0; clock_.now() < deadline; ++spins) {
    ibv_wc completion{};
    const int count = domain_->verbs().poll_cq(loop_->cq(), 1, &completion);
    if (count < 0) return key_failed(*domain_, "ibv_poll_cq", EIO);
    if (count == 0) {
      if (spins >= kSpins) std::this_thread::yield();
      continue;
    }
    if (completion.status == IBV_WC_SUCCESS && completion.wr_id == wr_id) return {};
    return Status(Code::kFailed,
                  base::format("binding an indirect key of {} ended with status {}, vendor error {:#x}",
                               domain_->name(), static_cast<int>(completion.status), completion.vendor_err))
        .with_device(domain_->name());
  }
  return Status(Code::kTimedOut, base::format("an indirect key of {} was not bound within 1 s", domain_->name()))
      .with_device(domain_->name());
}

}  // namespace hawser::backend::verbs
