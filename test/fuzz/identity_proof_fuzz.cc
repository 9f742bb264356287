// What an unproven peer sends as the proof of its identity: decoding answers, what it accepts is written the same
// again, and no chain of certificates in it breaks the check.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "base/bytes.h"
#include "base/check.h"
#include "base/test_folder.h"
#include "identity/authority.h"
#include "identity/proof.h"
#include "identity/trust.h"

namespace {

/// Of an authority whose key nobody has: made once, for what is checked has to be refused.
const hawser::identity::Trust& some_trust() {
  static const std::shared_ptr<const hawser::identity::Trust> trust = [] {
    const hawser::base::TestFolder folder;
    auto authority = hawser::identity::Authority::init(folder.path("ca"), "example.org", 0, 4'000'000'000);
    HAWSER_ASSERT(authority.has_value(), "an authority");
    const auto issued = authority->issue({.name = "store", .dns = {}, .begins = 0, .ends = 4'000'000'000});
    HAWSER_ASSERT(issued.has_value(), "a certificate");
    return *hawser::identity::Trust::make(issued->authorities, issued->revoked, "example.org");
  }();
  return *trust;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser;
  const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto proof = identity::decode_proof(bytes);
  if (!proof) return 0;
  HAWSER_ASSERT(!proof->chain.empty() && proof->chain.size() <= identity::kChainMax, "a chain has a bound");
  HAWSER_ASSERT(identity::encode(*proof).size() == size, "a proof has one size");
  HAWSER_ASSERT(!some_trust().verify(proof->chain).has_value(), "nobody has the authority's key");
  static_cast<void>(some_trust().check(proof->chain.front(), proof->signature, "content"));
  return 0;
}
