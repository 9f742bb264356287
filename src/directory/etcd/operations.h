#pragma once

// Operations: what a directory asks of etcd, each a call to the cluster with its answer decoded. Keys here are whole,
// with the namespace before them.
//
// Thread rule: one thread. Lifetime: borrows cluster and client.

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/try.h"
#include "directory/etcd/cluster.h"

namespace hawser::directory::etcd {

/// The outcome of a question, and its answer when `reply` is good.
template <typename T>
struct Outcome {
  Reply reply;
  T answer{};

  bool ok() const { return reply.ok(); }
};

class Operations {
 public:
  Operations(Cluster& cluster, HttpClient& http) : cluster_(cluster), http_(http) {}

  Outcome<PutAnswer> put(const PutRequest& request, Instant deadline) {
    return ask("/v3/kv/txn", encode_put(request), deadline, decode_put);
  }
  Outcome<std::uint64_t> erase(std::string_view key, Instant deadline) {
    return ask("/v3/kv/deleterange", encode_erase(key), deadline, decode_erase);
  }
  /// While its last change was in `revision`.
  Outcome<PutAnswer> erase_if(std::string_view key, std::int64_t revision, Instant deadline) {
    return ask("/v3/kv/txn", encode_erase_if(key, revision), deadline, decode_put);
  }
  Outcome<RangeAnswer> get(std::string_view key, Instant deadline) {
    return ask("/v3/kv/range", encode_range({.key = key}), deadline, decode_range);
  }
  /// All under `prefix`, of one revision, in order of keys.
  Outcome<RangeAnswer> list(std::string_view prefix, Instant deadline);
  /// The store's newest revision, by way of its leader.
  Outcome<RangeAnswer> look(std::string_view key, Instant deadline) {
    return ask("/v3/kv/range", encode_range({.key = key, .limit = 1, .keys_only = true}), deadline, decode_range);
  }
  /// At least one second; etcd may give more.
  Outcome<LeaseAnswer> grant(Duration ttl, Instant deadline);
  /// A lease that is gone answers with ttl 0.
  Outcome<LeaseAnswer> keep_alive(std::int64_t lease, Instant deadline) {
    return ask("/v3/lease/keepalive", encode_lease(lease), deadline, decode_lease);
  }
  void revoke(std::int64_t lease, Instant deadline) {
    (void)cluster_.call(http_, "/v3/lease/revoke", encode_lease(lease), deadline);
  }

  Cluster& cluster() { return cluster_; }
  HttpClient& http() { return http_; }

 private:
  template <typename T>
  Outcome<T> ask(std::string_view path, const std::string& body, Instant deadline,
                 Result<T> (*decode)(std::string_view)) {
    Outcome<T> outcome{.reply = cluster_.call(http_, path, body, deadline)};
    if (!outcome.ok()) return outcome;
    Result<T> answer = decode(outcome.reply.body);
    outcome.reply.body.clear();
    if (answer) {
      outcome.answer = *std::move(answer);
    } else {
      outcome.reply.status = answer.status();
    }
    return outcome;
  }

  Cluster& cluster_;
  HttpClient& http_;
};

}  // namespace hawser::directory::etcd
