#pragma once

// Cluster: the members of one etcd, the one in use, and the login. `call` asks until there is an answer or the deadline
// has passed: another member after one that fails, the same question again after an answer that will pass.
//
// Thread rule: thread-safe; each caller brings an HttpClient of its own.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/directory.h>

#include "base/mutex.h"
#include "directory/etcd/http.h"
#include "directory/etcd/message.h"

namespace hawser::directory::etcd {

inline constexpr std::size_t kEndpointsMax = 16;

struct Reply {
  Status status;  ///< Good: `body` is the answer.
  Fault fault = Fault::kNone;
  std::string body;
  bool maybe_done = false;  ///< An earlier try may have had its effect without our knowing.
  bool was_away = false;    ///< For a while no member could be reached: it may be another store now.

  bool ok() const { return status.ok(); }
};

class Cluster {
 public:
  /// kInvalid names the option.
  static Result<std::unique_ptr<Cluster>> open(const EtcdOptions& options);

  Reply call(HttpClient& http, std::string_view path, const std::string& body, Instant deadline);
  /// Opens `http`'s stream at the member in use. Logs in first where that is needed.
  Status open_stream(HttpClient& http, std::string_view path, const std::string& body, Instant deadline);

  /// Which member is asked; grows with each that is passed over.
  std::size_t member() const { return member_.load(std::memory_order_relaxed); }
  /// That one failed: the next call asks another, unless somebody has moved on already.
  void pass_over(std::size_t member);
  void forget_token();
  const Tls& tls() const { return tls_; }
  /// When a member last answered.
  Instant last_answer() const { return Instant::from_ns(last_answer_.load(std::memory_order_relaxed)); }
  /// Why members could not be asked, the last one's words; empty once one answered.
  std::string trouble() const;

 private:
  Cluster() = default;
  struct Try;
  void ask(HttpClient& http, const std::string& url, std::string_view path, const std::string& body, Instant deadline,
           Try& one);
  /// False: `one` says why not.
  bool log_in(HttpClient& http, const std::string& url, Instant deadline, Try& one);
  std::string token() const;
  void note_trouble(const Status& why);
  void note_answer();
  Status give_up(std::string_view path, const std::vector<Status>& errors, bool maybe_done) const;

  std::vector<std::string> urls_;
  Tls tls_;
  std::string user_, password_;
  Duration try_timeout_{};
  std::atomic<std::size_t> member_{0};
  std::atomic<std::int64_t> last_answer_{0};
  mutable base::Mutex mutex_;
  std::string token_ HAWSER_GUARDED_BY(mutex_);
  std::string trouble_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace hawser::directory::etcd
