#pragma once

// Serves the figures of this process's agents over HTTP, for Prometheus to scrape: GET /metrics.
//
// All agents that name one address share one listener, so a process has one page however many agents it has. The
// listener has a thread of its own, which asks the sources when somebody scrapes.
//
// Strangers: whoever reaches the port reads the page, as with any exporter. Connections are bounded (kConnections, of
// one address kConnectionsPerAddress), each by kIdle and kConnectionBytes; nothing but the request's first line counts.
//
// Thread rule: thread-safe. Lifetime: the last entry of an address ends its listener.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "metrics/exposition.h"

namespace hawser::metrics {

inline constexpr unsigned kConnections = 16;
inline constexpr unsigned kConnectionsPerAddress = 8;
inline constexpr unsigned kIdleSeconds = 10;
inline constexpr std::size_t kConnectionBytes = 32 * 1024;

/// Called by the listener's thread, one call at a time.
using Source = std::function<void(Exposition&)>;

class Listener;

/// One source at one listener. Move-only.
class Entry {
 public:
  Entry() = default;
  Entry(std::shared_ptr<Listener> listener, std::uint64_t number) : listener_(std::move(listener)), number_(number) {}
  Entry(Entry&& other) noexcept = default;
  Entry& operator=(Entry&& other) noexcept;
  /// Waits for a call of the source that is under way.
  ~Entry();

  /// "127.0.0.1:9400": where it listens.
  std::string address() const;

 private:
  std::shared_ptr<Listener> listener_;
  std::uint64_t number_ = 0;
};

/// `listen` is "ADDRESS:PORT" or "ADDRESS:FIRST-LAST": a port that another process has is passed over. Port 0: any.
/// Errors: kInvalid (not of that form; the address is no number), kUnsupported (no libmicrohttpd), kFailed with the
/// kernel's reason (every port is in use, no such address here).
Result<Entry> serve(std::string_view listen, Source source);

}  // namespace hawser::metrics
