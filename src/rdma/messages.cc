#include "rdma/messages.h"

#include "base/bytes.h"
#include "base/shown.h"
#include "rdma/handle.h"

HAWSER_NAMESPACE_BEGIN
namespace rdma {
namespace {

constexpr std::uint8_t kMessageVersion = 1;
constexpr std::size_t kTextMax = 4096;
constexpr auto kLastCode = static_cast<std::uint8_t>(Code::kFailed);

bool is_atomic(AskKind kind) { return kind == AskKind::kFetchAdd || kind == AskKind::kCompareSwap; }

std::optional<Ask> parse_ask(AskKind kind, std::uint64_t number, base::ByteReader in) {
  Ask ask{.kind = kind, .number = number, .token = in.id()};
  if (is_atomic(kind)) {
    ask.offset = in.u64();
    ask.value = in.u64();
    ask.expected = in.u64();
  }
  if (kind == AskKind::kHandle) ask.name = in.string(kBufferNameMax);
  return in.finished() ? std::optional(ask) : std::nullopt;
}

std::optional<Reply> parse_reply(std::uint64_t number, base::ByteReader in) {
  const std::uint8_t code = in.u8();
  Reply reply{.number = number, .status = {}, .value = in.u64()};
  const std::string text(in.string(kTextMax));
  const std::string advice(in.string(kTextMax));
  if (!in.finished() || code > kLastCode) return std::nullopt;
  if (code != 0)
    reply.status =
        Status(static_cast<Code>(code), base::shown(text, kTextMax)).with_advice(base::shown(advice, kTextMax));
  return reply;
}

std::optional<Reply> parse_handle(std::uint64_t number, base::ByteReader in) {
  Reply reply{.number = number, .status = {}, .value = 0, .handle = std::string(in.string(kHandleMax))};
  return in.finished() ? std::optional(std::move(reply)) : std::nullopt;
}

}  // namespace

std::string encode(const Ask& ask) {
  std::string bytes;
  base::ByteWriter out(&bytes);
  out.u8(kMessageVersion);
  out.u8(static_cast<std::uint8_t>(ask.kind));
  out.u64(ask.number);
  out.id(ask.token);
  if (is_atomic(ask.kind)) {
    out.u64(ask.offset);
    out.u64(ask.value);
    out.u64(ask.expected);
  }
  if (ask.kind == AskKind::kHandle) out.string(ask.name);
  return bytes;
}

std::string encode(const Reply& reply) {
  std::string bytes;
  base::ByteWriter out(&bytes);
  out.u8(kMessageVersion);
  const bool is_handle = reply.status.ok() && !reply.handle.empty();
  out.u8(static_cast<std::uint8_t>(is_handle ? AskKind::kHandleReply : AskKind::kReply));
  out.u64(reply.number);
  if (is_handle) {
    out.string(reply.handle);
    return bytes;
  }
  out.u8(static_cast<std::uint8_t>(reply.status.code()));
  out.u64(reply.value);
  out.string(reply.status.message().substr(0, kTextMax));
  out.string(reply.status.advice().substr(0, kTextMax));
  return bytes;
}

Parsed parse(std::string_view bytes) {
  base::ByteReader in(bytes);
  const std::uint8_t version = in.u8();
  const auto kind = static_cast<AskKind>(in.u8());
  const std::uint64_t number = in.u64();
  if (!in.ok() || version != kMessageVersion) return {};
  if (kind == AskKind::kReply) return {.ask = {}, .reply = parse_reply(number, in)};
  if (kind == AskKind::kHandleReply) return {.ask = {}, .reply = parse_handle(number, in)};
  if (kind != AskKind::kRelease && kind != AskKind::kHandle && !is_atomic(kind)) return {};
  return {.ask = parse_ask(kind, number, in), .reply = {}};
}

}  // namespace rdma
HAWSER_NAMESPACE_END
