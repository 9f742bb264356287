// The C ABI of worlds: several messages in one step, and the pools where receives get their buffers.

#include <algorithm>
#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "api/c/world_objects.h"

namespace hawser::api {
namespace {

Status check(const char* call, const hawser_message& message, std::size_t place) {
  const auto wrong = [&](const std::string& why) {
    return invalid(call, "messages[" + std::to_string(place) + "] " + why);
  };
  constexpr std::uint32_t kOfReceives = HAWSER_MESSAGE_ANY_TAG | HAWSER_MESSAGE_ANY_SIZE;
  const bool is_receive = (message.flags & HAWSER_MESSAGE_RECV) != 0;
  if ((message.flags & ~(HAWSER_MESSAGE_RECV | kOfReceives)) != 0) return wrong("has unknown flags");
  if (!is_receive && (message.flags & kOfReceives) != 0) return wrong("is sent, and has flags of receives");
  const bool makes_room = (message.flags & HAWSER_MESSAGE_ANY_SIZE) != 0;
  if (makes_room && (message.data != nullptr || message.size != 0)) return wrong("makes room, and is given some");
  if (!makes_room && message.data == nullptr && message.size != 0) return wrong("has no data");
  return {};
}

/// The requests, in the order of the messages.
Result<std::vector<Request>> begin(const char* call, hawser_world world, std::span<const hawser_message> messages,
                                   const hawser_operation_options* options) {
  HAWSER_TRY_ASSIGN(const hawser_operation_options given, operation_options(call, options));
  HAWSER_TRY_ASSIGN(const Priority priority, priority_of(call, given.priority, Priority::kBulk));
  HAWSER_TRY_ASSIGN(const auto its, find<WorldObject>(call, world));
  std::vector<OutgoingMessage> sends;
  std::vector<AwaitedMessage> receives;
  for (std::size_t i = 0; i < messages.size(); ++i) {
    const hawser_message& each = messages[i];
    HAWSER_TRY(check(call, each, i));
    auto* const data = static_cast<std::byte*>(each.data);
    if ((each.flags & HAWSER_MESSAGE_RECV) == 0) {
      sends.push_back({.bytes = {data, each.size}, .to = each.rank, .tag = each.tag});
      continue;
    }
    const bool takes_any = (each.flags & HAWSER_MESSAGE_ANY_TAG) != 0;
    receives.push_back({.into = {data, each.size},
                        .from = each.rank,
                        .tag = takes_any ? std::nullopt : std::optional<std::uint64_t>(each.tag),
                        .any_size = (each.flags & HAWSER_MESSAGE_ANY_SIZE) != 0});
  }
  const MessageOptions with{.timeout = Duration(given.timeout_ns), .exact = given.flag != 0, .priority = priority};
  std::vector<Request> made = its->world.ibatch(sends, receives, with).take();
  std::vector<Request> ordered;
  std::size_t send = 0, receive = sends.size();
  for (const hawser_message& each : messages) {
    ordered.push_back(std::move(made[(each.flags & HAWSER_MESSAGE_RECV) == 0 ? send++ : receive++]));
  }
  return ordered;
}

void note_end(hawser_message& message, const Request& request) {
  const Status status = request.status();
  message.code = static_cast<int>(status.code());
  if (!status.ok() || (message.flags & HAWSER_MESSAGE_RECV) == 0) return;
  const Received got = request.received();
  message.source = got.source;
  message.source_tag = got.tag;
  message.bytes = got.bytes;
}

Status wait_for_all(const char* call, hawser_world world, std::span<hawser_message> messages,
                    const hawser_operation_options* options) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    if ((messages[i].flags & HAWSER_MESSAGE_ANY_SIZE) != 0) {
      return invalid(call, "messages[" + std::to_string(i) + "] makes room, which lives as long as its request")
          .with_advice("hawser_world_ibatch gives requests");
    }
  }
  HAWSER_TRY_ASSIGN(std::vector<Request> begun, begin(call, world, messages, options));
  Batch batch(std::move(begun));
  Status status = batch.wait(Duration::max());
  for (std::size_t i = 0; i < messages.size(); ++i) note_end(messages[i], batch[i]);
  return status;
}

Status hand_out_all(const char* call, std::vector<Request> begun, hawser_request* requests) {
  for (std::size_t i = 0; i < begun.size(); ++i) {
    const Status bad = give_handle(call, &requests[i], std::make_unique<RequestObject>(std::move(begun[i])));
    if (bad.ok()) continue;
    for (std::size_t made = 0; made < i; ++made) (void)handles().release<RequestObject>(call, requests[made].id);
    return bad;
  }
  return {};
}

Result<BufferPool> pool_of(const char* call, const hawser_pool_options& options) {
  constexpr std::uint32_t kFlags = HAWSER_POOL_REFUSES;
  if ((options.flags & ~kFlags) != 0) return invalid(call, "flags has unknown bits");
  if (options.profile != 0 && (options.tier_count != 0 || options.flags != 0)) {
    return invalid(call, "a profile is given, and tiers or flags, too");
  }
  if (options.profile == HAWSER_POOL_TRAINING) return BufferPool::training();
  if (options.profile == HAWSER_POOL_INFERENCE) return BufferPool::inference();
  if (options.profile != 0) return invalid(call, "there is no profile " + std::to_string(options.profile));
  HAWSER_TRY(not_null(call, options.tiers, options.tier_count, "tiers"));
  std::vector<BufferPool::Tier> tiers;
  for (std::size_t i = 0; i < options.tier_count; ++i) {
    tiers.push_back({.bytes = options.tiers[i].bytes, .count = options.tiers[i].count});
  }
  return BufferPool::with_tiers(tiers,
                                options.flags != 0 ? BufferPool::Beyond::kRefuse : BufferPool::Beyond::kAllocate);
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

int hawser_world_batch(hawser_world world, hawser_message* messages, size_t count,
                       const hawser_operation_options* options) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, messages, count, "messages"));
    return wait_for_all(call, world, {messages, count}, options);
  });
}

int hawser_world_ibatch(hawser_world world, const hawser_message* messages, size_t count,
                        const hawser_operation_options* options, hawser_request* requests) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, messages, count, "messages"));
    HAWSER_TRY(not_null(call, requests, count, "requests"));
    HAWSER_TRY_ASSIGN(std::vector<Request> begun, begin(call, world, {messages, count}, options));
    return hand_out_all(call, std::move(begun), requests);
  });
}

int hawser_requests_wait(const hawser_request* requests, size_t count, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, requests, count, "requests"));
    const Instant begun = Clock::steady().now();
    const Duration all = timeout_of(timeout_ns);
    Status first;
    for (std::size_t i = 0; i < count; ++i) {
      HAWSER_TRY_ASSIGN(const auto its, find<RequestObject>(call, requests[i]));
      const Duration spent = Clock::steady().now() - begun;
      const Duration left = all == Duration::max() ? all : std::max(all - spent, Duration::zero());
      const Status status = its->request.wait(left);
      if (!its->request.done()) return status;
      if (first.ok()) first = status;
    }
    return first;
  });
}

int hawser_pool_open(const hawser_pool_options* options, hawser_pool* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto given, options_of(call, "hawser_pool_options", options));
    HAWSER_TRY_ASSIGN(BufferPool pool, pool_of(call, given));
    return give_handle(call, out, std::make_unique<PoolObject>(std::move(pool)));
  });
}

int hawser_pool_statistics(hawser_pool pool, hawser_pool_tier* tiers, size_t capacity, size_t* count, uint64_t* bytes,
                           uint64_t* beyond) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, tiers, capacity, "tiers"));
    HAWSER_TRY(not_null(call, count, "count"));
    HAWSER_TRY_ASSIGN(const auto its, find<PoolObject>(call, pool));
    const BufferPool::Statistics all = its->pool.statistics();
    for (std::size_t i = 0; i < std::min(capacity, all.tiers.size()); ++i) {
      const BufferPool::TierStatistics& each = all.tiers[i];
      tiers[i] = {.bytes = each.bytes,
                  .count = each.count,
                  .made = each.made,
                  .used = each.used,
                  .most_used = each.most_used,
                  .taken = each.taken};
    }
    *count = all.tiers.size();
    if (bytes != nullptr) *bytes = all.bytes;
    if (beyond != nullptr) *beyond = all.beyond;
    return {};
  });
}

int hawser_pool_trim(hawser_pool pool) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<PoolObject>(call, pool));
    its->pool.trim();
    return {};
  });
}

int hawser_pool_release(hawser_pool pool) { return release<PoolObject>(__func__, pool); }
