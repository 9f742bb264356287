#include "wire/hello.h"

#include <algorithm>

#include "base/bytes.h"
#include "base/check.h"
#include "base/format.h"
#include "wire/limits.h"

namespace hawser::wire {
namespace {

using base::ByteReader;
using base::ByteWriter;
using Bytes = std::span<const std::byte>;

constexpr std::uint8_t kDriven = 1;
constexpr std::uint8_t kSecurityMax = 2;
// The versions stand at a fixed place for ever; so a hello of any version can be answered.
constexpr std::size_t kSizeMin = 4;

// With the zeros that make a hello a multiple of 16 bytes long.
static_assert(kHelloProofAt + 32 + 32 + (2 + kNameMax) + 1 + (2 + kHelloReasonMax) + (2 + kHelloListenMax) + 15 <=
              kHelloSizeMax);

[[gnu::cold, gnu::noinline]] Status corrupt(std::string_view what) {
  return Status(Code::kCorrupt, base::format("hello: {}", what));
}

void put_body(const Hello& hello, ByteWriter& out) {
  out.u8(hello.security);
  out.u8(hello.driven ? kDriven : 0);
  out.u8(hello.stream);
  out.u8(hello.streams);
  for (const base::Id128& id :
       {hello.incarnation, hello.session, hello.token, hello.supersedes, hello.expects, hello.nonce})
    out.id(id);
  out.u64(hello.born);
  out.u8(static_cast<std::uint8_t>(hello.admission));
  out.bytes(hello.proof);
  out.bytes(hello.public_key);
  out.string(hello.name);
  out.u8(static_cast<std::uint8_t>(hello.status));
  out.string(std::string_view(hello.reason).substr(0, kHelloReasonMax));
  out.string(hello.listen.size() <= kHelloListenMax ? std::string_view(hello.listen) : std::string_view());
}

// Checks that the grammar does not make. The tail of a newer form is left unread.
Status check(const Hello& hello, std::uint8_t status, std::uint8_t admission) {
  if (hello.security > kSecurityMax) return corrupt(base::format("unknown security level {}", hello.security));
  const bool is_of_link =
      hello.stream >= kLinkStreamFirst && hello.stream < kLinkStreamFirst + kLinks && hello.streams > 1;
  if (hello.streams == 0 || (hello.stream >= hello.streams && !is_of_link)) {
    return corrupt(base::format("stream {} of {}", hello.stream, hello.streams));
  }
  if (!is_agent_name(hello.name)) return corrupt("the agent's name is empty or holds control characters");
  if (status > static_cast<std::uint8_t>(Code::kFailed)) return corrupt(base::format("unknown status {}", status));
  if (admission > static_cast<std::uint8_t>(Admission::kIdentity))
    return corrupt(base::format("unknown admission {}", admission));
  return {};
}

}  // namespace

std::string encode(const Hello& hello) {
  HAWSER_ASSERT(is_agent_name(hello.name), "agents are opened with valid names only");
  std::string text;
  ByteWriter out(&text);
  out.u32(kHelloMagic);
  out.u16(0);
  out.u16(hello.version_min);
  out.u16(hello.version_max);
  put_body(hello, out);
  base::store_little_endian(text.data() + sizeof(kHelloMagic), static_cast<std::uint16_t>(text.size() - kHelloPrefix));
  return text;
}

Result<std::size_t> hello_size(Bytes prefix) {
  ByteReader in(prefix);
  const std::uint32_t magic = in.u32();
  const std::size_t size = in.u16();
  if (!in.ok()) return corrupt("the prefix is cut off");
  if (magic != kHelloMagic)
    return corrupt(base::format("wrong magic {:#010x}: the other side is no Hawser agent", magic));
  if (size < kSizeMin || size > kHelloSizeMax - kHelloPrefix)
    return corrupt(base::format("a senseless size of {} bytes", size));
  return kHelloPrefix + size;
}

Result<Hello> decode_hello(Bytes bytes, const Versions& ours) {
  const Result<std::size_t> size = hello_size(bytes);
  if (!size) return size.error();
  if (*size != bytes.size()) return corrupt(base::format("{} bytes instead of {}", bytes.size(), *size));
  ByteReader in(bytes.subspan(kHelloPrefix));
  Hello hello;
  hello.version_min = in.u16();
  hello.version_max = in.u16();
  if (hello.version_min == 0 || hello.version_min > hello.version_max) return corrupt("a senseless range of versions");
  // The rest of a hello from another age may have another form.
  const Versions theirs = {hello.version_min, hello.version_max};
  if (auto version = agree_version(ours, theirs); !version) return version.error();
  hello.security = in.u8();
  hello.driven = (in.u8() & kDriven) != 0;  // other flags are for later versions and may be passed over
  hello.stream = in.u8();
  hello.streams = in.u8();
  for (base::Id128* id :
       {&hello.incarnation, &hello.session, &hello.token, &hello.supersedes, &hello.expects, &hello.nonce})
    *id = in.id();
  hello.born = in.u64();
  const std::uint8_t admission = in.u8();
  const Bytes proof = in.bytes(hello.proof.size());
  const Bytes key = in.bytes(hello.public_key.size());
  hello.name = in.string(kNameMax);
  const std::uint8_t status = in.u8();
  hello.reason = in.string(kHelloReasonMax);
  hello.listen = in.string(kHelloListenMax);
  if (!in.ok()) return corrupt("a field is malformed or cut off");
  std::copy(key.begin(), key.end(), hello.public_key.begin());
  std::copy(proof.begin(), proof.end(), hello.proof.begin());
  if (Status fault = check(hello, status, admission); !fault.ok()) return fault;
  hello.status = static_cast<Code>(status);
  hello.admission = static_cast<Admission>(admission);
  return hello;
}

Result<std::uint16_t> agree_version(const Versions& ours, const Versions& theirs) {
  const std::uint16_t highest = std::min(ours.max, theirs.max);
  if (highest >= std::max(ours.min, theirs.min)) return highest;
  const bool is_older = theirs.max < ours.min;
  return Status(Code::kUnsupported, base::format("the peer speaks wire versions {} to {}, this agent {} to {}",
                                                 theirs.min, theirs.max, ours.min, ours.max))
      .with_advice(base::format("upgrade {} to a release that speaks wire version {}",
                                is_older ? "the peer" : "this agent", is_older ? ours.min : theirs.min));
}

}  // namespace hawser::wire
