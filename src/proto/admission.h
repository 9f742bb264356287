#pragma once

// Admission: how an opener proves that it may come in, and what the acceptor has to prove in return, as tables.
//
// Four things count: the card was given to the opener, both ends have identities by one authority, both are of one
// user, or both agents were opened with security `none`. docs/wire.md, "Proof", has what travels. This file decides;
// who moves the bytes is the stream's handshake.
//
// Thread rule: values and pure functions.

#include <cstdint>
#include <string>

#include "base/far_end.h"
#include "wire/hello.h"

namespace hawser::proto {

/// What one side knows of a connection.
struct AdmissionFacts {
  base::FarEnd far_end = base::FarEnd::kElsewhere;
  bool has_secret = false;  ///< Opener: the acceptor's card is known and has a secret. Acceptor: its own card has one.
  bool is_open = false;     ///< This agent was opened with security `none`.
  bool is_proven = false;   ///< Opener: the acceptor has the private key to the one in its card (TLS).
  /// This agent has an identity by an authority, and so wants one of all others that the kernel does not know as its
  /// own user.
  bool has_identity = false;
  bool is_covered = false;  ///< The connection is TLS; identities are shown on no other.
};

/// What the opener does about an acceptor's hello, or the acceptor about an opener's.
enum class AdmissionStep : std::uint8_t {
  kRefuse = 0,
  kGo = 1,     ///< The hello is the verdict.
  kProve = 2,  ///< The proof, then the verdict.
};

/// How the opener asks to be let in. Before it connects nothing is known of the far end but whether it is on loopback:
/// kElsewhere and kCannotAsk count, the others are alike. kNotSaid: there is no way in.
wire::Admission ask(const AdmissionFacts& opener);
/// How the acceptor lets in an opener that asked so; kNotSaid: it does not.
wire::Admission admit(wire::Admission asked, const AdmissionFacts& acceptor);
/// What the opener does when it asked so and was answered so.
AdmissionStep answered(wire::Admission asked, wire::Admission answer, const AdmissionFacts& opener);
/// What the acceptor does after it let somebody in so.
AdmissionStep admitted(wire::Admission answer);

/// For errors: why `admit` refused.
std::string why_not(wire::Admission asked, const AdmissionFacts& acceptor);

/// All answers of these functions, for people and for the golden test. First, by what a side knows: how it asks, and
/// how it answers those who ask by nothing, card, user, none, cookie, identity. Then, by how an opener asked and what
/// it knows: what it does about each of those answers.
std::string admission_table();

}  // namespace hawser::proto
