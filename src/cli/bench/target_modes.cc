// The modes of the bench's second process while something is measured. See target.h.

#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "base/spin.h"
#include "base/try.h"
#include "cli/bench/blocks.h"
#include "cli/bench/cores.h"
#include "cli/bench/cpu.h"
#include "cli/bench/message_channel.h"
#include "cli/bench/raw_consume.h"
#include "cli/bench/raw_lines.h"
#include "cli/bench/raw_sockets.h"
#include "cli/bench/raw_stream.h"
#include "cli/bench/raw_stream_json.h"
#include "cli/bench/sampler.h"
#include "cli/bench/stage.h"
#include "cli/bench/target.h"

namespace hawser::cli::bench {
namespace {

constexpr int kDrivenLookMs = 1;
constexpr int kRestLookMs = 100;
constexpr Duration kAnswerPatience = std::chrono::seconds(10);

/// Asking for the end of the phase touches a cache line that both processes use, so it is done now and then only.
bool is_time_to_ask(std::uint32_t polls) { return polls % 64 == 0; }

}  // namespace

Result<Json> TargetProcess::phase(const Json& command) {
  const auto number = command.value("number", std::uint32_t{0});
  const Over over = [this, number] { return board_->page().over.load(std::memory_order_acquire) >= number; };
  const int core = command.value("core", -1);
  if (core >= 0 && core_ < 0) pin_to(core);
  const CpuTime before = cpu_time_now();
  const Status status = run_mode(command, over);
  const CpuTime spent = cpu_time_now() - before;
  if (core >= 0 && core_ < 0) unpin();
  HAWSER_TRY(status);
  Json ended = control_message("ended");
  ended["cpu_ns"] = spent.ns;
  return ended;
}

Status TargetProcess::run_mode(const Json& command, const Over& over) {
  const std::string mode = command.value("mode", "");
  if (mode == "serve") return serve(over);
  if (mode == "echo") return echo(over);
  if (mode == "heed") return heed(over);
  if (mode == "messages") return messages(over);
  if (mode == "pong_words") return pong_words(over);
  if (mode == "consume") return consume(command, over);
  if (mode == "stream") return stream(command, over);
  if (mode == "rest") return rest(over);
  if (mode == "pong") return answer_pings(sockets_.at(0).get(), over);
  if (mode == "bounce" || mode == "raw_consume") {
    if (mode == "bounce") echo_lines(board_->page(), over);
    if (mode == "raw_consume") consume_slots(*board_, command.value("slot_bytes", std::uint64_t{0}), over);
    return Status();
  }
  return Status(Code::kCorrupt, fmt::format("the parent asked for a phase '{}', which there is not", mode));
}

Status TargetProcess::serve(const Over& over) {
  while (!over()) {
    if (driver_) {
      ::poll(nullptr, 0, kDrivenLookMs);
    } else {
      poll_all();
    }
  }
  return Status();
}

// Only drivers run. The looks at the board are so rare that they cost nothing.
Status TargetProcess::rest(const Over& over) {
  while (!over()) ::poll(nullptr, 0, kRestLookMs);
  return Status();
}

// Each notification is answered by one of the same text.
Status TargetProcess::echo(const Over& over) {
  return take_notifications(over, [&](const Notification& one) { return answer(one.peer, one.text, over); });
}

// All are taken, and the last one is answered.
Status TargetProcess::heed(const Over& over) {
  return take_notifications(over, [&](const Notification& one) {
    return one.text == kLastMessage ? answer(one.peer, one.text, over) : Status();
  });
}

template <typename See>
Status TargetProcess::take_notifications(const Over& over, const See& see) {
  Notification notification;
  for (std::uint32_t polls = 1; !(driver_ || is_time_to_ask(polls)) || !over(); ++polls) {
    if (driver_) {
      agent_.wait(std::chrono::milliseconds(kDrivenLookMs));
    } else {
      poll_all();
    }
    while (agent_.take_notifications({&notification, 1}) == 1) HAWSER_TRY(see(notification));
  }
  return Status();
}

Status TargetProcess::answer(const Peer& peer, std::string_view text, const Over& over) {
  std::int64_t deadline = 0;  // The clock is asked only where there was no room: this is part of what is measured.
  while (true) {
    const Status status = peer.notify(text);
    if (status.code() != Code::kBusy || over()) return status.code() == Code::kBusy ? Status() : status;
    if (deadline == 0) deadline = now_ns() + kAnswerPatience.count();
    if (now_ns() > deadline) return status;
    agent_.poll();  // Room comes as the peer takes what it has.
  }
}

Status TargetProcess::messages(const Over& over) {
  std::array<Message, 16> room;
  for (std::uint32_t polls = 1; !is_time_to_ask(polls) || !over(); ++polls) {
    agent_.poll();
    agent_.take_messages(kBenchChannel, room);
  }
  return Status();
}

// Whatever word the parent writes here is written back into its memory.
Status TargetProcess::pong_words(const Over& over) {
  const auto found = memories_.find("pong");
  if (found == memories_.end() || !pong_) return Status(Code::kNotFound, "no ping-pong was prepared");
  std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(found->second.region.bytes().data()));
  std::optional<Transfer> last;
  for (std::uint32_t polls = 1; !is_time_to_ask(polls) || !over(); ++polls) {
    agent_.poll();
    const std::uint64_t now = word.load(std::memory_order_acquire);
    if (now == pong_answered_) continue;
    pong_answered_ = now;
    if (last) HAWSER_TRY(finish(agent_, *last));
    HAWSER_TRY_ASSIGN(last, pong_->submit());
  }
  return last ? finish(agent_, *last) : Status();
}

// A notification names a slot, which is read and answered for.
Status TargetProcess::consume(const Json& command, const Over& over) {
  HAWSER_TRY_ASSIGN(const std::span<std::byte> bytes, bytes_of(command));
  const std::uint64_t slot_bytes = command.value("slot_bytes", std::uint64_t{0});
  std::uint64_t sum = 0;
  Notification notification;
  for (std::uint32_t polls = 1; !is_time_to_ask(polls) || !over(); ++polls) {
    agent_.poll();
    while (agent_.take_notifications({&notification, 1}) == 1) {
      const std::uint64_t slot = notification.text == "1" ? 1 : 0;
      sum += read_all(bytes.subspan(slot * slot_bytes, slot_bytes));
      asm volatile("" : : "r"(sum) : "memory");
      HAWSER_TRY(answer(notification.peer, notification.text, over));
    }
  }
  return Status();
}

Status TargetProcess::stream(const Json& command, const Over& over) {
  const RawWay way = raw_way_from(command.value("way", Json::object()));
  RawPass pass = raw_pass_from(command.value("pass", Json::object()), board_->arena().data());
  std::vector<int> fds;
  for (std::size_t i = 0; i < std::min(way.sockets, sockets_.size()); ++i) fds.push_back(sockets_[i].get());
  const RawSide side = command.value("send", false) ? RawSide::kSend : RawSide::kReceive;
  return run_stream(fds, pass, way, side, board_->page(), over);
}

}  // namespace hawser::cli::bench
