#include "runtime/outbox.h"

#include <algorithm>
#include <utility>

#include "base/copy.h"
#include "base/planted.h"

namespace hawser::runtime {

using agent::Sent;
using base::planted;
using base::Planted;

namespace {

/// Among which parts those of the message take turns.
Priority stream_class_of(const Send& send) {
  return send.envelope.use == wire::MessageUse::kUser ? send.priority : Priority::kBulk;
}

/// Parts on the channel of class realtime would hold back words and collectives.
Priority part_class_of(const Send& send) {
  return stream_class_of(send) == Priority::kCritical ? Priority::kCritical : Priority::kBulk;
}

}  // namespace

void take(const Send& send, std::uint64_t offset, std::span<std::byte> into) {
  if (send.pieces != nullptr) return send.pieces->gather(offset, into);
  base::copy_cached(into.data(), send.data + offset, into.size());
}

Sent Outbox::say(agent::Session& session, Priority priority, const wire::RuntimeMessage& message) {
  wire::RuntimeBuffer buffer;
  return carrier_.carry(session, wire::runtime_channel_of(priority), wire::encode(message, buffer), message.body);
}

/// Small pieces are copied together.
std::span<const std::byte> Outbox::together(const Send& send, std::uint64_t offset, std::size_t size) {
  const std::span<const std::byte> first = send.run(offset);
  if (first.size() >= size) return first.first(size);
  gathered_.resize(kEagerMax);
  take(send, offset, std::span(gathered_).first(size));
  return std::span(gathered_).first(size);
}

Sent Outbox::announce(agent::Session& session, MailDesk& desk, Send& send) {
  const std::uint64_t bytes = send.envelope.bytes;
  ClassDesk& its = desk.of(send.priority);
  const bool is_eager = its.may_send(bytes);
  wire::RuntimeMessage message{.kind = wire::RuntimeKind::kEager, .envelope = send.envelope};
  if (is_eager) {
    message.body = together(send, 0, bytes);
  } else {
    message.kind = wire::RuntimeKind::kAsk;
    if (send.id == 0) send.id = next_id_++;
    message.id = send.id;
    send.is_readable = bytes != 0 && send.pieces == nullptr && carrier_.can_fetch(session);
    message.address = send.is_readable ? reinterpret_cast<std::uintptr_t>(send.data) : 0;
  }
  const Sent sent = say(session, send.priority, message);
  if (sent != Sent::kYes) return sent;
  send.hook.unlink();
  if (is_eager) {
    its.note_sent(bytes);
    end_(send, {});
  } else {
    send.is_asked = true;
    desk.asked.emplace(send.id, &send);
  }
  return sent;
}

/// The next chunk of a message into the memory that was lent for it.
Sent Outbox::write_next(agent::Session& session, MailDesk& desk, Send& send) {
  if (desk.writing >= kWritesMax) return Sent::kNoCredit;  // The end of one of them has the session served.
  const std::uint64_t size = std::min(send.envelope.bytes - send.sent, kWriteChunk);
  const agent::LentWrite result = carrier_.write(send.write, send.sent, {send.data + send.sent, size});
  if (result == agent::LentWrite::kNoRoom) return Sent::kNoRoom;
  if (result == agent::LentWrite::kLost) {
    give_up_write(session, desk, send, carrier_.now());
    return Sent::kYes;
  }
  send.sent += size;
  desk.writing += size;
  send.hook.unlink();
  if (send.sent == send.envelope.bytes && planted(Planted::kWrittenEarly)) {
    desk.say({.kind = wire::RuntimeKind::kWritten, .landing = send.landing});
  }
  if (send.sent < send.envelope.bytes) desk.of(stream_class_of(send)).streams.push_back(send);
  return Sent::kYes;
}

Sent Outbox::send_part(agent::Session& session, MailDesk& desk, Send& send) {
  if (send.write != 0) return write_next(session, desk, send);
  std::uint64_t size = std::min<std::uint64_t>(send.envelope.bytes - send.sent, wire::kRuntimeBodyMax);
  const std::size_t lies_together = send.run(send.sent).size();
  if (lies_together >= kPieceMin) size = std::min<std::uint64_t>(size, lies_together);  // It is not copied.
  const Sent sent = say(session, part_class_of(send),
                        {.kind = wire::RuntimeKind::kPart,
                         .landing = send.landing,
                         .offset = send.sent,
                         .body = together(send, send.sent, size)});
  if (sent != Sent::kYes) return sent;
  send.sent += size;
  send.hook.unlink();
  if (send.sent < send.envelope.bytes) {
    desk.of(stream_class_of(send)).streams.push_back(send);
    return sent;
  }
  desk.asked.erase(send.id);
  end_(send, {});
  return sent;
}

Sent Outbox::say_all(agent::Session& session, std::list<Word>& words, Priority priority, std::size_t* work) {
  while (!words.empty()) {
    if (const Sent sent = say(session, priority, words.front().whole()); sent != Sent::kYes) return sent;
    words.pop_front();
    ++*work;
  }
  return Sent::kYes;
}

Sent Outbox::announce_all(agent::Session& session, MailDesk& desk, Priority priority, std::size_t* work) {
  auto& line = desk.of(priority).line;
  while (!line.empty()) {
    if (const Sent sent = announce(session, desk, *line.front()); sent != Sent::kYes) return sent;
    ++*work;
  }
  return Sent::kYes;
}

/// Of every class: what frees room for bulk does not wait behind bulk.
Sent Outbox::tell_freed(agent::Session& session, MailDesk& desk) {
  for (std::size_t i = 0; i < wire::kClasses; ++i) {
    ClassDesk& its = desk.classes[i];
    if (!its.owes_freed()) continue;
    const Sent sent = say(session, Priority::kRealtime,
                          {.kind = wire::RuntimeKind::kFreed,
                           .bytes = its.freed_bytes,
                           .messages = its.freed_messages,
                           .priority = static_cast<Priority>(i)});
    if (sent != Sent::kYes) return sent;
    its.freed_bytes = its.freed_messages = 0;
  }
  return Sent::kYes;
}

/// The first of these classes that has streams comes first.
Sent Outbox::send_parts(agent::Session& session, MailDesk& desk, std::span<ClassDesk> classes, std::size_t* work) {
  const auto next = [&] {
    return std::ranges::find_if(classes, [](ClassDesk& each) { return !each.streams.empty(); });
  };
  for (int part = 0; part < kPartsAtOnce && next() != classes.end(); ++part) {
    const Sent sent = send_part(session, desk, *next()->streams.front());
    if (sent != Sent::kYes) return sent;
    ++*work;
  }
  if (next() != classes.end()) carrier_.serve(session, carrier_.now());  // The next ones next turn.
  return Sent::kYes;
}

Sent Outbox::pump_urgent(agent::Session& session, MailDesk& desk, Priority priority, std::size_t* work) {
  ClassDesk& its = desk.of(priority);
  Sent sent = say_all(session, its.words, priority, work);
  if (sent == Sent::kYes && priority == Priority::kRealtime) sent = tell_freed(session, desk);
  if (sent == Sent::kYes) sent = announce_all(session, desk, priority, work);
  if (sent == Sent::kYes) sent = say_all(session, its.last_words, priority, work);
  if (sent == Sent::kYes && priority == Priority::kCritical) {
    sent = send_parts(session, desk, std::span(&its, 1), work);
  }
  return sent;
}

/// Parts come last.
Sent Outbox::pump_bulk(agent::Session& session, MailDesk& desk, std::size_t* work) {
  ClassDesk& its = desk.of(Priority::kBulk);
  Sent sent = say_all(session, its.words, Priority::kBulk, work);
  if (sent == Sent::kYes) sent = announce_all(session, desk, Priority::kBulk, work);
  if (sent == Sent::kYes) sent = say_all(session, its.last_words, Priority::kBulk, work);
  if (landings_.fetch_next(session, desk)) ++*work;  // Whatever waits for credit: to read needs none.
  if (sent == Sent::kYes) sent = send_parts(session, desk, std::span(desk.classes).subspan(1), work);
  return sent;
}

bool Outbox::pump(agent::Session& session, MailDesk& desk, std::size_t* work) {
  bool has_room = true;
  for (const Priority priority : {Priority::kCritical, Priority::kRealtime}) {
    has_room = pump_urgent(session, desk, priority, work) != Sent::kNoRoom && has_room;
  }
  return pump_bulk(session, desk, work) != Sent::kNoRoom && has_room;
}

// ---- What the receiver says, and the end.

Status Outbox::on_grant(agent::Session& session, MailDesk& desk, const wire::RuntimeMessage& message, Instant now) {
  const auto found = desk.asked.find(message.id);
  if (found == desk.asked.end()) return {};  // It was stopped meanwhile, and the peer hears of that.
  Send& send = *found->second;
  if (message.landing == 0) return Status(Code::kCorrupt, "a peer grants a message without a number for its parts");
  if (send.landing != 0) return Status(Code::kCorrupt, "a peer grants a message twice");
  send.landing = message.landing;
  if (send.envelope.bytes == 0) {
    desk.asked.erase(found);
    end_(send, {});
    return {};
  }
  desk.of(stream_class_of(send)).streams.push_back(send);
  carrier_.serve(session, now);
  return {};
}

Status Outbox::on_fetched(agent::Session& session, MailDesk& desk, const wire::RuntimeMessage& message, Instant now) {
  const auto found = desk.asked.find(message.id);
  if (found == desk.asked.end()) return {};  // It was stopped meanwhile, and the peer hears of that.
  Send& send = *found->second;
  if (send.landing != 0 || !(send.is_readable || send.is_unwritten)) {
    return Status(Code::kCorrupt, "a peer has read a message that it was granted, or was not told where");
  }
  desk.asked.erase(found);
  desk.say({.kind = wire::RuntimeKind::kTaken, .landing = message.landing});
  carrier_.serve(session, now);
  end_(send, {});
  return {};
}

Status Outbox::on_lend(agent::Service& service, agent::Session& session, MailDesk& desk,
                       const wire::RuntimeMessage& message, Instant now) {
  const auto found = desk.asked.find(message.id);
  if (found == desk.asked.end()) return {};  // It was stopped meanwhile, and the peer hears of that.
  Send& send = *found->second;
  if (message.landing == 0 || send.landing != 0 || send.is_unwritten) {
    return Status(Code::kCorrupt, "a peer lends memory for a message that it was granted");
  }
  send.landing = message.landing;
  if (send.pieces == nullptr && send.envelope.bytes != 0) {
    send.write =
        carrier_.begin_write(service, session, message.lent, send.envelope.bytes, part_class_of(send), send.id);
  }
  if (send.write == 0) {
    give_up_write(session, desk, send, now);
  } else {
    desk.of(stream_class_of(send)).streams.push_back(send);
  }
  carrier_.serve(session, now);
  return {};
}

/// The receiver takes its memory back and grants the message anew.
void Outbox::give_up_write(agent::Session& session, MailDesk& desk, Send& send, Instant now) {
  end_write(desk, send);
  send.hook.unlink();
  desk.say({.kind = wire::RuntimeKind::kUnwritten, .id = send.id, .landing = send.landing});
  send.landing = 0;
  send.is_unwritten = true;
  carrier_.serve(session, now);
}

void Outbox::end_write(MailDesk& desk, Send& send) {
  if (send.write == 0) return;
  carrier_.end_write(std::exchange(send.write, 0));
  desk.writing -= send.sent - send.written;
  send.sent = send.written = 0;
}

void Outbox::on_written(agent::Session& session, MailDesk& desk, std::uint64_t id, std::uint64_t bytes,
                        const Status& status, Instant now) {
  const auto found = desk.asked.find(id);
  if (found == desk.asked.end()) return;
  Send& send = *found->second;
  if (!status.ok()) return give_up_write(session, desk, send, now);
  send.written += bytes;
  desk.writing -= bytes;
  carrier_.serve(session, now);
  if (send.written < send.envelope.bytes) return;
  desk.asked.erase(found);
  desk.say({.kind = wire::RuntimeKind::kWritten, .landing = send.landing});
  end_write(desk, send);
  end_(send, {});
}

void Outbox::forget(agent::Session& session, MailDesk& desk, Send& send, Instant now) {
  desk.asked.erase(send.id);
  end_write(desk, send);
  if (!planted(Planted::kGoneUntold)) {  // It does not overtake what it speaks of.
    desk.of(send.priority).words.push_back({{.kind = wire::RuntimeKind::kGone, .id = send.id}, {}});
  }
  carrier_.serve(session, now);
}

std::vector<Send*> Outbox::of_world(MailDesk& desk, std::uint64_t world) {
  std::vector<Send*> all;
  const auto add = [&](Send& send) {
    if (send.envelope.world == world && send.envelope.use == wire::MessageUse::kUser) all.push_back(&send);
  };
  for (const auto& [id, send] : desk.asked) add(*send);
  std::ranges::sort(all, {}, &Send::id);
  for (ClassDesk& its : desk.classes) {
    for (Send& send : its.line) add(send);
  }
  return all;
}

}  // namespace hawser::runtime
