#pragma once

// Tickets in texts. A ticket (agent/admission_ticket.h) is typed behind an address, "10.0.0.5:7000#TICKET", and lets
// its holder connect: it must stand in no error, log or list of processes.
//
// Thread rule: pure functions.

#include <string>
#include <string_view>

namespace hawser::base {

/// The text with "#..." where '#' and so much of a ticket stands that a part of its secret is in it.
std::string without_tickets(std::string text);
/// The same in place: each character of the ticket becomes 'x'.
void overwrite_tickets(char* text);

}  // namespace hawser::base
