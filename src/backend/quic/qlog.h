#pragma once

// Qlog: what one connection does, as a file for tools that draw it (qvis and others): qlog 0.3 as a sequence of JSON
// texts (draft-ietf-quic-qlog-main-schema-04, RFC 7464). It holds times, sizes, addresses and the state of congestion
// control, and no byte of what is carried.
//
// Events are our own, made by Connection; ngtcp2's callback for qlog is not used.
//
// Thread rule: one thread. Memory: kBuffered. Disk: kBytesMax; later events are left out, and the last one says so.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/quic/route.h"
#include "base/fd.h"

namespace hawser::backend::quic {

class Qlog {
 public:
  static constexpr std::size_t kBytesMax = 64u << 20;
  static constexpr std::size_t kBuffered = 64u << 10;

  struct Metrics {
    Duration smoothed = {}, latest = {}, least = {};  ///< Round trips.
    std::uint64_t window = 0, under_way = 0;          ///< Bytes.
    bool operator==(const Metrics&) const = default;
  };

  /// Makes FOLDER/ID-client.sqlog, or -server; `id`: the one that the opener's first datagram was sent to. Errors:
  /// kNotFound, kDenied and the like, with the path.
  static Result<std::unique_ptr<Qlog>> open(const std::string& folder, std::span<const std::uint8_t> id, bool is_opener,
                                            const Route& route, Instant now);
  /// Writes what is buffered.
  ~Qlog();
  Qlog(const Qlog&) = delete;
  Qlog& operator=(const Qlog&) = delete;

  /// The time of what follows.
  void at(Instant now) { now_ = now; }
  void sent(std::size_t bytes) { sent_.push_back(bytes); }
  void came(std::size_t bytes) { came_.push_back(bytes); }
  /// Datagrams since the last call become events, and what of the metrics is new.
  void settle(const Metrics& metrics);
  void handshake_done();
  void moved(std::int64_t stream, std::size_t bytes, bool is_out);
  void closed(std::string_view reason);

 private:
  Qlog(base::Fd file, Instant now) : file_(std::move(file)), began_(now), now_(now) {}
  void event(std::string_view name, std::string_view data);
  void datagrams(std::string_view name, std::vector<std::size_t>& sizes);
  void append(std::string_view text);
  void flush();

  base::Fd file_;
  const Instant began_;
  Instant now_;
  std::vector<std::size_t> sent_, came_;
  Metrics metrics_;
  std::string buffer_;
  std::size_t written_ = 0;
  bool is_full_ = false;
};

/// The text as it stands between the quotes of a JSON string.
std::string json_escaped(std::string_view text);

}  // namespace hawser::backend::quic
