#pragma once

// AdmissionTicket: what lets somebody who typed an agent's address prove that they may come in, and know who answers
// there: the agent's public key and its admission secret, as in its card. "10.0.0.5:7000#TICKET". Its holder may
// connect.
//
// Grammar: 64 characters of base64url (RFC 4648, section 5) for key:32, secret:16. The secret's lower half comes first,
// each half with its lowest byte first.
//
// Thread rule: pure functions.

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include <hawser/status.h>

#include "base/id128.h"

namespace hawser::agent {

struct AdmissionTicket {
  std::array<std::byte, 32> public_key = {};  ///< Zero: it is not known.
  base::Id128 admission;                      ///< Zero: it is not known.
};

std::string to_string(const AdmissionTicket& ticket);
/// kInvalid: that is no ticket. The error does not repeat the text, for it may hold most of a secret.
Result<AdmissionTicket> parse_ticket(std::string_view text);

/// "10.0.0.5:7000#TICKET" taken apart; without a '#' the ticket is zeros.
struct TicketedAddress {
  std::string_view address;
  AdmissionTicket ticket;
};
Result<TicketedAddress> split_ticket(std::string_view typed);

}  // namespace hawser::agent
