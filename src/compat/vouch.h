#pragma once

// Vouch: one end's proof, on one connection, that it can read the user's cookie (base/user_cookie.h).
//
//   proof = BLAKE2b-256, keyed with the cookie, over role:u8 (1 the asker, 2 the listener), the listener's nonce:16,
//           the asker's nonce:16, the asker's address and, behind a zero byte, the listener's, as text.
//
// The nonces are of this connection alone, so no proof can be used twice. The addresses are what each end's kernel says
// of it, so who takes a connection and passes on what comes to the other end has a proof that fits neither: on loopback
// nothing translates addresses.
//
// Thread rule: values and pure functions; `ends_of` asks the kernel about a socket.

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/id128.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

inline constexpr std::size_t kNonceBytes = 16;
inline constexpr std::size_t kVouchBytes = 32;

enum class Role : std::uint8_t { kAsker = 1, kListener = 2 };

/// The two ends of a connection, as text.
struct Ends {
  std::string asker, listener;
};
/// Of the connected socket `fd`, whose owner is `mine`. An IPv4 address in the form of IPv6 is told as IPv4.
Result<Ends> ends_of(int fd, Role mine);

struct Nonces {
  std::string listener, asker;  ///< kNonceBytes each.
};
std::string fresh_nonce();

/// The proof of the one whose role is `who`.
std::string vouch(const base::Id128& cookie, Role who, const Nonces& nonces, const Ends& ends);
/// In constant time.
bool is_vouch(std::string_view said, const base::Id128& cookie, Role who, const Nonces& nonces, const Ends& ends);

}  // namespace compat
HAWSER_NAMESPACE_END
