#include "base/secret_text.h"

#include <gtest/gtest.h>

#include <hawser/status.h>

namespace hawser::base {
namespace {

const std::string kTicket = "Rz877RLAUmUaKQAXdaSp_iPkRwM-QTOP99ateBS1oUmW0jumUksWTOTY6bQaMprG";

TEST(SecretText, TicketsAndMostOfThemAreTakenOut) {
  EXPECT_EQ(without_tickets("'h:1#" + kTicket + ":f' and 'h:2#" + kTicket + "#" + kTicket + "'"),
            "'h:1#...:f' and 'h:2#...#...'");
  EXPECT_EQ(without_tickets("h#" + kTicket.substr(0, 43)), "h#...");
  EXPECT_EQ(without_tickets("h#" + kTicket + "more"), "h#...");
}

TEST(SecretText, OtherTextsStay) {
  for (const std::string& text :
       {std::string(), std::string("#"), std::string("a#b#c"), std::string("kv#12"), kTicket,
        "h#" + kTicket.substr(0, 42), "h#" + kTicket.substr(0, 20) + "." + kTicket.substr(0, 30)}) {
    EXPECT_EQ(without_tickets(text), text);
  }
}

TEST(SecretText, ArgumentsAreOverwrittenInPlace) {
  std::string text = "store@h:7#" + kTicket + ":path#1";
  overwrite_tickets(text.data());
  EXPECT_EQ(text, "store@h:7#" + std::string(kTicket.size(), 'x') + ":path#1");
}

TEST(SecretText, ErrorsHoldNone) {
  const Status status = Status(Code::kInvalid, "'h#" + kTicket + "' is odd").with_advice("h:1#" + kTicket);
  EXPECT_EQ(status.to_string().find(kTicket), std::string::npos) << status.to_string();
  EXPECT_EQ(status.message(), "'h#...' is odd");
}

}  // namespace
}  // namespace hawser::base
