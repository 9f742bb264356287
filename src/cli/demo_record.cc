#include "cli/demo_record.h"

#include "base/bytes.h"

// Grammar, little-endian:
//   record = "HWRQ" pass:u32 request:u32 count:varint block:u32... count:varint sum:u64...
//   ack    = "HWAK" pass:u32 request:u32

namespace hawser::cli {
namespace {

constexpr std::uint32_t kRecordMagic = 0x51525748;  // "HWRQ"
constexpr std::uint32_t kAckMagic = 0x4b415748;     // "HWAK"
constexpr std::size_t kCountMax = 1u << 16;         // more would not fit a notification

}  // namespace

std::string encode(const Record& record) {
  std::string bytes;
  base::ByteWriter writer(&bytes);
  writer.u32(kRecordMagic);
  writer.u32(record.pass);
  writer.u32(record.request);
  writer.varint(record.blocks.size());
  for (const std::uint32_t block : record.blocks) writer.u32(block);
  writer.varint(record.layer_sums.size());
  for (const std::uint64_t sum : record.layer_sums) writer.u64(sum);
  return bytes;
}

std::optional<Record> decode_record(std::string_view bytes) {
  base::ByteReader reader(bytes);
  if (reader.u32() != kRecordMagic) return std::nullopt;
  Record record;
  record.pass = reader.u32();
  record.request = reader.u32();
  record.blocks.resize(reader.count(kCountMax, sizeof(std::uint32_t)));
  for (std::uint32_t& block : record.blocks) block = reader.u32();
  record.layer_sums.resize(reader.count(kCountMax, sizeof(std::uint64_t)));
  for (std::uint64_t& sum : record.layer_sums) sum = reader.u64();
  if (!reader.finished()) return std::nullopt;
  return record;
}

std::string encode(const Ack& ack) {
  std::string bytes;
  base::ByteWriter writer(&bytes);
  writer.u32(kAckMagic);
  writer.u32(ack.pass);
  writer.u32(ack.request);
  return bytes;
}

std::optional<Ack> decode_ack(std::string_view bytes) {
  base::ByteReader reader(bytes);
  const bool magic = reader.u32() == kAckMagic;
  Ack ack;
  ack.pass = reader.u32();
  ack.request = reader.u32();
  if (!magic || !reader.finished()) return std::nullopt;
  return ack;
}

}  // namespace hawser::cli
