// The door's classes.

#include "base/inside.h"
#include "rdma/batch.h"
#include "rdma/engine.h"
#include "rdma/rules.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

Result<Batch> wrap(Result<std::shared_ptr<BatchCore>> core) {
  if (!core) return core.error();
  return Batch(std::move(*core));
}

}  // namespace

std::span<std::byte> LocalMemory::bytes() const {
  return core_ ? core_->bytes.subspan(offset_, size_) : std::span<std::byte>();
}
bool LocalMemory::writable() const { return core_ && core_->writable; }
Device LocalMemory::device() const { return core_ ? core_->device : Device(); }

Result<LocalMemory> LocalMemory::slice(std::uint64_t offset, std::uint64_t size) const {
  if (!core_) return Status(Code::kInvalid, "LocalMemory::slice: this handle is empty");
  if (offset > size_ || size > size_ - offset) {
    return Status(Code::kInvalid, "LocalMemory::slice: offset " + std::to_string(offset) + " and size " +
                                      std::to_string(size) + " leave the memory of " + std::to_string(size_) +
                                      " bytes");
  }
  return LocalMemory(core_, offset_ + offset, size);
}

Result<Bell> Bell::open() {
  Result<base::EventFd> event = base::EventFd::open();
  if (!event) return event.error();
  return Bell(std::make_shared<BellCore>(std::move(*event)));
}
int Bell::fd() const { return core_->fd(); }
std::vector<std::uint64_t> Bell::take() { return core_->take(); }

bool Batch::done() const { return !core_ || core_->done(); }
Status Batch::wait(Duration timeout) const { return core_ ? core_->wait(timeout) : Status(); }
Status Batch::status() const { return core_ ? core_->status() : Status(); }
std::vector<Outcome> Batch::outcomes() const { return core_ ? core_->outcomes() : std::vector<Outcome>(); }
std::size_t Batch::size() const { return core_ ? core_->size() : 0; }
void Batch::cancel() const {
  if (core_) core_->cancel();
}
bool Batch::tell(const Bell& bell, std::uint64_t cookie) const { return core_ && core_->tell(core_of(bell), cookie); }

Result<Backend> Backend::open(Agent& agent, const BackendOptions& options) {
  Result<std::shared_ptr<Engine>> engine = Engine::open(agent, options);
  if (!engine) return engine.error();
  return Backend(std::move(*engine));
}

Backend& Backend::operator=(Backend&& other) noexcept {
  if (this != &other) {
    const Backend gone(std::move(*this));
    engine_ = std::move(other.engine_);
  }
  return *this;
}

Backend::~Backend() {
  if (engine_) engine_->stop();
}

Result<LocalMemory> Backend::local_memory(std::span<std::byte> bytes, std::shared_ptr<const void> owner, bool writable,
                                          Device device) {
  return engine_->local_memory(bytes, std::move(owner), writable, device);
}
Result<RemoteBuffer> Backend::request_buffer(std::uint64_t id, const LocalMemory& memory, const Lending& lending) {
  return engine_->lender().lend(id, memory, lending);
}
Result<RemoteBuffer> Backend::renew(const RemoteBuffer& buffer, Duration timeout) {
  return engine_->renewal().renew(buffer, timeout);
}
Result<LocalMemory> Backend::local_of(const RemoteBuffer& buffer) const { return engine_->lender().local_of(buffer); }
std::size_t Backend::buffer_count() const { return engine_->buffer_count(); }
Result<Batch> Backend::submit(std::span<const Op> ops, Duration timeout) { return wrap(engine_->submit(ops, timeout)); }
Result<Batch> Backend::release(const RemoteBuffer& buffer, Duration timeout) {
  return wrap(engine_->release(buffer, timeout));
}

bool Backend::has_backend(std::string_view name) const { return engine_->agent().has_backend(name); }

TransportLevel Backend::transport_level() const {
  TransportLevel best = TransportLevel::kTcp;
  for (const BackendReport& report : engine_->agent().backends()) {
    if (report.open && report.name != "loopback") best = std::max(best, level_of(report.name));
  }
  return best;
}

Result<TransportInfo> Backend::transport_info(const RemoteBuffer& buffer) {
  return engine_->route_facts().transport_info(buffer);
}

std::string Backend::explain(const RemoteBuffer& buffer, const LocalMemory& local) {
  return engine_->route_facts().explain(buffer, local);
}

Result<QueuePairInfo> Backend::queue_pair_info(const RemoteBuffer& buffer, const LocalMemory& local) {
  return engine_->route_facts().queue_pair_info(buffer, local);
}

bool Backend::serve() { return engine_->serve(); }
Agent& Backend::agent() const { return engine_->agent(); }

}  // namespace rdma
HAWSER_NAMESPACE_END
