#pragma once

// Always-on counters, readable as structs and as JSON. Values only grow, except gauges (named so).
//
// Thread rule: snapshots are values. Taking one holds the lane for a moment, which grows with the number of peers: what
// it tells of transfers, peers and paths is of one instant, the gauges of regions may be a little later.

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <hawser/export.h>

HAWSER_NAMESPACE_BEGIN

struct LatencySummary {
  std::uint64_t count = 0;
  std::uint64_t p50_ns = 0, p90_ns = 0, p99_ns = 0, max_ns = 0, sum_ns = 0;
  /// How many took less than 2^(10 + 2 * i) ns: 1.024 us, 4.096 us, and so on to 17.2 s.
  std::array<std::uint64_t, 13> below{};
};

struct FlowCounters {
  std::uint64_t bytes_written = 0;  ///< By transfers of this agent, final and good.
  std::uint64_t bytes_read = 0;
  std::uint64_t writes = 0, reads = 0;
  std::uint64_t errors = 0, retries = 0, cancels = 0, timeouts = 0;
  std::uint64_t notifications_sent = 0, notifications_received = 0;
  std::uint64_t messages_sent = 0, messages_received = 0;
  LatencySummary latency;  ///< Submit to final, of good transfers; of those over within submit, one in eight.
};

/// Traffic of queue pairs. A queue pair keeps its counts when it is connected anew.
struct QueuePairFlow {
  std::uint64_t bytes_out = 0, bytes_in = 0;  ///< Of writes and reads that ended well.
  std::uint64_t operations = 0;               ///< Work requests of those.
  std::uint64_t messages_out = 0, messages_in = 0;
  std::uint64_t errors = 0;              ///< Completions that were errors; those flushed after the first are none.
  std::uint64_t reconnects = 0;          ///< Times it was ready again.
  std::uint64_t receiver_not_ready = 0;  ///< Of the errors: the peer had no receive posted, for all retries.
};

/// A queue pair of a path by RDMA, as it is now.
struct QueuePairCounters {
  std::uint32_t number = 0, peer_number = 0;  ///< At this end and at the peer's; 0: none now.
  std::string state;        ///< absent, connecting, proving, accepted, ready, draining, backoff, closed.
  std::uint32_t epoch = 0;  ///< Attempts to connect so far.
  std::string device;       ///< Of this end.
  std::uint32_t port = 0;
  std::string gid, peer_gid;    ///< As text; empty: not known yet.
  std::uint32_t mtu_bytes = 0;  ///< Payload of a packet; of what both ends allow.
  std::uint32_t in_flight_gauge = 0;
  std::uint64_t bytes_in_flight_gauge = 0;
  QueuePairFlow flow;
};

/// A port of an RDMA device that this agent uses, over all paths there ever were.
struct DeviceCounters {
  std::string backend, device;
  std::uint32_t port = 0;
  std::uint32_t queue_pairs_gauge = 0;
  std::uint64_t faults = 0;  ///< Times that the port or its device failed, or completions were lost.
  QueuePairFlow flow;
};

struct PathCounters {
  std::string peer, backend, state;
  std::uint64_t bytes_out = 0, bytes_in = 0, chunks = 0, messages_out = 0, messages_in = 0, epochs = 0;
  std::uint64_t errors = 0;   ///< Chunks that this path ended with an error.
  std::uint64_t retries = 0;  ///< Of those, chunks that were offered again, to this path or another.
  LatencySummary latency;     ///< As FlowCounters::latency, of transfers whose last chunk this path had.
  std::uint64_t bytes_direct = 0, bytes_buffered = 0;  ///< Of the backend file: past the page cache, and through it.
  std::vector<QueuePairCounters> queue_pairs;          ///< Of a backend that has some.
};

/// How a backend's listener answered the connections that reached it.
struct AdmissionCounters {
  std::string backend;
  std::uint64_t let_in = 0;       ///< Sessions that peers opened here.
  std::uint64_t turned_away = 0;  ///< Connections that were refused, or did not prove themselves in time.
  std::uint64_t gave_way = 0;     ///< Unproven connections that were ended for newer ones, since too many waited.
  /// Of quic: first datagrams without an answer, since too many answers to unproven addresses had gone already.
  std::uint64_t unanswered = 0;
  /// Of those that were turned away: the code ("denied": no proof, or a wrong one) and how often.
  std::vector<std::pair<std::string, std::uint64_t>> by_code;
};

struct PeerCounters {
  std::string peer, incarnation, state;
  std::uint16_t wire_version = 0;  ///< That both speak; 0 until a path was up.
  FlowCounters flow;
};

struct AgentCounters {
  std::string agent, incarnation;
  FlowCounters total;
  std::vector<PeerCounters> peers;
  std::vector<PathCounters> paths;
  std::vector<DeviceCounters> devices;
  std::vector<AdmissionCounters> admissions;  ///< Of backends that have a listener.
  /// What peers were refused because it was beyond a quota (AgentLimits::peer_*; "name": another peer holds it), and
  /// how often. Those that never happened are left out.
  std::vector<std::pair<std::string, std::uint64_t>> quota_refusals;
  std::uint64_t events_dropped = 0;  ///< The oldest peer events, since nobody took them (AgentLimits::events).
  std::uint64_t notification_bytes_gauge = 0;  ///< Held for the user, as AgentLimits::notification_bytes counts them.
  std::uint64_t regions_gauge = 0, region_bytes_gauge = 0, transfers_in_flight_gauge = 0;
  std::uint64_t grants_gauge = 0;  ///< Made and not ended. They are not counted as regions.
  /// Of regions of foreign memory, where AgentOptions::adopt is set: whose pages were adopted, and whose could not be.
  std::uint64_t regions_adopted_gauge = 0, region_bytes_adopted_gauge = 0, regions_not_adopted_gauge = 0;
};

HAWSER_API std::string to_json(const AgentCounters& counters);

HAWSER_NAMESPACE_END
