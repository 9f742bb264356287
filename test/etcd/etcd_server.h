#pragma once

// EtcdServer: a real member of etcd in a process of its own, on free ports and in a temporary folder, to be stopped,
// killed, emptied and started again.
//
// Thread rule: the test's thread. Lifetime: the process ends with its EtcdServer, or with the test.

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <hawser/directory.h>

#include "base/test_folder.h"

namespace hawser::etcd_test {

using namespace std::chrono_literals;

/// For whatever a test waits for: a machine may be busy with everything else.
inline constexpr Duration kPatience = 60s * HAWSER_TIMEOUT_SCALE;

inline Instant now() { return Clock::steady().now(); }
/// Looks until `done` says so.
template <typename Done>
bool eventually(Done done, Duration patience = kPatience);
void nap(Duration time);

/// Whether etcd is installed.
bool has_etcd();

struct EtcdServerOptions {
  std::string name = "one";
  std::vector<std::string> arguments = {};  ///< Further ones.
  std::string scheme = "http";              ///< Of the clients' side.
  std::string host = "127.0.0.1";           ///< As clients call it.
};

class EtcdServer {
 public:
  using Options = EtcdServerOptions;
  explicit EtcdServer(Options options = {});
  ~EtcdServer();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;

  /// Members of one cluster, not yet started.
  static std::vector<std::unique_ptr<EtcdServer>> cluster(std::size_t count);

  /// Starts it; `is_new` makes it forget all it knew.
  void start(bool is_new = false);
  void kill();
  void stop();
  void resume();
  /// Waits until it serves.
  bool await_ready(const EtcdOptions& options = {});

  std::string endpoint() const { return "127.0.0.1:" + std::to_string(client_port_); }
  std::string url() const { return options_.scheme + "://" + options_.host + ":" + std::to_string(client_port_); }
  /// What its log says last.
  std::string log_tail() const;

 private:
  std::string peer_url() const { return "http://127.0.0.1:" + std::to_string(peer_port_); }
  std::vector<std::string> command() const;
  bool is_running();

  const Options options_;
  base::TestFolder folder_{"hawser-etcd"};
  std::string initial_cluster_, token_;
  std::uint16_t client_port_ = 0, peer_port_ = 0;
  pid_t pid_ = -1;
};

/// Answers of directories, waited for.
DirectoryEvent await(Directory& directory, Ticket ticket, Duration patience = kPatience);
Status put(Directory& directory, std::string_view key, std::string_view value, PutOptions options = {});
/// The value, or the code of the error in brackets.
std::string get(Directory& directory, std::string_view key);

/// What a watch tells, applied.
class Picture {
 public:
  Picture(Directory& directory, std::string_view prefix) : directory_(directory), ticket_(directory.watch(prefix)) {}
  ~Picture() { directory_.cancel(ticket_); }
  Picture(const Picture&) = delete;
  Picture& operator=(const Picture&) = delete;

  /// Takes what there is.
  void look();
  /// "key=value key=value"; "none" before the first answer.
  std::string text() const;
  bool await(const std::string& expected, Duration patience = kPatience);
  const Status& error() const { return error_; }

 private:
  Directory& directory_;
  const Ticket ticket_;
  bool has_answer_ = false;
  Status error_;
  std::vector<std::pair<std::string, std::string>> entries_;
};

template <typename Done>
bool eventually(Done done, Duration patience) {
  for (const Instant end = now() + patience; now() < end;) {
    if (done()) return true;
    nap(10ms);
  }
  return done();
}

}  // namespace hawser::etcd_test
