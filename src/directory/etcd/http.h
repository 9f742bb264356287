#pragma once

// HttpClient: POST requests to a JSON gateway, one at a time, and one answer that streams lines beside them.
//
// Answers come whole and bounded. Whatever waits here ends by its deadline, or at once after `stop`.
//
// Thread rule: one thread, but `interrupt` and `stop` come from any. Lifetime: connections live as long as it does.

#include <atomic>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <hawser/status.h>

namespace hawser::directory::etcd {

/// Bound on one answer. A page of 32 values of 1 MiB in base64 is 43 MiB.
inline constexpr std::size_t kAnswerMax = std::size_t{96} << 20;
/// Bound on one line of a stream: etcd cuts what it tells to about the largest request (1.5 MiB by default).
inline constexpr std::size_t kLineMax = std::size_t{32} << 20;

/// PEM files; empty: none.
struct Tls {
  std::string ca, cert, key;
  std::string identity = {};  ///< A folder, for those of the three that are empty; see EtcdOptions::identity.
};

struct HttpRequest {
  std::string url;
  std::string body;
  std::string token;  ///< Empty: none.
};

struct HttpReply {
  long status = 0;
  std::string body;
};

class HttpClient {
 public:
  static Result<std::unique_ptr<HttpClient>> open(Tls tls);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  /// kDisconnected: it was never sent. kTimedOut: whether it had an effect is unknown. kDenied: the two do not trust
  /// each other. kCorrupt: an answer beyond the bound. kCancelled: stopped.
  Result<HttpReply> post(const HttpRequest& request, Instant deadline);

  Status open_stream(const HttpRequest& request);
  /// The next whole line; nothing when `until` has passed, after `interrupt`, or when the stream has ended.
  std::optional<std::string> next_line(Instant until);
  bool is_streaming() const;
  /// Why it ended; good while it goes on or when there was none.
  Status stream_error() const;
  void close_stream();

  /// Waits; `interrupt` and `stop` end it.
  void pause(Instant until);
  void interrupt();
  void stop();
  /// After `stop`, once nobody waits here any more: for a last word.
  void restart() { stopped_.store(false, std::memory_order_release); }
  bool is_stopped() const { return stopped_.load(std::memory_order_acquire); }

 private:
  struct Curl;
  explicit HttpClient(std::unique_ptr<Curl> curl);
  /// Moves all transfers on and sleeps until there is more to do.
  void turn(Instant until);

  const std::unique_ptr<Curl> curl_;
  std::atomic<bool> stopped_{false};
  std::atomic<bool> interrupted_{false};
};

}  // namespace hawser::directory::etcd
