// Any bytes give frames within their bounds, and what decodes encodes to the same bytes.

#include <algorithm>
#include <array>
#include <cstdlib>

#include "wire/stream_frames.h"

using namespace hawser;  // NOLINT: one file, one function

namespace {

void check(bool good) {
  if (!good) abort();
}

void round_trip_pieces(std::span<const std::byte> bytes, std::uint64_t total) {
  std::array<wire::RemotePiece, wire::kPiecesMax> pieces;
  base::ByteReader in(bytes);
  const std::size_t count = wire::decode_pieces(in, total, pieces);
  if (count == 0) return;
  check(count <= wire::kPiecesMax && in.finished());
  std::uint64_t sum = 0;
  for (const wire::RemotePiece& piece : std::span(pieces).first(count)) sum += piece.size;
  check(sum == total);
  std::string again;
  base::ByteWriter out(&again);
  wire::encode_pieces(out, std::span<const wire::RemotePiece>(pieces).first(count), bytes[0] == std::byte{0});
  check(again == base::as_text(bytes));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  if (size < wire::kFrameHeadSize) return 0;
  wire::FrameHead head;
  if (!wire::decode_head(bytes.first<wire::kFrameHeadSize>(), &head)) return 0;
  check(head.meta_size <= wire::kMetaMax && head.payload_size <= wire::kPayloadMax);
  const auto rest = bytes.subspan(wire::kFrameHeadSize);
  wire::ChunkHead chunk;
  base::ByteReader chunk_in(rest);
  if (wire::decode_chunk(chunk_in, &chunk)) round_trip_pieces(chunk_in.rest(), head.payload_size);
  wire::VoidWrite given_up;
  base::ByteReader void_in(rest.first(std::min(rest.size(), wire::kVoidSize)));
  if (wire::decode_void(void_in, &given_up)) check(given_up.tag <= wire::kTagMax);
  wire::Quotas quotas;
  base::ByteReader quotas_in(rest.first(std::min(rest.size(), wire::kQuotasSize)));
  check(wire::decode_quotas(quotas_in, &quotas) == (rest.size() >= wire::kQuotasSize));
  wire::Bind bind;
  base::ByteReader bind_in(rest);
  static_cast<void>(wire::decode_bind(bind_in, &bind));
  wire::PathBye bye;
  base::ByteReader bye_in(rest);
  if (wire::decode_bye(bye_in, &bye)) {
    check(bye.reason.size() <= wire::kByeReasonMax);
    std::string again;
    base::ByteWriter out(&again);
    wire::encode_bye(out, bye);
    wire::PathBye twice;
    base::ByteReader again_in(again);
    check(wire::decode_bye(again_in, &twice) && twice.reason == bye.reason && twice.messages == bye.messages);
  }
  for (base::ByteReader acks(rest); acks.remaining() >= 4;) {
    std::uint32_t tag = 0;
    wire::Outcome outcome = wire::Outcome::kOk;
    if (wire::decode_ack(acks.u32(), &tag, &outcome)) check(tag <= wire::kTagMax);
  }
  return 0;
}
