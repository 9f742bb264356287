#pragma once

// Preface: 64 bytes that an opener sends before its TLS, by which it shows that it was given the acceptor's card. So a
// stranger cannot make the acceptor compute a handshake, nor hold memory for one, nor learn that there is TLS at all.
//
// It proves nothing for good: whoever copies one from the network can send it again. The proof inside of TLS counts.
//
// Grammar: "TLSH", 1:u8, zeros:3, nonce:16, mac:32, zeros:8. The MAC is BLAKE2b with the secret as its key, the lowest
// byte first, over the first 24 bytes and the acceptor's public key.
//
// Thread rule: pure functions, but for the random nonce.

#include <array>
#include <cstddef>
#include <span>

#include "base/id128.h"
#include "tls/key_pair.h"

namespace hawser::tls {

inline constexpr std::size_t kPrefaceBytes = 64;
/// What a preface begins with. TLS begins with 0x16, a hello in clear with an H.
inline constexpr std::byte kPrefaceFirst{'T'};

using Preface = std::array<std::byte, kPrefaceBytes>;

Preface make_preface(const base::Id128& secret, const PublicKey& acceptor);
/// Takes the same time wherever it differs.
bool is_preface(std::span<const std::byte, kPrefaceBytes> bytes, const base::Id128& secret, const PublicKey& acceptor);

}  // namespace hawser::tls
