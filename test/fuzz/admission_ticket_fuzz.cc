// What people type behind the '#' of an address: parsing answers, and what it accepts is written the same again.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "agent/admission_ticket.h"
#include "base/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hawser::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto split = split_ticket(text);
  const std::size_t mark = text.rfind('#');
  if (!split) {
    HAWSER_ASSERT(mark != std::string_view::npos, "an address without a ticket is none of its business");
    return 0;
  }
  HAWSER_ASSERT(split->address == text.substr(0, mark), "the address changed");
  if (mark == std::string_view::npos) return 0;
  HAWSER_ASSERT(to_string(split->ticket) == text.substr(mark + 1), "a ticket has one form");
  return 0;
}
