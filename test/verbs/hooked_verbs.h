#pragma once

// The real libibverbs with faults that a test puts between: queue pairs that are set to error under their owner,
// receives that are not posted yet, and what the test does to others at an exact moment of an agent's mending. An agent
// on it is the real thing but for that.
//
// Thread rule: any thread.

#include <atomic>
#include <cerrno>
#include <functional>
#include <list>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backend/backend.h"
#include "backend/tcp/factory.h"
#include "backend/verbs/backend.h"
#include "backend/verbs/devices/device.h"
#include "backend/verbs/library/libibverbs.h"
#include "base/mutex.h"
#include "base/try.h"

namespace hawser {

class HookedVerbs final : public backend::verbs::Verbs {
 public:
  explicit HookedVerbs(std::unique_ptr<backend::verbs::Verbs> real) : real_(std::move(real)) {}

  /// Sets all queue pairs that there are to error. How many took it.
  int break_queue_pairs() {
    const base::MutexLock lock(mutex_);
    int broken = 0;
    for (ibv_qp* qp : queue_pairs_) {
      ibv_qp_attr attr = {};
      attr.qp_state = IBV_QPS_ERR;
      broken += real_->modify_qp(qp, &attr, IBV_QP_STATE) == 0 ? 1 : 0;
    }
    return broken;
  }
  int queue_pairs_made() const {
    const base::MutexLock lock(mutex_);
    return made_;
  }
  /// From now on receives are kept here; false: those that were are posted.
  void hold_receives(bool hold) {
    const base::MutexLock lock(mutex_);
    holds_ = hold;
    if (hold) return;
    for (Held& each : held_) {
      ibv_recv_wr* bad = nullptr;
      each.request.sg_list = each.pieces.data();
      (void)real_->post_recv(each.qp, &each.request, &bad);
    }
    held_.clear();
  }

  /// When a queue pair that was set to error is mended, its owner is struck once, by the owner's own thread.
  enum class At : std::uint8_t {
    kNowhere,
    kDraining,    ///< The first of what was posted came back; the rest does not until then.
    kBackoff,     ///< An attempt to make another failed.
    kConnecting,  ///< Another is about to be made, and the peer to be told of it.
  };
  void strike(At moment, std::function<void()> blow) {
    blow_ = std::move(blow);
    moment_ = moment;
  }
  bool has_struck() const { return moment_ == At::kNowhere; }

  std::string describe() const override { return real_->describe() + ", hooked"; }
  ibv_device** get_device_list(int* count) override { return real_->get_device_list(count); }
  void free_device_list(ibv_device** list) override { real_->free_device_list(list); }
  ibv_context* open_device(ibv_device* device) override { return real_->open_device(device); }
  int close_device(ibv_context* context) override { return real_->close_device(context); }
  int query_device(ibv_context* context, ibv_device_attr* attr) override { return real_->query_device(context, attr); }
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override {
    return real_->query_port(context, port, attr);
  }
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override {
    return real_->query_gid(context, port, index, gid);
  }
  int get_async_event(ibv_context* context, ibv_async_event* event) override {
    return real_->get_async_event(context, event);
  }
  void ack_async_event(ibv_async_event* event) override { real_->ack_async_event(event); }
  ibv_pd* alloc_pd(ibv_context* context) override { return real_->alloc_pd(context); }
  int dealloc_pd(ibv_pd* pd) override { return real_->dealloc_pd(pd); }
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override {
    return real_->reg_mr(pd, address, size, access);
  }
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size, std::uint64_t iova, int fd,
                        int access) override {
    return real_->reg_dmabuf_mr(pd, offset, size, iova, fd, access);
  }
  int dereg_mr(ibv_mr* mr) override { return real_->dereg_mr(mr); }
  ibv_comp_channel* create_comp_channel(ibv_context* context) override { return real_->create_comp_channel(context); }
  int destroy_comp_channel(ibv_comp_channel* channel) override { return real_->destroy_comp_channel(channel); }
  ibv_cq* create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) override {
    return real_->create_cq(context, entries, owner, channel, vector);
  }
  int destroy_cq(ibv_cq* cq) override { return real_->destroy_cq(cq); }
  int req_notify_cq(ibv_cq* cq, int solicited_only) override { return real_->req_notify_cq(cq, solicited_only); }
  int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq) override { return real_->get_cq_event(channel, cq); }
  void ack_cq_events(ibv_cq* cq, unsigned count) override { real_->ack_cq_events(cq, count); }
  int poll_cq(ibv_cq* cq, int count, ibv_wc* out) override {
    if (is_due_.exchange(false)) strike_now();
    if (moment_ != At::kDraining) return real_->poll_cq(cq, count, out);
    const int taken = real_->poll_cq(cq, 1, out);
    // The owner drains once it has seen that one; it comes here again for the next.
    if (taken == 1 && out->status != IBV_WC_SUCCESS) is_due_ = true;
    return taken;
  }
  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override {
    if (moment_ == At::kConnecting) strike_now();
    if (moment_ == At::kBackoff) {
      is_due_ = true;
      errno = ENOMEM;
      return nullptr;
    }
    ibv_qp* const made = real_->create_qp(pd, attr);
    const base::MutexLock lock(mutex_);
    if (made != nullptr) queue_pairs_.insert(made);
    made_ += made != nullptr ? 1 : 0;
    return made;
  }
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override { return real_->modify_qp(qp, attr, mask); }
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override {
    return real_->query_qp(qp, attr, mask, init);
  }
  int destroy_qp(ibv_qp* qp) override {
    const base::MutexLock lock(mutex_);
    queue_pairs_.erase(qp);
    held_.remove_if([&](const Held& each) { return each.qp == qp; });
    return real_->destroy_qp(qp);
  }
  int raw_queue(ibv_qp* qp, backend::verbs::RawQueue* out) override { return real_->raw_queue(qp, out); }
  int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override { return real_->post_send(qp, first, bad); }
  int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override {
    const base::MutexLock lock(mutex_);
    if (!holds_) return real_->post_recv(qp, first, bad);
    for (const ibv_recv_wr* each = first; each != nullptr; each = each->next) {
      Held& held = held_.emplace_back(Held{.qp = qp, .request = *each, .pieces = {}});
      held.request.next = nullptr;
      held.pieces.assign(each->sg_list, each->sg_list + each->num_sge);
    }
    return 0;
  }

 private:
  struct Held {
    ibv_qp* qp = nullptr;
    ibv_recv_wr request = {};
    std::vector<ibv_sge> pieces;
  };
  void strike_now() {
    blow_();
    moment_ = At::kNowhere;
  }

  const std::unique_ptr<backend::verbs::Verbs> real_;
  std::function<void()> blow_;  ///< Set before the moment is.
  std::atomic<At> moment_ = At::kNowhere;
  std::atomic<bool> is_due_ = false;  ///< At the next look for completions.
  mutable base::Mutex mutex_;
  std::set<ibv_qp*> queue_pairs_ HAWSER_GUARDED_BY(mutex_);
  std::list<Held> held_ HAWSER_GUARDED_BY(mutex_);
  bool holds_ HAWSER_GUARDED_BY(mutex_) = false;
  int made_ HAWSER_GUARDED_BY(mutex_) = 0;
};

/// Named "verbs", over this host's devices by way of `verbs`.
inline backend::Factory hooked_factory(std::shared_ptr<HookedVerbs> verbs) {
  const auto open = [verbs](const backend::Context& context,
                            const Params& params) -> Result<std::unique_ptr<backend::Backend>> {
    HAWSER_TRY_ASSIGN(backend::verbs::VerbsOptions options, backend::verbs::read_verbs_options(params));
    const std::vector<backend::verbs::DeviceInfo> devices = backend::verbs::read_devices();
    HAWSER_TRY_ASSIGN(auto nics, backend::verbs::open_nics(verbs, devices, {}, &options));
    HAWSER_TRY_ASSIGN(backend::TcpDoor door, backend::open_tcp_door(options.control, context));
    return backend::verbs::make_backend(context, std::move(options), std::move(nics), std::move(door));
  };
  return {.name = "verbs", .default_rank = 15, .open = open};
}

}  // namespace hawser
