#pragma once

// What tests of the engine's members share: an agent of no backends, buffers of owners that it does not know, and
// batches without an engine.
//
// Thread rule: one thread at a time.

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/agent.h>
#include <hawser/rdma.h>

#include "agent/open.h"
#include "base/events.h"
#include "rdma/batch.h"
#include "rdma/handle.h"
#include "rdma/held_memory.h"
#include "rdma/lender.h"
#include "rdma/lent_buffers.h"
#include "rdma/messages.h"
#include "rdma/replies.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

inline Agent agent_of_no_backends(std::string name) {
  AgentOptions options;
  options.name = std::move(name);
  return std::move(agent::open_with(std::move(options), {}).value());
}

/// A buffer of "owner", whose card says that it has these backends.
inline RemoteBuffer foreign_buffer(std::initializer_list<const char*> backends, std::string name = {}) {
  wire::Card card;
  card.name = "owner";
  card.incarnation = {1, 2};
  card.revision = 1;
  card.kind = wire::CardKind::kPartial;
  for (const char* each : backends) card.backends.push_back({.name = each, .address = "somewhere"});
  auto core = std::make_shared<BufferCore>();
  core->id = 42;
  core->token = {3, 4};
  core->whole = 1000;
  core->card = wire::encode(card).value();
  core->name = std::move(name);
  core->owner = card.name;
  core->incarnation.bytes[0] = std::byte{1};
  return RemoteBuffer(std::move(core), 0, 1000);
}

/// What a member sent, parsed.
struct SentMail {
  Peer to;
  Parsed what;
};

/// An agent that lends, and what it answers.
class TestOwner {
 public:
  explicit TestOwner(const std::string& name) : agent(agent_of_no_backends(name)) {}

  Result<RemoteBuffer> lend(std::uint64_t id, const Lending& lending = {}) { return lender.lend(id, memory, lending); }
  LocalMemory memory_of(std::span<std::byte> bytes, bool writable = true) const {
    auto core = std::make_shared<MemoryCore>();
    core->bytes = bytes;
    core->engine = self.number;
    core->writable = writable;
    return LocalMemory(std::move(core), 0, bytes.size());
  }

  std::vector<std::uint64_t> words = std::vector<std::uint64_t>(8);
  Agent agent;
  EngineId self{.number = 1, .incarnation = agent.incarnation()};
  std::vector<SentMail> sent;
  LentBuffers lent{{.buffers = 100, .releases = 100}};
  base::EventFd wake = std::move(base::EventFd::open().value());
  Replies replies{[this](const Peer& to, std::string_view bytes) {
    sent.push_back({.to = to, .what = parse(bytes)});
    return Status();
  }};
  Lender lender{{.agent = agent, .self = self, .lent = lent, .replies = replies, .wake = wake}};
  LocalMemory memory = memory_of(std::as_writable_bytes(std::span(words)));
};

inline std::shared_ptr<BatchCore> batch_of(std::size_t size, Instant deadline = Instant::max()) {
  return std::make_shared<BatchCore>(std::weak_ptr<Engine>(), 1, size, deadline);
}

}  // namespace rdma
HAWSER_NAMESPACE_END
