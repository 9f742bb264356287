#pragma once

// Verbs: what this library calls of libibverbs, as an interface. The real one (libibverbs.h) is opened at run time; the
// mock (mock_fabric.h) drives what no device here can do, and the failure of each call.
//
// Every call has the meaning and the errors of its namesake in libibverbs (see its manual pages): a pointer is null
// with errno set, an int is 0 or an errno value, unless a comment says otherwise. The defaults answer EOPNOTSUPP, so a
// fake implements what its test needs.
//
// Thread rule: as libibverbs: every call from any thread; one queue's calls by one thread at a time.
// Lifetime: outlives every object that was made with it.

#include <infiniband/efadv.h>
#include <infiniband/verbs.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string>

namespace hawser::backend::verbs {

/// A send queue as a device-side poster uses it; owned by its queue pair.
struct RawQueue {
  void* entries = nullptr;
  std::uint32_t count = 0, stride = 0;  ///< Entries, and bytes of one.
  void* doorbell_record = nullptr;      ///< Counters in memory.
  void* doorbell = nullptr;             ///< The device's register.
};

class Verbs {
 public:
  virtual ~Verbs() = default;

  /// For people: which library was opened, or "mock".
  virtual std::string describe() const = 0;

  // Devices.
  virtual ibv_device** get_device_list(int* count) { return nothing<ibv_device*>(count); }
  virtual void free_device_list(ibv_device**) {}
  virtual ibv_context* open_device(ibv_device*) { return nothing<ibv_context>(); }
  virtual int close_device(ibv_context*) { return EOPNOTSUPP; }
  virtual int query_device(ibv_context*, ibv_device_attr*) { return EOPNOTSUPP; }
  virtual int query_port(ibv_context*, std::uint8_t, ibv_port_attr*) { return EOPNOTSUPP; }
  virtual int query_gid(ibv_context*, std::uint8_t, int, ibv_gid*) { return EOPNOTSUPP; }
  /// How many of `entries` were filled, of all ports, those in use only; else a negative errno value. EOPNOTSUPP: the
  /// library has no such call.
  virtual std::ptrdiff_t query_gid_table(ibv_context*, ibv_gid_entry*, std::size_t) { return -EOPNOTSUPP; }
  /// 0 and `event` is filled; EAGAIN: none now (the context's async_fd is made non-blocking by its owner).
  virtual int get_async_event(ibv_context*, ibv_async_event*) { return EOPNOTSUPP; }
  virtual void ack_async_event(ibv_async_event*) {}

  // Domains and memory.
  virtual ibv_pd* alloc_pd(ibv_context*) { return nothing<ibv_pd>(); }
  virtual int dealloc_pd(ibv_pd*) { return EOPNOTSUPP; }
  virtual ibv_mr* reg_mr(ibv_pd*, void*, std::size_t, int) { return nothing<ibv_mr>(); }
  /// pd, offset in the dmabuf, length, iova, descriptor (the caller's still), access.
  virtual ibv_mr* reg_dmabuf_mr(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int) {
    return nothing<ibv_mr>();
  }
  virtual int dereg_mr(ibv_mr*) { return EOPNOTSUPP; }

  // Completions.
  virtual ibv_comp_channel* create_comp_channel(ibv_context*) { return nothing<ibv_comp_channel>(); }
  virtual int destroy_comp_channel(ibv_comp_channel*) { return EOPNOTSUPP; }
  virtual ibv_cq* create_cq(ibv_context*, int, void*, ibv_comp_channel*, int) { return nothing<ibv_cq>(); }
  virtual int destroy_cq(ibv_cq*) { return EOPNOTSUPP; }
  virtual int req_notify_cq(ibv_cq*, int) { return EOPNOTSUPP; }
  /// 0 and `cq` is set; EAGAIN: none now (the channel's fd is made non-blocking by its owner).
  virtual int get_cq_event(ibv_comp_channel*, ibv_cq**) { return EOPNOTSUPP; }
  virtual void ack_cq_events(ibv_cq*, unsigned) {}
  /// How many of `out` were filled; negative: the queue is broken.
  virtual int poll_cq(ibv_cq*, int, ibv_wc*) { return -1; }

  // Queue pairs.
  virtual ibv_qp* create_qp(ibv_pd*, ibv_qp_init_attr*) { return nothing<ibv_qp>(); }
  virtual int modify_qp(ibv_qp*, ibv_qp_attr*, int) { return EOPNOTSUPP; }
  virtual int query_qp(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*) { return EOPNOTSUPP; }
  virtual int destroy_qp(ibv_qp*) { return EOPNOTSUPP; }
  /// Where the queue lies in memory and how its device is rung. EOPNOTSUPP: the provider does not tell.
  virtual int raw_queue(ibv_qp*, RawQueue*) { return EOPNOTSUPP; }
  virtual int post_send(ibv_qp*, ibv_send_wr*, ibv_send_wr**) { return EOPNOTSUPP; }
  virtual int post_recv(ibv_qp*, ibv_recv_wr*, ibv_recv_wr**) { return EOPNOTSUPP; }

  // Scalable reliable datagrams of EFA, by libefa; queue pairs of them are posted on by their extended form alone.
  /// Empty, or why there is no libefa: for people.
  virtual std::string no_efa() { return "no libefa"; }
  virtual int query_efa(ibv_context*, efadv_device_attr*) { return EOPNOTSUPP; }
  /// A queue pair of the driver type SRD.
  virtual ibv_qp* create_srd(ibv_context*, ibv_qp_init_attr_ex*) { return nothing<ibv_qp>(); }
  virtual ibv_qp_ex* extended(ibv_qp*) { return nothing<ibv_qp_ex>(); }
  virtual ibv_ah* create_ah(ibv_pd*, ibv_ah_attr*) { return nothing<ibv_ah>(); }
  virtual int destroy_ah(ibv_ah*) { return EOPNOTSUPP; }

 private:
  template <typename T>
  static T* nothing() {
    errno = EOPNOTSUPP;
    return nullptr;
  }
  template <typename T>
  static T* nothing(int* count) {
    *count = 0;
    errno = EOPNOTSUPP;
    return nullptr;
  }
};

}  // namespace hawser::backend::verbs
