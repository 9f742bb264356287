// The C ABI: cards, peers, and what comes from them.

#include <nlohmann/json.hpp>

#include "api/c/objects.h"

namespace hawser::api {

hawser_region_info info_of(const RemoteRegionInfo& region) {
  hawser_region_info info{.index = region.index,
                          .rights = static_cast<std::uint32_t>(region.rights),
                          .device_kind = static_cast<std::uint32_t>(region.device.kind),
                          .device_ordinal = region.device.ordinal,
                          .bytes = region.size};
  if (info.rights == 0) info.rights = HAWSER_RIGHTS_NONE;
  copy_name(info.name, region.name);
  return info;
}

namespace {

Status open_channel(const char* call, hawser_agent agent, std::uint32_t channel, std::uint32_t credit,
                    Priority priority) {
  constexpr std::uint32_t kCredit = 64;
  HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
  return its->agent.open_channel(channel, credit == 0 ? kCredit : credit, priority);
}

Status give_peer(const char* call, hawser_peer* out, Peer peer) {
  return give_handle(call, out, std::make_unique<PeerObject>(std::move(peer)));
}

hawser_peer_info info_of(const Peer& peer) {
  hawser_peer_info info{.state = static_cast<std::uint32_t>(peer.state()), .is_self = peer.is_self() ? 1u : 0u};
  const Incarnation incarnation = peer.incarnation();
  std::memcpy(info.incarnation, incarnation.bytes.data(), sizeof info.incarnation);
  copy_name(info.name, peer.name());
  return info;
}

Result<std::vector<std::string_view>> names_of(const char* call, const char* const* names, std::size_t count) {
  HAWSER_TRY(not_null(call, names, count, "regions"));
  std::vector<std::string_view> all;
  for (std::size_t i = 0; i < count; ++i) {
    HAWSER_TRY(not_null(call, names[i], "a name of regions"));
    all.emplace_back(names[i]);
  }
  return all;
}

/// Takes one piece of news, if there is any, by `take`, which gives an optional. `out` is checked first: nothing is
/// taken that cannot be given.
template <typename Take, typename Fill>
Status take_news(const char* call, hawser_agent agent, hawser_news* out, Take take, Fill fill) {
  HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
  HAWSER_TRY(give(call, "hawser_news", out, hawser_news{}));
  auto taken = take(its->agent);
  if (!taken) return {};
  hawser_news news{.present = 1};
  HAWSER_TRY(fill(*taken, news));
  if (const Status status = give_peer(call, &news.peer, std::move(taken->peer)); !status.ok()) {
    hawser_buffer_free(&news.data);
    return status;
  }
  return give(call, "hawser_news", out, news);
}

}  // namespace
}  // namespace hawser::api

using namespace hawser;
using namespace hawser::api;

void hawser_news_clear(hawser_news* news) {
  if (news == nullptr || news->size < sizeof(hawser_news)) return;
  if (news->peer.id != 0) (void)handles().release<PeerObject>("hawser_news_clear", news->peer.id);
  hawser_buffer_free(&news->data);
  *news = {.size = sizeof(hawser_news)};
}

int hawser_agent_take_notification(hawser_agent agent, hawser_news* out) {
  return run(__func__, [&](const char* call) -> Status {
    return take_news(
        call, agent, out, [](Agent& its) { return its.take_notification(); },
        [&](const Notification& taken, hawser_news& news) { return give(call, &news.data, taken.text); });
  });
}

int hawser_agent_take_event(hawser_agent agent, hawser_news* out) {
  return run(__func__, [&](const char* call) -> Status {
    return take_news(
        call, agent, out, [](Agent& its) { return its.take_event(); },
        [&](const PeerEvent& taken, hawser_news& news) {
          news.kind = static_cast<std::uint32_t>(taken.kind);
          news.code = static_cast<std::int32_t>(taken.cause.code());
          return give(call, &news.data, taken.cause.ok() ? std::string() : taken.cause.to_string());
        });
  });
}

int hawser_agent_open_channel(hawser_agent agent, uint32_t channel, uint32_t credit) {
  return run(__func__,
             [&](const char* call) { return open_channel(call, agent, channel, credit, Priority::kRealtime); });
}

int hawser_agent_open_channel_in_class(hawser_agent agent, uint32_t channel, uint32_t credit, uint32_t priority) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const Priority its, priority_of(call, priority, Priority::kRealtime));
    return open_channel(call, agent, channel, credit, its);
  });
}

int hawser_agent_take_message(hawser_agent agent, uint32_t channel, hawser_news* out) {
  return run(__func__, [&](const char* call) -> Status {
    return take_news(
        call, agent, out, [&](Agent& its) { return its.take_message(channel); },
        [&](const Message& taken, hawser_news& news) {
          news.channel = taken.channel;
          return give(call, &news.data, taken.bytes);
        });
  });
}

int hawser_agent_self(hawser_agent agent, hawser_peer* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    return give_peer(call, out, its->agent.self());
  });
}

int hawser_agent_card(hawser_agent agent, hawser_buffer* card) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const std::string bytes, its->agent.card());
    return give(call, card, bytes);
  });
}

int hawser_agent_ticket(hawser_agent agent, hawser_buffer* ticket) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    return give(call, ticket, its->agent.ticket());
  });
}

int hawser_agent_partial_card(hawser_agent agent, const uint32_t* regions, size_t count, hawser_buffer* card) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, regions, count, "regions"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const std::string bytes, its->agent.partial_card({regions, count}));
    return give(call, card, bytes);
  });
}

int hawser_agent_card_delta(hawser_agent agent, uint64_t since_revision, hawser_buffer* card) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const std::string bytes, its->agent.card_delta(since_revision));
    return give(call, card, bytes);
  });
}

int hawser_agent_card_revision(hawser_agent agent, uint64_t* revision) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, revision, "revision"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    *revision = its->agent.card_revision();
    return {};
  });
}

int hawser_agent_add_peer(hawser_agent agent, const void* card, size_t size, hawser_peer* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, card, "card"));
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(Peer peer, its->agent.add_peer(bytes_of(card, size)));
    return give_peer(call, out, std::move(peer));
  });
}

int hawser_agent_find_peer(hawser_agent agent, const char* name, int64_t timeout_ns, hawser_peer* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, name, "name"));
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(Peer peer, its->agent.find_peer(name, timeout_of(timeout_ns)));
    return give_peer(call, out, std::move(peer));
  });
}

int hawser_agent_find_peer_regions(hawser_agent agent, const char* name, const char* const* regions, size_t count,
                                   int64_t timeout_ns, hawser_peer* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, name, "name"));
    HAWSER_TRY(not_null(call, out, "out"));
    HAWSER_TRY_ASSIGN(const auto names, names_of(call, regions, count));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(Peer peer, its->agent.find_peer(name, names, timeout_of(timeout_ns)));
    return give_peer(call, out, std::move(peer));
  });
}

int hawser_peer_await_regions(hawser_peer peer, const char* const* regions, size_t count, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto names, names_of(call, regions, count));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return its->peer.await_regions(names, timeout_of(timeout_ns));
  });
}

int hawser_agent_peers(hawser_agent agent, hawser_peer* out, size_t capacity, size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, capacity, "out"));
    HAWSER_TRY(not_null(call, count, "count"));
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    std::vector<Peer> peers = its->agent.peers();
    for (std::size_t i = 0; i < std::min(capacity, peers.size()); ++i) {
      const Status status = give_peer(call, &out[i], std::move(peers[i]));
      if (status.ok()) continue;
      while (i > 0) (void)handles().release<PeerObject>(call, out[--i].id);
      return status;
    }
    *count = peers.size();
    return {};
  });
}

int hawser_agent_invalidate(hawser_agent agent, hawser_peer peer) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<AgentObject>(call, agent));
    HAWSER_TRY_ASSIGN(const auto whom, find<PeerObject>(call, peer));
    return its->agent.invalidate(whom->peer);
  });
}

int hawser_peer_info_get(hawser_peer peer, hawser_peer_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return give(call, "hawser_peer_info", out, info_of(its->peer));
  });
}

int hawser_peer_regions(hawser_peer peer, hawser_buffer* json) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    const nlohmann::json names = its->peer.region_names();
    return give(call, json, names.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace));
  });
}

int hawser_peer_region(hawser_peer peer, const char* name, hawser_region_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, name, "name"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    HAWSER_TRY_ASSIGN(const RemoteRange region, its->peer.region(name));
    return give(call, "hawser_region_info", out, info_of(region_info(region)));
  });
}

int hawser_peer_region_at(hawser_peer peer, uint32_t index, hawser_region_info* out) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    HAWSER_TRY_ASSIGN(const RemoteRange region, its->peer.region(index));
    return give(call, "hawser_region_info", out, info_of(region_info(region)));
  });
}

int hawser_peer_connect(hawser_peer peer, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return its->peer.connect(timeout_of(timeout_ns));
  });
}

int hawser_peer_reconnect(hawser_peer peer) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return its->peer.reconnect();
  });
}

int hawser_peer_notify(hawser_peer peer, const void* data, size_t size) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, data, size, "data"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return its->peer.notify({static_cast<const char*>(data), size});
  });
}

int hawser_peer_send(hawser_peer peer, uint32_t channel, const void* data, size_t size) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, data, size, "data"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return its->peer.send(channel, bytes_of(data, size)).error();
  });
}

int hawser_peer_send_within(hawser_peer peer, uint32_t channel, const void* data, size_t size, int64_t timeout_ns) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, data, size, "data"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    return its->peer.send(channel, bytes_of(data, size), timeout_of(timeout_ns)).error();
  });
}

int hawser_peer_send_numbered(hawser_peer peer, uint32_t channel, const void* data, size_t size, int64_t timeout_ns,
                              uint64_t* number) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, data, size, "data"));
    HAWSER_TRY(not_null(call, number, "number"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    HAWSER_TRY_ASSIGN(*number, its->peer.send(channel, bytes_of(data, size), timeout_of(timeout_ns)));
    return {};
  });
}

int hawser_peer_acknowledged(hawser_peer peer, uint32_t channel, uint64_t* number) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, number, "number"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    *number = its->peer.acknowledged(channel);
    return {};
  });
}

int hawser_peer_acknowledged_all(hawser_peer peer, hawser_acknowledged* out, size_t capacity, size_t* count) {
  return run(__func__, [&](const char* call) -> Status {
    HAWSER_TRY(not_null(call, out, capacity, "out"));
    HAWSER_TRY(not_null(call, count, "count"));
    HAWSER_TRY_ASSIGN(const auto its, find<PeerObject>(call, peer));
    const std::vector<Acknowledged> all = its->peer.acknowledged();
    for (std::size_t i = 0; i < std::min(capacity, all.size()); ++i) {
      out[i] = {.channel = all[i].channel, .reserved = 0, .number = all[i].number};
    }
    *count = all.size();
    return {};
  });
}

int hawser_peer_release(hawser_peer peer) { return release<PeerObject>(__func__, peer); }
