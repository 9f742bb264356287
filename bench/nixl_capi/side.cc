#include "side.h"

#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace nixl_bench {

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Patience::Patience(const char* what)
    : what_(what), end_ns_(now_ns() + std::int64_t{kPatienceSeconds} * 1'000'000'000) {}

void Patience::look() const {
  if (now_ns() > end_ns_)
    throw Failure(std::string(what_) + " took more than " + std::to_string(kPatienceSeconds) + " s");
}

DescList::DescList(const Library& library, std::uintptr_t base, std::span<const std::uint64_t> offsets,
                   std::uint64_t size)
    : library_(library) {
  NIXL_BENCH_NEED(library.create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &handle_));
  for (const std::uint64_t offset : offsets) {
    NIXL_BENCH_NEED(library.xfer_dlist_add_desc(handle_, base + offset, size, 0));
  }
}

DescList::~DescList() {
  if (handle_ != nullptr) library_.destroy_xfer_dlist(handle_);
}

RegList::RegList(const Library& library, std::uintptr_t base, std::uint64_t size, std::uint32_t count)
    : library_(library) {
  NIXL_BENCH_NEED(library.create_reg_dlist(NIXL_CAPI_MEM_DRAM, &handle_));
  for (std::uint32_t i = 0; i < count; ++i) {
    NIXL_BENCH_NEED(library.reg_dlist_add_desc(handle_, base + i * size, size, 0, nullptr, 0));
  }
}

RegList::~RegList() { library_.destroy_reg_dlist(handle_); }

Side::Side(const Library& library, const Setup& setup) : library_(library), setup_(setup) {
  const nixl_capi_agent_config_t config{.enable_prog_thread = setup.progress_thread,
                                        .enable_listen_thread = false,
                                        .listen_port = 0,
                                        .thread_sync = NIXL_CAPI_THREAD_SYNC_DEFAULT,
                                        .num_workers = 1,
                                        .pthr_delay_us = 0,
                                        .lthr_delay_us = 100'000,
                                        .capture_telemetry = false};
  NIXL_BENCH_NEED(library_.create_configured_agent(setup.name.c_str(), &config, &agent_));
  open_backend();
  NIXL_BENCH_NEED(library_.create_notif_map(&map_));
  void* const memory =
      ::mmap(nullptr, setup.arena, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw Failure("mmap of " + std::to_string(setup.arena) + " bytes failed");
  memory_ = static_cast<std::byte*>(memory);
  if (!setup.touch) return;
  std::memset(memory_, 0x5a, setup.arena);
  const RegList all(library_, base(), setup.arena, 1);
  NIXL_BENCH_NEED(library_.register_mem(agent_, all.get(), nullptr));
}

void Side::open_backend() {
  nixl_capi_mem_list_t types = nullptr;
  nixl_capi_params_t params = nullptr;
  NIXL_BENCH_NEED(library_.get_plugin_params(agent_, "UCX", &types, &params));
  NIXL_BENCH_NEED(library_.create_backend(agent_, "UCX", params, &backend_));
  library_.destroy_params(params);
  library_.destroy_mem_list(types);
}

void Side::close() {
  (void)library_.destroy_notif_map(map_);
  (void)library_.destroy_backend(backend_);
  (void)library_.destroy_agent(agent_);
}

std::vector<std::uint8_t> Side::metadata() const {
  void* data = nullptr;
  std::size_t size = 0;
  NIXL_BENCH_NEED(library_.get_local_md(agent_, &data, &size));
  const auto* const bytes = static_cast<const std::uint8_t*>(data);
  std::vector<std::uint8_t> copy(bytes, bytes + size);
  std::free(data);  // NOLINT(cppcoreguidelines-no-malloc): the ABI says so.
  return copy;
}

std::string Side::load(std::span<const std::uint8_t> metadata) const {
  char* name = nullptr;
  NIXL_BENCH_NEED(library_.load_remote_md(agent_, metadata.data(), metadata.size(), &name));
  std::string copy(name);
  std::free(name);  // NOLINT(cppcoreguidelines-no-malloc)
  return copy;
}

nixl_capi_xfer_req_t Side::create(nixl_capi_xfer_op_t op, const DescList& local, const DescList& remote,
                                  const std::string& peer, nixl_capi_opt_args_t options) const {
  nixl_capi_xfer_req_t request = nullptr;
  NIXL_BENCH_NEED(library_.create_xfer_req(agent_, op, local.get(), remote.get(), peer.c_str(), &request, options));
  return request;
}

void Side::finish(nixl_capi_xfer_req_t request, int status) const {
  Patience patience("a transfer");
  while (status == NIXL_CAPI_IN_PROG) {
    status = library_.get_xfer_status(agent_, request);
    patience.spin();
  }
  need(status, "a transfer");
}

void Side::release(nixl_capi_xfer_req_t request) const {
  NIXL_BENCH_NEED(library_.release_xfer_req(agent_, request));
  NIXL_BENCH_NEED(library_.destroy_xfer_req(request));
}

std::size_t Side::take_notifications(const std::function<void(const std::string&, std::string_view)>& take) {
  std::size_t agents = 0, taken = 0;
  NIXL_BENCH_NEED(library_.get_notifs(agent_, map_, nullptr));
  NIXL_BENCH_NEED(library_.notif_map_size(map_, &agents));
  if (agents == 0) return 0;
  for (std::size_t i = 0; i < agents; ++i) {
    const char* name = nullptr;
    std::size_t texts = 0;
    NIXL_BENCH_NEED(library_.notif_map_get_agent_at(map_, i, &name));
    NIXL_BENCH_NEED(library_.notif_map_get_notifs_size(map_, name, &texts));
    const std::string sender(name);
    for (std::size_t j = 0; j < texts; ++j) {
      const void* data = nullptr;
      std::size_t size = 0;
      NIXL_BENCH_NEED(library_.notif_map_get_notif(map_, sender.c_str(), j, &data, &size));
      take(sender, {static_cast<const char*>(data), size});
      ++taken;
    }
  }
  NIXL_BENCH_NEED(library_.notif_map_clear(map_));
  return taken;
}

void Side::notify(const std::string& peer, std::string_view text) const {
  NIXL_BENCH_NEED(library_.gen_notif(agent_, peer.c_str(), text.data(), text.size(), nullptr));
}

}  // namespace nixl_bench
