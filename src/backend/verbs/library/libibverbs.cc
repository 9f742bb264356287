#include "backend/verbs/library/libibverbs.h"

#include <utility>

#include "backend/verbs/efa/libefa.h"
#include "backend/verbs/library/raw_queue.h"
#include "base/dylib.h"

namespace hawser::backend::verbs {
namespace {

/// Signatures of what is called by name; the data path goes through the context's own table, as verbs.h does it.
struct Table {
  ibv_device** (*get_device_list)(int*);
  void (*free_device_list)(ibv_device**);
  ibv_context* (*open_device)(ibv_device*);
  int (*close_device)(ibv_context*);
  int (*query_device)(ibv_context*, ibv_device_attr*);
  int (*query_port)(ibv_context*, std::uint8_t, _compat_ibv_port_attr*);
  int (*query_gid)(ibv_context*, std::uint8_t, int, ibv_gid*);
  ssize_t (*query_gid_table)(ibv_context*, ibv_gid_entry*, std::size_t, std::uint32_t, std::size_t);
  int (*get_async_event)(ibv_context*, ibv_async_event*);
  void (*ack_async_event)(ibv_async_event*);
  ibv_pd* (*alloc_pd)(ibv_context*);
  int (*dealloc_pd)(ibv_pd*);
  ibv_mr* (*reg_mr)(ibv_pd*, void*, std::size_t, int);
  ibv_mr* (*reg_mr_iova2)(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned);
  ibv_mr* (*reg_dmabuf_mr)(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int);
  int (*dereg_mr)(ibv_mr*);
  ibv_comp_channel* (*create_comp_channel)(ibv_context*);
  int (*destroy_comp_channel)(ibv_comp_channel*);
  ibv_cq* (*create_cq)(ibv_context*, int, void*, ibv_comp_channel*, int);
  int (*destroy_cq)(ibv_cq*);
  int (*get_cq_event)(ibv_comp_channel*, ibv_cq**, void**);
  void (*ack_cq_events)(ibv_cq*, unsigned);
  ibv_qp* (*create_qp)(ibv_pd*, ibv_qp_init_attr*);
  int (*modify_qp)(ibv_qp*, ibv_qp_attr*, int);
  int (*query_qp)(ibv_qp*, ibv_qp_attr*, int, ibv_qp_init_attr*);
  int (*destroy_qp)(ibv_qp*);
  ibv_ah* (*create_ah)(ibv_pd*, ibv_ah_attr*);
  int (*destroy_ah)(ibv_ah*);
  ibv_qp_ex* (*to_qp_ex)(ibv_qp*);
};

class LibIbverbs final : public Verbs {
 public:
  LibIbverbs(base::Dylib library, const Table& table) : library_(std::move(library)), table_(table) {
    library_.keep_loaded();  // Its providers register what they never take back.
  }

  std::string describe() const override { return library_.name(); }

  ibv_device** get_device_list(int* count) override { return table_.get_device_list(count); }
  void free_device_list(ibv_device** list) override { table_.free_device_list(list); }
  ibv_context* open_device(ibv_device* device) override { return table_.open_device(device); }
  int close_device(ibv_context* context) override { return table_.close_device(context); }
  int query_device(ibv_context* context, ibv_device_attr* attr) override { return table_.query_device(context, attr); }
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override {
    // As verbs.h does it: the context's own table knows all of the structure, the exported function its older part.
    const verbs_context* extended = verbs_get_ctx_op(context, query_port);
    if (extended != nullptr) return extended->query_port(context, port, attr, sizeof(*attr));
    *attr = {};
    return table_.query_port(context, port, reinterpret_cast<_compat_ibv_port_attr*>(attr));
  }
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override {
    return table_.query_gid(context, port, index, gid) == 0 ? 0 : errno_or(EIO);
  }
  std::ptrdiff_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t count) override {
    if (table_.query_gid_table == nullptr) return Verbs::query_gid_table(context, entries, count);
    return table_.query_gid_table(context, entries, count, 0, sizeof(*entries));
  }
  int get_async_event(ibv_context* context, ibv_async_event* event) override {
    return table_.get_async_event(context, event) == 0 ? 0 : errno_or(EIO);
  }
  void ack_async_event(ibv_async_event* event) override { table_.ack_async_event(event); }

  ibv_pd* alloc_pd(ibv_context* context) override { return table_.alloc_pd(context); }
  int dealloc_pd(ibv_pd* pd) override { return table_.dealloc_pd(pd); }
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override {
    // Optional rights (relaxed ordering) are only understood by the newer call.
    const auto wanted = static_cast<unsigned>(access);
    if ((wanted & IBV_ACCESS_OPTIONAL_RANGE) == 0) return table_.reg_mr(pd, address, size, access);
    if (table_.reg_mr_iova2 == nullptr) {
      return table_.reg_mr(pd, address, size, static_cast<int>(wanted & ~IBV_ACCESS_OPTIONAL_RANGE));
    }
    return table_.reg_mr_iova2(pd, address, size, reinterpret_cast<std::uintptr_t>(address), wanted);
  }
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size, std::uint64_t iova, int fd,
                        int access) override {
    if (table_.reg_dmabuf_mr == nullptr) return Verbs::reg_dmabuf_mr(pd, offset, size, iova, fd, access);
    return table_.reg_dmabuf_mr(pd, offset, size, iova, fd, access);
  }
  int dereg_mr(ibv_mr* mr) override { return table_.dereg_mr(mr); }

  ibv_comp_channel* create_comp_channel(ibv_context* context) override { return table_.create_comp_channel(context); }
  int destroy_comp_channel(ibv_comp_channel* channel) override { return table_.destroy_comp_channel(channel); }
  ibv_cq* create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) override {
    return table_.create_cq(context, entries, owner, channel, vector);
  }
  int destroy_cq(ibv_cq* cq) override { return table_.destroy_cq(cq); }
  int req_notify_cq(ibv_cq* cq, int solicited_only) override {
    return cq->context->ops.req_notify_cq(cq, solicited_only);
  }
  int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq) override {
    void* owner = nullptr;
    return table_.get_cq_event(channel, cq, &owner) == 0 ? 0 : errno_or(EIO);
  }
  void ack_cq_events(ibv_cq* cq, unsigned count) override { table_.ack_cq_events(cq, count); }
  int poll_cq(ibv_cq* cq, int count, ibv_wc* out) override { return cq->context->ops.poll_cq(cq, count, out); }

  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override { return table_.create_qp(pd, attr); }
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override { return table_.modify_qp(qp, attr, mask); }
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override {
    return table_.query_qp(qp, attr, mask, init);
  }
  int destroy_qp(ibv_qp* qp) override { return table_.destroy_qp(qp); }
  int raw_queue(ibv_qp* qp, RawQueue* out) override { return raw_.find(qp, out); }
  int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override {
    return qp->context->ops.post_send(qp, first, bad);
  }
  int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override {
    return qp->context->ops.post_recv(qp, first, bad);
  }

  ibv_ah* create_ah(ibv_pd* pd, ibv_ah_attr* attr) override { return table_.create_ah(pd, attr); }
  int destroy_ah(ibv_ah* ah) override { return table_.destroy_ah(ah); }

  std::string no_efa() override {
    if (table_.to_qp_ex == nullptr) return library_.name() + " is too old: it has no extended queue pairs";
    const Status state = efa_.state();
    return state.ok() ? std::string() : state.to_string();
  }
  int query_efa(ibv_context* context, efadv_device_attr* attr) override { return efa_.query_efa(context, attr); }
  ibv_qp* create_srd(ibv_context* context, ibv_qp_init_attr_ex* attr) override {
    return efa_.create_srd(context, attr);
  }
  ibv_qp_ex* extended(ibv_qp* qp) override {
    return table_.to_qp_ex == nullptr ? Verbs::extended(qp) : table_.to_qp_ex(qp);
  }

 private:
  static int errno_or(int otherwise) { return errno != 0 ? errno : otherwise; }

  base::Dylib library_;
  Table table_;
  RawQueues raw_;
  LibEfa efa_;
};

Status fill(const base::Dylib& library, Table* table) {
  Status missing;
  const auto get = [&](const char* name, auto** out) { library.bind(name, out, &missing); };
  get("ibv_get_device_list", &table->get_device_list);
  get("ibv_free_device_list", &table->free_device_list);
  get("ibv_open_device", &table->open_device);
  get("ibv_close_device", &table->close_device);
  get("ibv_query_device", &table->query_device);
  get("ibv_query_port", &table->query_port);
  get("ibv_query_gid", &table->query_gid);
  get("ibv_get_async_event", &table->get_async_event);
  get("ibv_ack_async_event", &table->ack_async_event);
  get("ibv_alloc_pd", &table->alloc_pd);
  get("ibv_dealloc_pd", &table->dealloc_pd);
  get("ibv_reg_mr", &table->reg_mr);
  get("ibv_dereg_mr", &table->dereg_mr);
  get("ibv_create_comp_channel", &table->create_comp_channel);
  get("ibv_destroy_comp_channel", &table->destroy_comp_channel);
  get("ibv_create_cq", &table->create_cq);
  get("ibv_destroy_cq", &table->destroy_cq);
  get("ibv_get_cq_event", &table->get_cq_event);
  get("ibv_ack_cq_events", &table->ack_cq_events);
  get("ibv_create_qp", &table->create_qp);
  get("ibv_modify_qp", &table->modify_qp);
  get("ibv_query_qp", &table->query_qp);
  get("ibv_destroy_qp", &table->destroy_qp);
  get("ibv_create_ah", &table->create_ah);
  get("ibv_destroy_ah", &table->destroy_ah);
  // Only newer ones have these.
  table->to_qp_ex = library.find_symbol<ibv_qp_ex*(ibv_qp*)>("ibv_qp_to_qp_ex");
  table->query_gid_table =
      library.find_symbol<ssize_t(ibv_context*, ibv_gid_entry*, std::size_t, std::uint32_t, std::size_t)>(
          "_ibv_query_gid_table");
  table->reg_mr_iova2 =
      library.find_symbol<ibv_mr*(ibv_pd*, void*, std::size_t, std::uint64_t, unsigned)>("ibv_reg_mr_iova2");
  table->reg_dmabuf_mr =
      library.find_symbol<ibv_mr*(ibv_pd*, std::uint64_t, std::size_t, std::uint64_t, int, int)>("ibv_reg_dmabuf_mr");
  return missing;
}

}  // namespace

Result<std::unique_ptr<Verbs>> open_libibverbs() {
  Result<base::Dylib> library = base::Dylib::open({"libibverbs.so.1"});
  if (!library) {
    return Status(Code::kUnsupported, "libibverbs cannot be opened")
        .because(library.error())
        .with_advice("install rdma-core (Debian: libibverbs1 and ibverbs-providers)");
  }
  Table table{};
  if (Status missing = fill(*library, &table); !missing.ok()) {
    return Status(Code::kUnsupported, "libibverbs is too old")
        .because(missing)
        .with_advice("install rdma-core 28 or later");
  }
  return std::unique_ptr<Verbs>(new LibIbverbs(*std::move(library), table));
}

}  // namespace hawser::backend::verbs
