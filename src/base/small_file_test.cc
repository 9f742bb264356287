#include "base/small_file.h"

#include <gtest/gtest.h>

#include <array>
#include <fstream>
#include <string>

#include "base/test_folder.h"

namespace hawser::base {
namespace {

TEST(SmallFile, IsReadWithoutBlanksAtItsEnd) {
  const TestFolder folder;
  std::array<char, 16> room;
  const auto read = [&](const std::string& text) {
    std::ofstream(folder.path("file")) << text;
    return read_small_file(folder.path("file").c_str(), room);
  };
  EXPECT_EQ(read("0-1\n"), "0-1");
  EXPECT_EQ(read("  two words \t\n"), "  two words");
  EXPECT_EQ(read(" \n"), "");
  EXPECT_EQ(read(""), "");
  EXPECT_EQ(read("more than there is room for"), "more than there");
}

TEST(SmallFile, WhatCannotBeReadIsEmpty) {
  const TestFolder folder;
  std::array<char, 16> room;
  EXPECT_EQ(read_small_file(folder.path("missing").c_str(), room), "");
  EXPECT_EQ(read_small_file(folder.path().c_str(), room), "") << "a folder";
}

}  // namespace
}  // namespace hawser::base
