#pragma once

// MockVerbs: one process's view of the fabric in memory: what it calls of libibverbs, and of libefa.
//
// Thread rule: one thread. Lifetime: the fabric outlives it, and it all that was made with it.

#include <cerrno>

#include "backend/verbs/library/verbs.h"
#include "backend/verbs/mock/mock_fabric.h"

namespace hawser::backend::verbs {

class MockVerbs : public Verbs {
 public:
  explicit MockVerbs(MockFabric& fabric) : fabric_(fabric) {}
  std::string describe() const override { return "mock"; }

  ibv_device** get_device_list(int* count) override;
  void free_device_list(ibv_device** list) override { delete[] list; }
  ibv_context* open_device(ibv_device* device) override;
  int close_device(ibv_context* context) override;
  int query_device(ibv_context* context, ibv_device_attr* attr) override;
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override;
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override;
  std::ptrdiff_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t count) override;
  int get_async_event(ibv_context* context, ibv_async_event* event) override;

  ibv_pd* alloc_pd(ibv_context* context) override;
  int dealloc_pd(ibv_pd* pd) override;
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override;
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size, std::uint64_t iova, int fd,
                        int access) override;
  int dereg_mr(ibv_mr* mr) override;

  ibv_comp_channel* create_comp_channel(ibv_context* context) override;
  int destroy_comp_channel(ibv_comp_channel* channel) override;
  ibv_cq* create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) override;
  int destroy_cq(ibv_cq* cq) override;
  int req_notify_cq(ibv_cq* cq, int solicited_only) override;
  int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq) override;
  int poll_cq(ibv_cq* cq, int count, ibv_wc* out) override;

  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override;
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override;
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override;
  int destroy_qp(ibv_qp* qp) override;
  int raw_queue(ibv_qp* qp, RawQueue* out) override;
  std::string no_efa() override { return fabric_.fails("no_efa") ? "libefa cannot be opened" : ""; }
  int query_efa(ibv_context* context, efadv_device_attr* attr) override;
  ibv_qp* create_srd(ibv_context* context, ibv_qp_init_attr_ex* attr) override;
  ibv_qp_ex* extended(ibv_qp* qp) override;
  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) override;
  int destroy_ah(ibv_ah* ah) override;
  int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override;
  int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override;

 private:
  int refused(const char* call) { return fabric_.fails(call) ? errno : 0; }
  /// True, with errno set: the call fails, or the device was removed.
  bool fails(const char* call, const ibv_context* context) {
    if (fabric_.fails(call)) return true;
    if (!fabric_.is_removed(context)) return false;
    errno = EIO;
    return true;
  }

  MockFabric& fabric_;
};

}  // namespace hawser::backend::verbs
