#include "backend/verbs/queues/raw_loop.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <utility>

#include "backend/verbs/devices/device.h"
#include "backend/verbs/library/libibverbs.h"
#include "backend/verbs/queues/queue_pair.h"
#include "base/fd.h"
#include "base/format.h"
#include "base/id128.h"
#include "base/rng.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

constexpr std::uint32_t kDepth = 256;  // work requests that the queue holds
constexpr Duration kStuck = std::chrono::seconds(10);

Instant now() { return Clock::steady().now(); }

/// A registration of plain memory.
class Registered {
 public:
  static Result<std::unique_ptr<Registered>> make(Nic& nic, std::uint64_t bytes) {
    std::unique_ptr<Registered> made(new Registered(nic, bytes));
    constexpr int kAccess = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE;
    made->mr_ = nic.domain->verbs().reg_mr(nic.domain->pd(), made->memory_.data(), bytes, kAccess);
    if (made->mr_ == nullptr) return base::errno_status("registering memory for the raw loop", errno);
    return made;
  }
  ~Registered() {
    if (mr_ != nullptr) nic_.domain->verbs().dereg_mr(mr_);
  }
  Registered(const Registered&) = delete;
  Registered& operator=(const Registered&) = delete;

  const ibv_mr& mr() const { return *mr_; }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(memory_.data()); }
  std::uint64_t size() const { return memory_.size(); }

 private:
  Registered(Nic& nic, std::uint64_t bytes) : nic_(nic), memory_(bytes, std::byte{1}) {}

  Nic& nic_;
  std::vector<std::byte> memory_;
  ibv_mr* mr_ = nullptr;
};

/// One end: a port, a queue pair, memory.
struct End {
  std::shared_ptr<Nic> nic;
  std::unique_ptr<NicLane> lane;
  std::unique_ptr<Registered> memory;
  std::unique_ptr<QueuePair> pair;
};

VerbsOptions raw_options() {
  VerbsOptions options;
  options.pair.send_depth = kDepth;
  options.pair.messages = 0;
  options.queue_pair_type = QueuePairType::kRc;  // It posts by itself, as reliable connections take it.
  return options;
}

Result<End> open_end(const std::shared_ptr<Verbs>& library, const DeviceInfo& device, std::uint64_t bytes) {
  const auto port = std::ranges::find_if(device.ports, [&](const PortInfo& each) { return usable(device, each).ok(); });
  if (port == device.ports.end()) return Status(Code::kUnsupported, device.name + " has no usable port");
  const VerbsOptions options = raw_options();
  End end;
  HAWSER_TRY_ASSIGN(end.nic, open_nic(library, {.device = &device, .port = &*port, .path = {}, .rank = 0}, options));
  HAWSER_TRY_ASSIGN(auto queues, CqPool::open(end.nic->domain, kDepth + 1));
  end.lane = std::make_unique<NicLane>(end.nic, std::move(queues));
  HAWSER_TRY_ASSIGN(end.memory, Registered::make(*end.nic, bytes));
  end.pair = std::make_unique<QueuePair>(*end.lane, options.pair);
  return end;
}

const DeviceInfo* named(const std::vector<DeviceInfo>& devices, const std::string& name) {
  const auto found = std::ranges::find(devices, name, &DeviceInfo::name);
  return found == devices.end() ? nullptr : &*found;
}

/// Its first usable port's address; null where there is none.
const PortInfo* usable_port(const DeviceInfo& device) {
  for (const PortInfo& port : device.ports) {
    if (usable(device, port).ok() && best_gid(port)) return &port;
  }
  return nullptr;
}

}  // namespace

struct RawLoop::Ends {
  End near, far;
  std::uint32_t under_way = 0;  ///< Work requests.

  /// Takes completions in. Each stands for `each` requests.
  Status poll(std::uint32_t each) {
    std::array<ibv_wc, 16> completions;
    const int count = near.lane->queues->poll(completions);
    if (count < 0) return Status(Code::kFailed, "the raw loop's completion queue overran");
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
      if (completion.status != IBV_WC_SUCCESS) {
        return Status(Code::kFailed,
                      base::format("the raw loop's request ended as '{}'", to_string(completion.status)));
      }
      under_way -= std::min(under_way, each);
    }
    return {};
  }
  Status drain(std::uint32_t each) {
    const Instant end = now() + kStuck;
    while (under_way > 0) {
      HAWSER_TRY(poll(each));
      if (now() > end) return Status(Code::kTimedOut, "the raw loop's requests do not end");
    }
    return {};
  }
  Status post(ibv_send_wr& request) {
    ibv_send_wr* bad = nullptr;
    const int error = near.nic->domain->verbs().post_send(near.pair->object(), &request, &bad);
    if (error != 0) return base::errno_status("posting in the raw loop", error);
    ++under_way;
    return {};
  }
  ibv_send_wr request(Operation operation, std::uint64_t offset, ibv_sge& piece) const {
    piece.addr = near.memory->address() + offset;
    piece.lkey = near.memory->mr().lkey;
    ibv_send_wr made{};
    made.sg_list = &piece;
    made.num_sge = 1;
    made.opcode = operation == Operation::kWrite ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
    made.wr.rdma.remote_addr = far.memory->address() + offset;
    made.wr.rdma.rkey = far.memory->mr().rkey;
    return made;
  }
};

RawLoop::RawLoop(std::unique_ptr<Ends> ends) : ends_(std::move(ends)) {}
RawLoop::~RawLoop() = default;

Result<RawLoopDevices> find_raw_loop_devices() {
  const std::vector<DeviceInfo> devices = read_devices();
  const DeviceInfo* first = nullptr;
  for (const DeviceInfo& device : devices) {
    const PortInfo* port = usable_port(device);
    if (port == nullptr) continue;
    if (first == nullptr) {
      first = &device;
    } else if (same_subnet(*best_gid(*usable_port(*first)), *best_gid(*port))) {
      return RawLoopDevices{first->name, device.name};
    }
  }
  if (first != nullptr) return RawLoopDevices{first->name, first->name};
  return Status(Code::kUnsupported,
                devices.empty() ? "this host has no RDMA device" : "no port of " + names_of(devices) + " can be used")
      .with_advice("`hawser doctor` tells what is missing; docs/rdma.md how to set up Soft-RoCE");
}

Result<std::unique_ptr<RawLoop>> RawLoop::open(const RawLoopDevices& devices, std::uint64_t bytes) {
  const std::vector<DeviceInfo> all = read_devices();
  const DeviceInfo* near = named(all, devices.near);
  const DeviceInfo* far = named(all, devices.far);
  if (near == nullptr || far == nullptr) return Status(Code::kNotFound, "the RDMA device is gone");
  HAWSER_TRY_ASSIGN(std::unique_ptr<Verbs> opened, open_libibverbs());
  const std::shared_ptr<Verbs> library = std::move(opened);
  auto ends = std::make_unique<Ends>();
  HAWSER_TRY_ASSIGN(ends->near, open_end(library, *near, bytes));
  HAWSER_TRY_ASSIGN(ends->far, open_end(library, *far, bytes));
  base::Rng rng(base::random_id128().lo);
  HAWSER_TRY(ends->near.pair->make(1, rng));
  HAWSER_TRY(ends->far.pair->make(1, rng));
  HAWSER_TRY(ends->near.pair->join(ends->far.pair->endpoint()));
  HAWSER_TRY(ends->far.pair->join(ends->near.pair->endpoint()));
  std::unique_ptr<RawLoop> made(new RawLoop(std::move(ends)));
  HAWSER_TRY(made->write_once());  // It carries, and addresses are resolved.
  return made;
}

Result<double> RawLoop::stream(Operation operation, const RawLoopWay& way, Duration budget) {
  const std::uint64_t size = ends_->near.memory->size();
  const Instant start = now();
  const Instant end = start + budget;
  std::uint64_t bytes = 0, number = 0;
  // A whole pass at least, so that what the last requests lack does not count.
  while (bytes < size || now() < end) {
    for (std::uint64_t at = 0; at < size; at += way.message_bytes) {
      ibv_sge piece{};
      ibv_send_wr request = ends_->request(operation, at, piece);
      piece.length = static_cast<std::uint32_t>(std::min(way.message_bytes, size - at));
      if (++number % way.signal_every == 0) request.send_flags = IBV_SEND_SIGNALED;
      const Instant stuck = now() + kStuck;
      while (ends_->under_way >= way.window) {
        HAWSER_TRY(ends_->poll(way.signal_every));
        if (now() > stuck) return Status(Code::kTimedOut, "the raw loop's requests do not end");
      }
      HAWSER_TRY(ends_->post(request));
      bytes += piece.length;
    }
  }
  HAWSER_TRY(finish_stream(way));
  return static_cast<double>(bytes) / static_cast<double>((now() - start).count());
}

/// What was posted last without a completion of its own is over when one more request, of no bytes, is.
Status RawLoop::finish_stream(const RawLoopWay& way) {
  // Those with a completion that was not taken in yet; the others before it are over with them.
  const std::uint32_t awaited = ends_->under_way / way.signal_every;
  ibv_sge piece{};
  ibv_send_wr last = ends_->request(Operation::kWrite, 0, piece);
  last.num_sge = 0;
  last.send_flags = IBV_SEND_SIGNALED;
  HAWSER_TRY(ends_->post(last));
  ends_->under_way = awaited + 1;
  return ends_->drain(1);
}

namespace {

std::atomic_ref<std::uint64_t> word_of(const End& end) {
  return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(end.memory->address()));
}

/// Writes the first word of `from` into that of `to`, sees it there, and then that the request is over.
Status write_word(End& from, End& to, std::uint64_t value) {
  word_of(from).store(value, std::memory_order_relaxed);
  ibv_sge piece{.addr = from.memory->address(), .length = sizeof(value), .lkey = from.memory->mr().lkey};
  ibv_send_wr request{};
  request.sg_list = &piece;
  request.num_sge = 1;
  request.opcode = IBV_WR_RDMA_WRITE;
  request.send_flags = IBV_SEND_SIGNALED | IBV_SEND_INLINE;
  request.wr.rdma.remote_addr = to.memory->address();
  request.wr.rdma.rkey = to.memory->mr().rkey;
  ibv_send_wr* bad = nullptr;
  const int error = from.nic->domain->verbs().post_send(from.pair->object(), &request, &bad);
  if (error != 0) return base::errno_status("posting in the raw loop", error);
  const Instant stuck = now() + kStuck;
  while (word_of(to).load(std::memory_order_acquire) != value) {
    if (now() > stuck) return Status(Code::kTimedOut, "the raw loop's write does not arrive");
  }
  ibv_wc completion{};
  int count = 0;
  while ((count = from.lane->queues->poll({&completion, 1})) == 0) {
    if (now() > stuck) return Status(Code::kTimedOut, "the raw loop's write does not end");
  }
  if (count > 0 && completion.status == IBV_WC_SUCCESS) return {};
  return Status(Code::kFailed, "the raw loop's write failed");
}

}  // namespace

Status RawLoop::there_and_back() {
  const std::uint64_t value = word_of(ends_->near).load(std::memory_order_relaxed) + 1;
  HAWSER_TRY(write_word(ends_->near, ends_->far, value));
  return write_word(ends_->far, ends_->near, value + 1);
}

Status RawLoop::write_once() {
  ibv_sge piece{};
  ibv_send_wr request = ends_->request(Operation::kWrite, 0, piece);
  piece.length = 8;
  request.send_flags = IBV_SEND_SIGNALED;
  HAWSER_TRY(ends_->post(request));
  return ends_->drain(1);
}

}  // namespace hawser::backend::verbs
