#include "rdma/renewal.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "agent/inner.h"
#include "base/inside.h"
#include "base/try.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

/// Between two questions to an owner that has not lent it yet.
constexpr Duration kAskAgain = std::chrono::milliseconds(10);

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

Status not_in_time(const RemoteBuffer& buffer, const Status& last) {
  const std::string whose = std::string(buffer.owner());
  return Status(Code::kTimedOut, "renew: " + whose + " did not lend " + quoted(buffer.name()) + " in time")
      .with_peer(buffer.owner())
      .with_advice("see that it runs and lends the buffer by this name, and that both agents are in one directory")
      .because(last);
}

}  // namespace

/// One question to the owner as it lives now. kNotFound: it lends no such buffer, yet.
Result<RemoteBuffer> Renewal::ask_for_handle(const RemoteBuffer& buffer, Instant until) const {
  const auto left = [&] { return std::max(Duration::zero(), until - Clock::steady().now()); };
  Result<Peer> owner = uses_.agent.find_peer(buffer.owner(), left());
  if (!owner && !agent::inner::options_of(uses_.agent).directory) {
    return Status(Code::kUnsupported, "renew: this agent has no directory to find " + quoted(buffer.owner()) + " in")
        .with_advice("open both agents with one directory (AgentOptions::directory)")
        .because(owner.error());
  }
  if (!owner) return owner.error();
  HAWSER_TRY_ASSIGN(const std::string handle, uses_.ask(buffer, *std::move(owner), left()));
  HAWSER_TRY_ASSIGN(RemoteBuffer fresh, RemoteBuffer::decode(handle));
  if (fresh.owner() == buffer.owner() && fresh.name() == buffer.name()) return fresh;
  return Status(Code::kCorrupt, "renew: " + std::string(buffer.owner()) + " answered with a handle of another buffer")
      .with_peer(buffer.owner());
}

Result<RemoteBuffer> Renewal::renew(const RemoteBuffer& buffer, Duration timeout) const {
  if (!buffer.valid()) return Status(Code::kInvalid, "renew: the buffer's handle is empty");
  if (buffer.name().empty()) {
    return Status(Code::kInvalid, "renew: buffer " + std::to_string(buffer.id()) + " has no name")
        .with_advice("let its owner lend it by one (Lending::name), or send a new handle");
  }
  const Instant until = Clock::steady().now() + timeout;
  Status answer;  // The owner's last one, which tells more than that there was no time for another.
  for (;;) {
    const bool is_ours = buffer.owner() == uses_.agent.name();
    Result<RemoteBuffer> fresh = is_ours ? uses_.lender.named(core_of(buffer)->name) : ask_for_handle(buffer, until);
    if (fresh) return fresh->slice(buffer.offset(), buffer.size());
    const Status why = fresh.error();
    const Code code = why.code();
    if (code == Code::kInvalid || code == Code::kCorrupt || code == Code::kUnsupported) return why;
    if (code == Code::kNotFound) answer = why;
    const Duration left = until - Clock::steady().now();
    if (left <= Duration::zero()) return not_in_time(buffer, answer.ok() ? why : answer);
    if (is_ours) return why;
    const Instant next = agent::inner::now(uses_.agent) + std::min(kAskAgain, left);
    (void)agent::inner::wait_until(
        uses_.agent, [] { return false; }, next);
  }
}

}  // namespace rdma
HAWSER_NAMESPACE_END
