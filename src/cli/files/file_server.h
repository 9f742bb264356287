#pragma once

// FileServer: answers `hawser cp` for one folder. Requests are taken from the agent's channel into a bounded queue; a
// few threads do them, each with one buffer of kFileChunk bytes.
//
// Thread rule: `take_requests` and the destructor by one thread. Lifetime: the agent outlives it; the destructor waits
// for requests under way, which end with the agent's deadline at the latest.

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <hawser/agent.h>

#include "base/fd.h"
#include "base/mutex.h"
#include "cli/files/listings.h"
#include "cli/files/part_file.h"
#include "cli/files/protocol.h"

namespace hawser::cli {

struct FileServerCounters {
  std::uint64_t requests = 0, refused = 0, bytes_read = 0, bytes_written = 0, files_written = 0;
  std::size_t listings = 0;  ///< Kept at the moment, for clients that have not asked for all of their pages.
  std::size_t uploads = 0;   ///< Parts that are open at the moment, and locked.
};

class FileServer {
 public:
  static Result<std::unique_ptr<FileServer>> open(Agent& agent, const std::string& folder, bool writable);
  ~FileServer();

  /// Takes what came in, and lets go of what is kept for clients that are gone. Returns how many requests.
  std::size_t take_requests();
  FileServerCounters counters() const;

 private:
  static constexpr std::size_t kThreads = 3;
  static constexpr std::size_t kQueueMax = 256;  ///< Requests taken and not begun; more wait at their senders.
  static constexpr std::size_t kClientsMax = 1024;

  FileServer(Agent& agent, base::Fd root, Region buffers, bool writable)
      : agent_(agent), root_(std::move(root)), buffers_(std::move(buffers)), writable_(writable) {}

  void forget_gone();
  void close_parts_of_gone();
  void work(std::size_t number);
  void serve(std::size_t number, const Message& message);
  Result<Json> answer(std::size_t number, const Message& message, const FileMessage& request, bool* answered);
  Result<Json> hello(const Message& message, const FileMessage& request);
  Result<Json> stat(const Json& request);
  Result<Json> list(const Peer& who, const Json& request);
  Result<Json> hash(std::size_t number, const Json& request);
  Status read(std::size_t number, const Peer& from, const Json& request);
  Result<Json> begin(const Peer& from, const Json& request);
  Result<Json> write(std::size_t number, const Peer& from, const Json& request);
  Result<Json> finish(const Peer& from, const Json& request);
  /// The part that this client writes. Each writes one file at a time; another path lets the one before go.
  Result<base::Fd> open_file(const std::string& path) const;
  Result<std::shared_ptr<PartFile>> part_for(const Peer& from, const std::string& path, bool make);
  Result<Peer> client(const Peer& from);
  Status may_write() const;
  std::span<std::byte> buffer(std::size_t number, std::uint64_t size) const {
    return buffers_.bytes().subspan(number * kFileChunk, static_cast<std::size_t>(size));
  }
  Status move(Operation op, std::size_t number, const Peer& from, std::uint64_t slot, std::uint64_t size,
              std::optional<std::string_view> notify);
  void reply(const Peer& to, const Json& json);

  Agent& agent_;
  const base::Fd root_;
  Region buffers_;
  const bool writable_;
  base::Mutex mutex_;
  base::CondVar wake_;
  std::deque<Message> queue_ HAWSER_GUARDED_BY(mutex_);
  std::map<Incarnation, Peer> clients_ HAWSER_GUARDED_BY(mutex_);  ///< Those whose cards are known.
  bool is_closing_ HAWSER_GUARDED_BY(mutex_) = false;
  Listings listings_;
  struct Upload {
    Peer from;
    std::string path;
    std::shared_ptr<PartFile> part;
  };
  base::Mutex uploads_mutex_;                                                ///< Held while a part is opened.
  std::map<Incarnation, Upload> uploads_ HAWSER_GUARDED_BY(uploads_mutex_);  ///< One for each client.
  std::atomic<std::size_t> uploads_open_{0};                                 ///< As many as `uploads_` has.
  std::atomic<std::uint64_t> requests_{0}, refused_{0}, bytes_read_{0}, bytes_written_{0}, files_written_{0};
  std::vector<std::thread> threads_;
};

}  // namespace hawser::cli
