#pragma once

// FarEnd: which user owns the other end of a TCP connection within this network namespace, as the kernel's socket
// diagnosis (NETLINK_SOCK_DIAG) tells it. Loopback leads to every local user, so an address proves nothing.
//
// Thread rule: any thread. Blocks for kAskTime at most; the kernel answers within the call that asks (some 10 us).

#include <string>

#include <hawser/time.h>

namespace hawser::base {

enum class FarEnd : unsigned char {
  kElsewhere = 0,  ///< Not a loopback connection: this kernel does not own the other end.
  kSameUser = 1,   ///< A live socket of this process's effective user.
  kOtherUser = 2,  ///< A live socket of another user.
  kNobody = 3,     ///< No established socket that a process holds: not accepted yet, or closed already.
  kCannotAsk = 4,  ///< This kernel, container or filter of system calls does not answer such questions.
};

inline constexpr Duration kAskTime = std::chrono::milliseconds(20);

/// Asks of the connected TCP socket `fd`. `why` gets what is known beyond the answer, for people.
FarEnd far_end_of(int fd, std::string* why = nullptr);

}  // namespace hawser::base
