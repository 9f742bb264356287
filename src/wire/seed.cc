#include "wire/seed.h"

#include "base/bytes.h"

namespace hawser::wire {
namespace {

Status corrupt(const char* what) { return Status(Code::kCorrupt, std::string("a seed's message: ") + what); }

}  // namespace

std::string encode(const SeedMessage& message) {
  std::string bytes;
  base::ByteWriter writer(&bytes);
  writer.u8(static_cast<std::uint8_t>(message.kind));
  writer.u64(message.id);
  if (message.kind == SeedKind::kAnswer) {
    writer.u8(static_cast<std::uint8_t>(message.code));
  } else {
    writer.string(message.key);
  }
  if (message.kind != SeedKind::kGet) writer.string(message.value);
  return bytes;
}

Result<SeedMessage> decode_seed(std::span<const std::byte> bytes) {
  base::ByteReader reader(bytes);
  SeedMessage message;
  const std::uint8_t kind = reader.u8();
  message.id = reader.u64();
  if (kind == static_cast<std::uint8_t>(SeedKind::kAnswer)) {
    const std::uint8_t code = reader.u8();
    if (code > static_cast<std::uint8_t>(Code::kFailed)) return corrupt("its code is none");
    message.code = static_cast<Code>(code);
  } else if (kind == static_cast<std::uint8_t>(SeedKind::kSet) || kind == static_cast<std::uint8_t>(SeedKind::kGet) ||
             kind == static_cast<std::uint8_t>(SeedKind::kProve)) {
    message.key = reader.string(kSeedKeyMax);
    if (reader.ok() && message.key.empty()) return corrupt("its key is empty");
  } else {
    return corrupt("its kind is none");
  }
  message.kind = static_cast<SeedKind>(kind);
  if (message.kind != SeedKind::kGet) message.value = reader.string(kSeedValueMax);
  if (!reader.finished()) return corrupt("it is cut short, too long, or has something behind it");
  return message;
}

}  // namespace hawser::wire
