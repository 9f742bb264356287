#include "identity/world_token.h"

#include <gtest/gtest.h>
#include <sodium.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "base/format.h"
#include "base/test_folder.h"

namespace hawser::identity {
namespace {

constexpr std::string_view kText = "mXb1qk3Zr0dN7yWcT5uLeA";  // 22 characters: just enough.

std::array<std::byte, 16> id(unsigned char fill) {
  std::array<std::byte, 16> bytes;
  bytes.fill(std::byte{fill});
  return bytes;
}

std::string write(const base::TestFolder& folder, std::string_view text, mode_t mode) {
  const std::string path = folder.path("token");
  std::ofstream(path) << text;
  EXPECT_EQ(::chmod(path.c_str(), mode), 0);
  return path;
}

class WorldTokenTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_GE(sodium_init(), 0); }
  const base::TestFolder folder_{"hawser-token"};
};

TEST_F(WorldTokenTest, EqualTextsGiveEqualSecretsAndOthersGiveOthers) {
  const WorldToken one = WorldToken::parse(kText).value(), same = WorldToken::parse(kText).value();
  std::string text(kText);
  text.back() = 'B';
  const WorldToken other = WorldToken::parse(text).value();
  EXPECT_EQ(one.admission(), same.admission());
  EXPECT_EQ(one.seed_public_key(), same.seed_public_key());
  EXPECT_NE(one.admission(), other.admission());
  EXPECT_NE(one.seed_public_key(), other.seed_public_key());
  EXPECT_FALSE(one.admission().is_zero());
}

// So that seeds and ranks of different versions understand each other. By Python's hashlib.blake2b: a digest of 32
// bytes of the text, keys of it with the number as salt and "hwsrtokn" as person.
TEST_F(WorldTokenTest, WhatIsDerivedStaysTheSame) {
  const WorldToken token = WorldToken::parse(kText).value();
  EXPECT_EQ(to_hex(token.admission()), "50b89ee356ba6b814da80b3c43183c4a");
  const auto proof = token.prove(WorldToken::Role::kRank, id(1), id(2));
  std::string hex;
  for (const std::byte each : proof) hex += base::format("{:02x}", static_cast<unsigned>(each));
  EXPECT_EQ(hex, "2c8571a02831bb58164835cad35c77074b7a67f56d5452f8d56e0e551030e4fc");
}

TEST_F(WorldTokenTest, AProofIsOfOneTokenOneRoleAndOneSession) {
  const WorldToken token = WorldToken::parse(kText).value();
  std::string text(kText);
  text.front() = 'q';
  const WorldToken other = WorldToken::parse(text).value();
  const auto proof = token.prove(WorldToken::Role::kRank, id(1), id(2));
  EXPECT_TRUE(token.is_proof(proof, WorldToken::Role::kRank, id(1), id(2)));
  EXPECT_FALSE(token.is_proof(proof, WorldToken::Role::kSeed, id(1), id(2))) << "sent back";
  EXPECT_FALSE(token.is_proof(proof, WorldToken::Role::kRank, id(3), id(2))) << "by another rank";
  EXPECT_FALSE(token.is_proof(proof, WorldToken::Role::kRank, id(1), id(3))) << "to another seed";
  EXPECT_FALSE(other.is_proof(proof, WorldToken::Role::kRank, id(1), id(2)));
  EXPECT_FALSE(token.is_proof(std::span(proof).first(31), WorldToken::Role::kRank, id(1), id(2)));
  EXPECT_FALSE(token.is_proof({}, WorldToken::Role::kRank, id(1), id(2)));
}

TEST_F(WorldTokenTest, LengthIsBounded) {
  EXPECT_TRUE(WorldToken::parse(kText));
  EXPECT_EQ(WorldToken::parse(kText.substr(1)).error().code(), Code::kInvalid);
  std::string largest;
  for (std::size_t i = 0; i < kTokenMax; ++i) largest += static_cast<char>('a' + i % 20);
  EXPECT_TRUE(WorldToken::parse(largest));
  EXPECT_FALSE(WorldToken::parse(largest + "a"));
}

// S1: a constant is no secret.
TEST_F(WorldTokenTest, WhatIsNotRandomIsRefused) {
  for (const std::string& text : {std::string(64, 'x'), std::string("0101010101010101010101010101")}) {
    const auto refused = WorldToken::parse(text);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().to_string().find(text), std::string::npos) << "no error holds the token";
  }
  EXPECT_FALSE(WorldToken::parse("abcdefgabcdefgabcdefgabc")) << "seven characters";
  EXPECT_TRUE(WorldToken::parse("abcdefghabcdefghabcdefgh")) << "eight";
}

TEST_F(WorldTokenTest, ComesFromAFileOfThisUserAlone) {
  const WorldToken right = WorldToken::parse(kText).value();
  const std::string path = write(folder_, std::string(kText) + "\n", 0600);
  EXPECT_EQ(WorldToken::read(path)->admission(), right.admission());
  EXPECT_TRUE(WorldToken::read(write(folder_, kText, 0400)));
  for (const mode_t mode : {0640, 0604, 0620, 0602, 0644}) {
    const auto refused = WorldToken::read(write(folder_, kText, mode));
    ASSERT_FALSE(refused) << mode;
    EXPECT_EQ(refused.error().code(), Code::kDenied);
    EXPECT_NE(refused.error().advice().find("chmod 600"), std::string_view::npos);
    EXPECT_EQ(refused.error().to_string().find(kText), std::string::npos);
  }
  EXPECT_EQ(WorldToken::read(folder_.path("missing")).error().code(), Code::kNotFound);
  EXPECT_EQ(WorldToken::read(folder_.path()).error().code(), Code::kInvalid) << "a folder";
}

TEST_F(WorldTokenTest, ComesFromADescriptor) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], kText.data(), kText.size()), static_cast<ssize_t>(kText.size()));
  ::close(ends[1]);
  EXPECT_EQ(WorldToken::read("fd:" + std::to_string(ends[0]))->admission(), WorldToken::parse(kText)->admission());
  ::close(ends[0]);
}

TEST_F(WorldTokenTest, ADescriptorThatStaysOpenIsNotWaitedForForEver) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ASSERT_EQ(::write(ends[1], kText.data(), kText.size()), static_cast<ssize_t>(kText.size()));
  const Instant before = Clock::steady().now();
  const auto never = WorldToken::read("fd:" + std::to_string(ends[0]));
  ASSERT_FALSE(never);
  EXPECT_EQ(never.error().code(), Code::kTimedOut);
  EXPECT_GE(Clock::steady().now() - before, kTokenReadTime);
  for (const int end : ends) ::close(end);
}

TEST_F(WorldTokenTest, AMadeOneIsGoodAndNoTwoAreAlike) {
  const TokenText one = TokenText::make(), other = TokenText::make();
  EXPECT_EQ(one.text().size(), 43u) << "256 bits in base64";
  EXPECT_NE(one.text(), other.text());
  EXPECT_EQ(one.text().find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"),
            std::string::npos);
  ASSERT_TRUE(WorldToken::parse(one.text()));
  const auto again = TokenText::read(write(folder_, " " + one.text() + "\n", 0600));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->text(), one.text());
  EXPECT_EQ(TokenText::parse(kText.substr(1)).error().code(), Code::kInvalid);
}

TEST_F(WorldTokenTest, ADescriptorHasANumber) {
  for (const char* const wrong : {"fd:", "fd:x", "fd:-1", "fd:3x"}) EXPECT_FALSE(WorldToken::read(wrong)) << wrong;
}

}  // namespace
}  // namespace hawser::identity
