#include "base/own_folder.h"

#include <unistd.h>

#include <array>
#include <string>

#include <gtest/gtest.h>

namespace hawser::base {
namespace {

TEST(OwnFolder, IsThatOfTheProgramWhichHoldsTheCode) {
  std::array<char, 4096> name = {};
  const ssize_t length = ::readlink("/proc/self/exe", name.data(), name.size());
  ASSERT_GT(length, 0);
  const std::string program(name.data(), static_cast<std::size_t>(length));
  EXPECT_EQ(own_folder(), program.substr(0, program.rfind('/')));
}

}  // namespace
}  // namespace hawser::base
