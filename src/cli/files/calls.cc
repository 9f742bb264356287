#include "cli/files/calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/shown.h"
#include "base/try.h"
#include "cli/interrupt.h"

namespace hawser::cli {
namespace {

constexpr Duration kSlice = std::chrono::milliseconds(20);  // Between two looks at Ctrl-C.
/// A server says hello before it opens its channel for files, but not much before.
constexpr Duration kOpenPatience = std::chrono::seconds(1);
constexpr Duration kRoomPause = std::chrono::microseconds(500);  // Before a request that found no room is sent again.

}  // namespace

Calls::Calls(Agent& agent, Peer peer, Duration timeout)
    : agent_(agent), peer_(std::move(peer)), timeout_(timeout), taker_([this] { take_answers(); }) {}

Calls::~Calls() {
  mutex_.lock();
  is_closing_ = true;
  mutex_.unlock();
  taker_.join();
}

void Calls::take_answers() {
  for (;;) {
    mutex_.lock();
    const bool closing = is_closing_;
    mutex_.unlock();
    if (closing) return;
    while (const auto event = agent_.take_event()) {
      if (event->kind != PeerEvent::Kind::kDown || event->peer.incarnation() != peer_.incarnation()) continue;
      const base::MutexLock lock(mutex_);
      down_ = Status(Code::kDisconnected, "the server is gone")
                  .with_advice("run the command again once it is back: a copy goes on where it stopped")
                  .because(event->cause);
      answered_.notify_all();
    }
    while (const auto answer = agent_.take_notification()) {
      Json json = decode_file_message(answer->text).json;
      const base::MutexLock lock(mutex_);
      const auto found = json.contains("id") && json["id"].is_number_unsigned()
                             ? waiting_.find(json["id"].get<std::uint64_t>())
                             : waiting_.end();
      if (found == waiting_.end()) continue;  // Nobody waits any more.
      found->second = std::move(json);
      answered_.notify_all();
    }
    agent_.wait(kSlice);
  }
}

Status Calls::gone() const {
  const base::MutexLock lock(mutex_);
  return down_;
}

Status Calls::send(const std::string& bytes, Instant deadline) {
  Instant closed_since = Instant::max();
  for (;;) {
    const Status sent = peer_.send(kFileChannel, std::as_bytes(std::span<const char>(bytes))).error();
    if (sent.code() != Code::kBusy) return sent;
    HAWSER_TRY(interrupt_status());
    HAWSER_TRY(gone());
    const Instant now = Clock::steady().now();
    const bool is_closed = !peer_.opened(kFileChannel) && peer_.connect(Duration::zero()).ok();
    if (!is_closed) closed_since = Instant::max();
    if (is_closed && closed_since == Instant::max()) closed_since = now;
    if (is_closed && now - closed_since >= kOpenPatience) {
      return Status(Code::kUnsupported, fmt::format("{} takes no requests for files", base::shown(peer_.name())))
          .with_advice("start it as `hawser serve --dir FOLDER`");
    }
    if (now >= deadline) {
      return Status(Code::kTimedOut, fmt::format("{} took no request for files in time", base::shown(peer_.name())))
          .because(sent);
    }
    agent_.wait(kRoomPause);
  }
}

Result<Json> Calls::call(Json request, std::string_view tail) {
  const Instant deadline = Clock::steady().now() + timeout_;
  std::uint64_t id = 0;
  {
    const base::MutexLock lock(mutex_);
    id = next_id_++;
    waiting_[id] = std::nullopt;
  }
  request["id"] = id;
  Status failed = send(encode_file_message(request, tail), deadline);
  mutex_.lock();
  while (failed.ok() && !waiting_[id]) {
    answered_.wait_until(mutex_, std::min(deadline, Clock::steady().now() + kSlice));
    if (waiting_[id]) break;
    failed = !down_.ok() ? down_ : interrupt_status();
    if (failed.ok() && Clock::steady().now() >= deadline) {
      failed = Status(Code::kTimedOut, fmt::format("{} did not answer within --timeout", base::shown(peer_.name())));
    }
  }
  std::optional<Json> answer = std::move(waiting_[id]);
  waiting_.erase(id);
  mutex_.unlock();
  if (answer && answer->value("ok", false)) return *std::move(answer);
  if (answer) return status_from(answer->value("error", Json::object())).with_peer(peer_.name());
  return failed.with_peer(peer_.name());
}

}  // namespace hawser::cli
