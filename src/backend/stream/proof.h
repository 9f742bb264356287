#pragma once

// Proof: MACs over both hellos of a connection, by a secret that is never sent. BLAKE2b with the secret as its key.
//
// Thread rule: pure functions.

#include <span>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/id128.h"
#include "identity/proof.h"
#include "wire/hello.h"

namespace hawser::backend::stream {

/// The two hellos as they were sent, padding included, and the stream's binding (Stream::binding): over TLS a proof
/// holds for one stream only, so nobody between the two ends can pass it on.
struct Hellos {
  std::span<const std::byte> opener, acceptor, binding = {};
};

/// The acceptor's: its own field `proof` counts as zeros.
wire::Proof acceptor_proof(const base::Id128& secret, const Hellos& hellos);
wire::Proof opener_proof(const base::Id128& secret, const Hellos& hellos);
/// What both ends of the connection know, for proofs of identities.
identity::Transcript transcript_of(const Hellos& hellos);
/// Takes the same time wherever they differ.
bool is_same(const wire::Proof& proof, std::span<const std::byte> bytes);

// The acceptor's verdict on a proof: status:u8, size:u8, reason, zeros to a multiple of 16.
inline constexpr std::size_t kVerdictHead = 16;  ///< As much as there always is; it tells the size of all.
std::string encode_verdict(const Status& status);
std::size_t verdict_size(std::span<const std::byte, kVerdictHead> head);
/// kCorrupt: no verdict. Else what it says; good: the stream is open.
Status decode_verdict(std::span<const std::byte> bytes);

}  // namespace hawser::backend::stream
