#pragma once

// HAWSER_ASSERT: the check that stays on in release. It is for our own mistakes only: what comes from a peer, a file or
// a user is answered with a Status and never reaches an assertion.
//
// Thread rule: usable anywhere, including before main and in destructors.

namespace hawser::base {

/// Prints "file:line: text (condition)" to stderr and aborts.
[[noreturn, gnu::cold, gnu::noinline]] void assertion_failed(const char* condition, const char* text, const char* file,
                                                             int line) noexcept;

}  // namespace hawser::base

#define HAWSER_ASSERT(condition, text)               \
  (__builtin_expect(static_cast<bool>(condition), 1) \
       ? static_cast<void>(0)                        \
       : ::hawser::base::assertion_failed(#condition, text, __FILE__, __LINE__))
