#include "compat/parts.h"

#include "base/bytes.h"
#include "base/format.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

Status corrupt_part(std::string_view why) {
  return Status(Code::kCorrupt, std::string("a part of a long notification: ").append(why));
}

bool is_total(std::uint32_t total) { return total > kPlainMax && total <= kNotificationMax; }

}  // namespace

std::string encode_part(const NotificationPart& part) {
  using Kind = NotificationPart::Kind;
  std::string out;
  out.reserve(kPartHead + part.bytes.size());
  base::ByteWriter writer(&out);
  writer.bytes(base::as_bytes(kPartMagic));
  writer.u8(static_cast<std::uint8_t>(part.kind));
  if (part.kind != Kind::kPlain) writer.u64(part.id);
  if (part.kind == Kind::kPart || part.kind == Kind::kWhole) writer.u32(part.total);
  if (part.kind == Kind::kPart) writer.u32(part.offset);
  if (part.kind == Kind::kPart || part.kind == Kind::kPlain) writer.bytes(base::as_bytes(part.bytes));
  return out;
}

Result<NotificationPart> decode_part(std::string_view text) {
  using Kind = NotificationPart::Kind;
  if (!is_marked(text)) return corrupt_part("it is not marked as one");
  base::ByteReader reader(text.substr(kPartMagic.size()));
  const std::uint8_t kind = reader.u8();
  if (!reader.ok() || kind > static_cast<std::uint8_t>(Kind::kDrop)) return corrupt_part("its kind is unknown");
  NotificationPart part{.kind = static_cast<Kind>(kind)};
  if (part.kind == Kind::kPlain) {
    part.bytes = base::as_text(reader.rest());
    // What needs no escape has none, so that one text has one form.
    if (!is_marked(part.bytes)) return corrupt_part("what it escapes is not marked");
    return part;
  }
  part.id = reader.u64();
  if (part.kind != Kind::kDrop) part.total = reader.u32();
  if (part.kind == Kind::kPart) {
    part.offset = reader.u32();
    part.bytes = base::as_text(reader.rest());
    reader.skip(reader.remaining());
  }
  if (!reader.finished()) return corrupt_part("it is cut off, or goes on after its end");
  if (part.id == 0) return corrupt_part("it has no number");
  if (part.kind != Kind::kDrop && !is_total(part.total)) {
    return corrupt_part(
        base::format("its body of {} bytes is not from {} to {}", part.total, kPlainMax + 1, kNotificationMax));
  }
  if (part.kind != Kind::kPart) return part;
  if (part.bytes.empty()) return corrupt_part("it is empty");
  if (part.offset > part.total || part.bytes.size() > part.total - part.offset) {
    return corrupt_part("it reaches beyond its body");
  }
  return part;
}

Assembler::~Assembler() { budget_->used -= bytes_; }

void Assembler::give_back(Body& body) {
  if (body.is_lost) return;
  bytes_ -= body.total;
  budget_->used -= body.total;
  body.bytes = std::string();
}

void Assembler::forget(Bodies::iterator body) {
  give_back(body->second);
  bodies_.erase(body);
}

/// Drops a body, whether it was known or not, and remembers to ignore the rest of it.
Assembler::Taken Assembler::lose(std::uint64_t id, std::string_view why) {
  if (bodies_.size() >= kBodiesMax && !bodies_.contains(id)) forget(bodies_.begin());
  Body& body = bodies_.try_emplace(id, Body{.is_lost = true}).first->second;
  give_back(body);
  body.is_lost = true;
  return {.text = {}, .lost = corrupt_part(base::format("number {}: {}; the notification is lost", id, why))};
}

Status Assembler::begin(const NotificationPart& part) {
  if (bodies_.size() >= kBodiesMax) return corrupt_part("too many are not delivered yet");
  if (part.total > kBytesMax - bytes_) {
    return corrupt_part(base::format("{} bytes of this peer wait for their end, of {}", bytes_, kBytesMax));
  }
  if (part.total > budget_->max - budget_->used) {
    return corrupt_part(base::format("{} bytes of all peers wait for their end, of {}", budget_->used, budget_->max));
  }
  Body& body = bodies_[part.id];
  body.total = part.total;
  body.bytes.reserve(part.total);
  bytes_ += part.total;
  budget_->used += part.total;
  return {};
}

Assembler::Taken Assembler::take_part(const NotificationPart& part) {
  auto found = bodies_.find(part.id);
  if (found == bodies_.end()) {
    if (part.offset != 0) return lose(part.id, "its beginning is missing");
    if (const Status status = begin(part); !status.ok()) return lose(part.id, status.message());
    found = bodies_.find(part.id);
  }
  Body& body = found->second;
  if (body.is_lost) return {};
  if (part.total != body.total) return lose(part.id, "its parts tell of different lengths");
  if (part.offset < body.bytes.size()) return lose(part.id, "a part came twice");
  if (part.offset > body.bytes.size()) return lose(part.id, "a part is missing");
  body.bytes.append(part.bytes);
  return {};
}

Assembler::Taken Assembler::take_whole(const NotificationPart& whole) {
  const auto found = bodies_.find(whole.id);
  std::string_view why;
  if (found == bodies_.end()) {
    why = "none of it came";
  } else if (found->second.is_lost) {
    why = "it was dropped before";
  } else if (found->second.total != whole.total || found->second.bytes.size() != whole.total) {
    why = "its end is missing";
  }
  if (!why.empty()) {
    const Status lost = corrupt_part(base::format("number {}: {}; the notification is lost", whole.id, why));
    if (found != bodies_.end()) forget(found);
    return {.text = {}, .lost = lost};
  }
  std::string text = std::move(found->second.bytes);
  forget(found);
  return {.text = std::move(text), .lost = {}};
}

Assembler::Taken Assembler::take(std::string_view text) {
  const Result<NotificationPart> part = decode_part(text);
  if (!part) return {.text = {}, .lost = part.error()};
  switch (part->kind) {
    case NotificationPart::Kind::kPlain:
      return {.text = std::string(part->bytes), .lost = {}};
    case NotificationPart::Kind::kPart:
      return take_part(*part);
    case NotificationPart::Kind::kWhole:
      return take_whole(*part);
    case NotificationPart::Kind::kDrop:
      break;
  }
  if (const auto found = bodies_.find(part->id); found != bodies_.end()) forget(found);
  return {};
}

}  // namespace compat
HAWSER_NAMESPACE_END
