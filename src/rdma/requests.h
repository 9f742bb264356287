#pragma once

// Requests: what this process asked the owners of buffers (releases, atomics, handles), each until its answer, its
// batch's deadline or its owner's end.
//
// Thread rule: thread-safe. Nothing is sent and no batch is called under the lock.

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include <hawser/peer.h>
#include <hawser/rdma.h>

#include "base/events.h"
#include "base/mutex.h"
#include "rdma/batch.h"
#include "rdma/messages.h"
#include "rdma/replies.h"
#include "rdma/ways.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {

class Requests {
 public:
  struct Uses {
    SendBytes send;
    const Ways& ways;
    const base::EventFd& wake;  ///< Something has to be looked at from now on.
  };
  struct Question {
    std::shared_ptr<BatchCore> batch;  ///< Whose operation `index` ends with the answer.
    std::size_t index = 0;
    RemoteBuffer buffer;  ///< What it is about.
    Peer owner;
    Ask ask;                                   ///< But for its number.
    std::shared_ptr<std::string> handle = {};  ///< For an answer that is one.
  };

  /// `most` are under way at once; one more ends with kBusy.
  Requests(std::size_t most, Uses uses) : most_(most), uses_(std::move(uses)) {}

  void ask(Question question) HAWSER_EXCLUDES(mutex_);
  /// Sends those that were not sent, and ends those that are due. True: some have ended.
  bool turn(Instant now) HAWSER_EXCLUDES(mutex_);
  void on_reply(const Peer& from, const Reply& answer) HAWSER_EXCLUDES(mutex_);
  /// Ends what this batch asked, but for releases: they are done all the same.
  void cancelled(BatchCore& batch) HAWSER_EXCLUDES(mutex_);
  bool empty() const HAWSER_EXCLUDES(mutex_);
  void clear() HAWSER_EXCLUDES(mutex_);

 private:
  struct Request {
    std::shared_ptr<BatchCore> batch;
    std::size_t index = 0;
    RemoteBuffer buffer;
    std::shared_ptr<std::string> handle;
    Peer peer;
    std::string bytes;
    bool sent = false;
    Status refusal;  ///< Why it could not be sent the last time.
    bool is_release = false;
  };

  static Status end_of(const Request& request, bool is_dead);
  void turned_back(std::uint64_t number, Status refusal) HAWSER_EXCLUDES(mutex_);

  const std::size_t most_;
  const Uses uses_;
  mutable base::Mutex mutex_;
  std::uint64_t last_number_ HAWSER_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, Request> all_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace rdma
HAWSER_NAMESPACE_END
