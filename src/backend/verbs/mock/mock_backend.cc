#include "backend/verbs/mock/mock_backend.h"

#include <utility>

#include "backend/tcp/factory.h"
#include "backend/verbs/backend.h"
#include "backend/verbs/mock/mock_verbs.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

class LockedVerbs final : public Verbs {
  // First, as its type is deduced.
  template <auto Method, typename... Arguments>
  auto call(Arguments... arguments) {
    const base::MutexLock lock(mutex_);
    return (static_cast<Verbs&>(inner_).*Method)(arguments...);
  }

 public:
  LockedVerbs(MockFabric& fabric, base::Mutex& mutex, std::function<void()> before_dereg)
      : inner_(fabric), mutex_(mutex), before_dereg_(std::move(before_dereg)) {}
  std::string describe() const override { return "mock, locked"; }

  ibv_device** get_device_list(int* count) override { return call<&Verbs::get_device_list>(count); }
  void free_device_list(ibv_device** list) override { call<&Verbs::free_device_list>(list); }
  ibv_context* open_device(ibv_device* device) override { return call<&Verbs::open_device>(device); }
  int close_device(ibv_context* context) override { return call<&Verbs::close_device>(context); }
  int query_device(ibv_context* context, ibv_device_attr* attr) override {
    return call<&Verbs::query_device>(context, attr);
  }
  int query_port(ibv_context* context, std::uint8_t port, ibv_port_attr* attr) override {
    return call<&Verbs::query_port>(context, port, attr);
  }
  int query_gid(ibv_context* context, std::uint8_t port, int index, ibv_gid* gid) override {
    return call<&Verbs::query_gid>(context, port, index, gid);
  }
  std::ptrdiff_t query_gid_table(ibv_context* context, ibv_gid_entry* entries, std::size_t count) override {
    return call<&Verbs::query_gid_table>(context, entries, count);
  }
  int get_async_event(ibv_context* context, ibv_async_event* event) override {
    return call<&Verbs::get_async_event>(context, event);
  }

  ibv_pd* alloc_pd(ibv_context* context) override { return call<&Verbs::alloc_pd>(context); }
  int dealloc_pd(ibv_pd* pd) override { return call<&Verbs::dealloc_pd>(pd); }
  ibv_mr* reg_mr(ibv_pd* pd, void* address, std::size_t size, int access) override {
    return call<&Verbs::reg_mr>(pd, address, size, access);
  }
  ibv_mr* reg_dmabuf_mr(ibv_pd* pd, std::uint64_t offset, std::size_t size, std::uint64_t iova, int fd,
                        int access) override {
    return call<&Verbs::reg_dmabuf_mr>(pd, offset, size, iova, fd, access);
  }
  int dereg_mr(ibv_mr* mr) override {
    if (before_dereg_) before_dereg_();
    return call<&Verbs::dereg_mr>(mr);
  }

  ibv_comp_channel* create_comp_channel(ibv_context* context) override {
    return call<&Verbs::create_comp_channel>(context);
  }
  int destroy_comp_channel(ibv_comp_channel* channel) override { return call<&Verbs::destroy_comp_channel>(channel); }
  ibv_cq* create_cq(ibv_context* context, int entries, void* owner, ibv_comp_channel* channel, int vector) override {
    return call<&Verbs::create_cq>(context, entries, owner, channel, vector);
  }
  int destroy_cq(ibv_cq* cq) override { return call<&Verbs::destroy_cq>(cq); }
  int req_notify_cq(ibv_cq* cq, int solicited_only) override { return call<&Verbs::req_notify_cq>(cq, solicited_only); }
  int get_cq_event(ibv_comp_channel* channel, ibv_cq** cq) override { return call<&Verbs::get_cq_event>(channel, cq); }
  int poll_cq(ibv_cq* cq, int count, ibv_wc* out) override { return call<&Verbs::poll_cq>(cq, count, out); }

  ibv_qp* create_qp(ibv_pd* pd, ibv_qp_init_attr* attr) override { return call<&Verbs::create_qp>(pd, attr); }
  int modify_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask) override { return call<&Verbs::modify_qp>(qp, attr, mask); }
  int query_qp(ibv_qp* qp, ibv_qp_attr* attr, int mask, ibv_qp_init_attr* init) override {
    return call<&Verbs::query_qp>(qp, attr, mask, init);
  }
  int destroy_qp(ibv_qp* qp) override { return call<&Verbs::destroy_qp>(qp); }
  int post_send(ibv_qp* qp, ibv_send_wr* first, ibv_send_wr** bad) override {
    return call<&Verbs::post_send>(qp, first, bad);
  }
  int post_recv(ibv_qp* qp, ibv_recv_wr* first, ibv_recv_wr** bad) override {
    return call<&Verbs::post_recv>(qp, first, bad);
  }

 private:
  MockVerbs inner_;
  base::Mutex& mutex_;
  const std::function<void()> before_dereg_;
};

}  // namespace

DeviceInfo mock_device_info(const MockDevice& device) {
  DeviceInfo info;
  info.name = device.name;
  info.transport = device.efa ? Transport::kEfa : Transport::kInfiniBand;
  for (std::uint8_t number = 1; number <= 1 + device.more.size(); ++number) {
    PortInfo port;
    port.number = number;
    port.state = PortState::kActive;
    port.link_layer = device.efa        ? LinkLayer::kUnknown
                      : device.ethernet ? LinkLayer::kEthernet
                                        : LinkLayer::kInfiniBand;
    port.mbit_per_s = device.port(number).mbit_per_s;
    info.ports.push_back(port);  // Its GIDs are the device's to tell.
  }
  return info;
}

Factory mock_backend(MockFabric& fabric, std::shared_ptr<Verbs> verbs, GpuAccess gpus) {
  const auto open = [&fabric, verbs = std::move(verbs), gpus = std::move(gpus)](
                        const Context& context, const Params& params) -> Result<std::unique_ptr<Backend>> {
    HAWSER_TRY_ASSIGN(VerbsOptions options, read_verbs_options(params));
    const auto list = [&fabric] {
      std::vector<DeviceInfo> devices;
      for (const auto& device : fabric.devices_) devices.push_back(mock_device_info(*device));
      return devices;
    };
    HAWSER_TRY_ASSIGN(auto nics, open_nics(verbs, list(), gpus, &options));
    HAWSER_TRY_ASSIGN(TcpDoor door, open_tcp_door(options.control, context));
    Reopening again = reopening(verbs, options, gpus, list);
    return make_backend(context, std::move(options), std::move(nics), std::move(door), std::move(again));
  };
  return {.name = "verbs", .default_rank = 15, .open = open};
}

std::shared_ptr<Verbs> locked_verbs(MockFabric& fabric, base::Mutex& mutex, std::function<void()> before_dereg) {
  return std::make_shared<LockedVerbs>(fabric, mutex, std::move(before_dereg));
}

}  // namespace hawser::backend::verbs
