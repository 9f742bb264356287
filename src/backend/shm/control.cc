#include "backend/shm/control.h"

#include <algorithm>
#include <bit>

#include "base/bytes.h"

namespace hawser::backend::shm {
namespace {

using base::ByteReader;
using base::ByteWriter;

enum class Tag : std::uint8_t { kOpen = 1, kAccept = 2, kBind = 3, kBound = 4, kBye = 5 };
constexpr std::uint8_t kFlagMembarrier = 1;

void put_tag(ByteWriter& out, Tag tag) { out.u8(static_cast<std::uint8_t>(tag)); }
void put_probe(ByteWriter& out, const Probe& probe) {
  out.u64(probe.address);
  out.id(probe.value);
}
void put_hello(ByteWriter& out, const wire::Hello& hello) { out.bytes(base::as_bytes(wire::encode(hello))); }
void put_reason(ByteWriter& out, std::string_view reason) { out.string(reason.substr(0, kReasonMax)); }

Probe get_probe(ByteReader& in) {
  Probe probe;
  probe.address = in.u64();
  probe.value = in.id();
  return probe;
}

Code get_code(ByteReader& in) {
  const std::uint8_t code = in.u8();
  if (code > static_cast<std::uint8_t>(Code::kFailed)) in.fail();
  return static_cast<Code>(code);
}

Status corrupt(std::string_view what) {
  return Status(Code::kCorrupt, "a packet of the shm backend is no valid '" + std::string(what) + "'");
}

Result<wire::Hello> get_hello(ByteReader& in) {
  if (!in.ok()) return corrupt("hello");
  HAWSER_UNUSED_HELLO_SIZE
  return wire::decode_hello(in.rest());
}

}  // namespace
}  // namespace hawser::backend::shm
