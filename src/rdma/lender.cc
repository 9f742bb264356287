#include "rdma/lender.h"

#include <optional>
#include <utility>

#include "agent/inner_regions.h"
#include "base/inside.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

Status not_there(std::uint64_t id) {
  return Status(Code::kNotFound, "buffer " + std::to_string(id) + " is not of this process, or was released")
      .with_buffer(BufferState::kUntouched)
      .with_advice("only its owner has its memory; read or write it instead");
}

}  // namespace

Result<RemoteBuffer> Lender::lend(std::uint64_t id, const LocalMemory& memory, const Lending& lending) {
  const std::string what = "request_buffer: buffer " + std::to_string(id);
  const Rights rights = lending.rights;
  if (!memory.valid() || memory.size() == 0) {
    return Status(Code::kInvalid, what + " has no memory").with_advice("give at least one byte");
  }
  if (!memory.writable() && allows(rights, Rights::kWrite)) {
    return Status(Code::kDenied, what + " is read-only memory").with_advice("ask for Rights::kRead");
  }
  if (rights == Rights::kNone) {
    return Status(Code::kInvalid, what + " gives no right").with_advice("lend it to be read, written, or both");
  }
  if (lending.name.size() > kBufferNameMax) {
    return Status(Code::kInvalid, what + " has a name of " + std::to_string(lending.name.size()) + " bytes")
        .with_advice("at most 255 are allowed");
  }
  HAWSER_TRY_ASSIGN(std::optional<RemoteBuffer> known, uses_.lent.find(id, memory, lending));
  if (known) return *std::move(known);
  auto core = std::make_shared<BufferCore>();
  core->id = id;
  core->token = base::random_id128();
  core->whole = memory.size();
  core->name = lending.name;
  core->owner = uses_.agent.name();
  core->incarnation = uses_.self.incarnation;
  auto owned = std::make_shared<Owned>();
  owned->memory = memory;
  owned->rights = rights;
  // Its name is for errors and logs. The token is not in it, for who knows that may release the buffer.
  HAWSER_TRY_ASSIGN(owned->region, uses_.agent.add_region({.name = "rdma buffer " + std::to_string(id),
                                                           .bytes = memory.bytes(),
                                                           .device = memory.device(),
                                                           .rights = rights,
                                                           .listed = false}));
  HAWSER_TRY_ASSIGN(owned->whole, uses_.agent.self().region(owned->region.index()));
  HAWSER_TRY_ASSIGN(core->grant, agent::inner::whole_grant(owned->region));
  HAWSER_TRY_ASSIGN(core->card, uses_.agent.partial_card({}));
  owned->handle = RemoteBuffer(std::move(core), 0, memory.size());
  return uses_.lent.add(owned);
}

Result<LocalMemory> Lender::local_of(const RemoteBuffer& buffer) const {
  if (!buffer.valid()) return Status(Code::kInvalid, "local_of: the buffer's handle is empty");
  const std::shared_ptr<Owned> owned =
      uses_.self.owns(*core_of(buffer)) ? uses_.lent.by_token(core_of(buffer)->token) : nullptr;
  if (!owned) return not_there(buffer.id());
  return owned->memory.slice(buffer.offset(), buffer.size());
}

Result<RemoteBuffer> Lender::named(const std::string& name) const {
  if (std::optional<RemoteBuffer> found = uses_.lent.by_name(name)) return *std::move(found);
  return Status(Code::kNotFound,
                "agent '" + std::string(uses_.agent.name()) + "' lends no buffer by the name '" + name + "'");
}

Reply Lender::handle_of(const Ask& ask) const {
  const Result<RemoteBuffer> buffer = named(ask.name);
  if (!buffer) return {.number = ask.number, .status = buffer.error(), .value = 0};
  return {.number = ask.number, .status = {}, .value = 0, .handle = buffer->encode()};
}

void Lender::answer(const Peer& from, const Ask& ask) {
  const Instant now = Clock::steady().now();
  if (ask.kind == AskKind::kRelease) {
    return release(ask.token, {.batch = {}, .peer = from, .number = ask.number, .deadline = now + kReplyPatience});
  }
  uses_.replies.reply(from, ask.kind == AskKind::kHandle ? handle_of(ask) : uses_.lent.run_atomic(ask), now);
}

void Lender::release(const base::Id128& token, Ack ack) {
  std::shared_ptr<Owned> owned;
  const Status refusal = uses_.lent.release(token, ack, &owned);
  if (!refusal.ok()) return acknowledge(ack, refusal);
  if (!owned || !look_at(owned)) uses_.wake.signal();
}

// Its region refuses new uses from the first look on.
bool Lender::look_at(const std::shared_ptr<Owned>& owned) {
  const Status status = owned->region.close(Duration::zero());
  const auto due = uses_.lent.take_due(*owned, status.ok(), Clock::steady().now());
  if (!due) return true;
  for (const Ack& ack : *due) acknowledge(ack, status);
  return status.ok() || !due->empty();
}

bool Lender::look() {
  bool moved = false;
  for (const std::shared_ptr<Owned>& each : uses_.lent.closing()) moved = look_at(each) || moved;
  return moved;
}

void Lender::acknowledge(const Ack& ack, const Status& status) {
  if (ack.batch) return ack.batch->settle(0, {.status = status});
  uses_.replies.reply(ack.peer, {.number = ack.number, .status = status, .value = 0}, Clock::steady().now());
}

}  // namespace rdma
HAWSER_NAMESPACE_END
