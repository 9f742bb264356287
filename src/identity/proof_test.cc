#include "identity/proof.h"

#include <gtest/gtest.h>

#include <string>

#include "base/bytes.h"

namespace hawser::identity {
namespace {

IdentityProof some() {
  return {.signature = {.scheme = 0x0807, .bytes = std::string(64, 's')}, .chain = {"first", std::string(900, 'c')}};
}

Result<IdentityProof> decoded(const std::string& bytes) { return decode_proof(base::as_bytes(bytes)); }

TEST(IdentityProof, GoesThereAndBack) {
  const std::string bytes = encode(some());
  EXPECT_EQ(bytes.size() % 16, 0u);
  const auto size = proof_size(base::as_bytes(bytes).first<kProofHead>());
  ASSERT_TRUE(size.has_value()) << size.error().to_string();
  EXPECT_EQ(*size, bytes.size());
  const auto proof = decoded(bytes);
  ASSERT_TRUE(proof.has_value()) << proof.error().to_string();
  EXPECT_EQ(proof->signature.scheme, 0x0807);
  EXPECT_EQ(proof->signature.bytes, some().signature.bytes);
  EXPECT_EQ(proof->chain, some().chain);
}

TEST(IdentityProof, WhatIsCutOffIsCorrupt) {
  const std::string bytes = encode(some());
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_EQ(decoded(bytes.substr(0, size)).error().code(), Code::kCorrupt) << size;
  }
  EXPECT_EQ(decoded(bytes + std::string(16, '\0')).error().code(), Code::kCorrupt);
}

TEST(IdentityProof, SizesHaveBounds) {
  std::string head(kProofHead, '\0');
  head[4] = 1;
  for (const auto& [size, is_good] : {std::pair(kProofHead + 16, true),
                                      {kProofHead, false},
                                      {kProofMax, true},
                                      {kProofMax + 16, false},
                                      {std::size_t{0}, false},
                                      {std::size_t{40}, false},
                                      {std::size_t{0xfffffff0}, false}}) {
    base::store_little_endian(head.data(), static_cast<std::uint32_t>(size));
    EXPECT_EQ(proof_size(base::as_bytes(head).first<kProofHead>()).has_value(), is_good) << size;
  }
  head[4] = 2;
  base::store_little_endian(head.data(), std::uint32_t{64});
  EXPECT_FALSE(proof_size(base::as_bytes(head).first<kProofHead>()).has_value());
}

TEST(IdentityProof, CountsHaveBounds) {
  IdentityProof proof = some();
  proof.chain.assign(kChainMax, "x");
  proof.signature.bytes.assign(kSignatureMax, 's');
  EXPECT_TRUE(decoded(encode(proof)).has_value());
  proof.signature.bytes.assign(kSignatureMax + 1, 's');
  EXPECT_FALSE(decoded(encode(proof)).has_value());
  std::string bytes = encode(some());
  for (const char count : {char{0}, static_cast<char>(kChainMax + 1), '\xff'}) {
    bytes[5] = count;
    EXPECT_FALSE(decoded(bytes).has_value());
  }
}

TEST(IdentityProof, WhoSaysItAndWhenIsSigned) {
  Transcript one{}, other{};
  other[31] = std::byte{1};
  const std::string content = proof_content(Speaker::kOpener, Occasion::kOpening, one);
  EXPECT_NE(content, proof_content(Speaker::kAcceptor, Occasion::kOpening, one));
  EXPECT_NE(content, proof_content(Speaker::kOpener, Occasion::kRenewal, one));
  EXPECT_NE(content, proof_content(Speaker::kOpener, Occasion::kOpening, other));
}

}  // namespace
}  // namespace hawser::identity
