#pragma once

// WorldToken: a secret that all ranks of a world and its seed were given by other means, such as a file that a job's
// start wrote on each host. It stands in for a ticket and is never sent.
//
// From the token come three things by a one-way function: the seed's key pair and its admission secret, so that ranks
// know whom to expect and prove over TLS that they have the token (a MAC over the connection's exporter, as with a
// ticket), and a key of its own by which seed and rank show each other inside of the session that they have the same
// token. The second proof counts where the first is not asked for: among processes of one user on one host.
//
// Thread rule: const after construction. The destructor wipes what is secret. Never log it.

#include <array>
#include <chrono>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/id128.h"
#include "tls/key_pair.h"

namespace hawser::identity {

/// Characters of a token: 128 random bits in base64 have 22.
inline constexpr std::size_t kTokenMin = 22;
inline constexpr std::size_t kTokenMax = 4096;
/// A token with fewer different characters was not drawn at random.
inline constexpr std::size_t kTokenVarietyMin = 8;
/// A descriptor comes to its end within this time.
inline constexpr Duration kTokenReadTime = std::chrono::seconds(5);

/// The token as its users have it, for those who pass it on. Thread rule: const after construction. It wipes itself.
class TokenText {
 public:
  /// A new one of 256 random bits.
  static TokenText make();
  /// `source`, white space and errors as of WorldToken::read.
  static Result<TokenText> read(const std::string& source);
  /// Errors: kInvalid, as of WorldToken::parse.
  static Result<TokenText> parse(std::string_view text);

  TokenText(TokenText&& other) noexcept : text_(std::exchange(other.text_, {})) {}
  TokenText& operator=(TokenText&&) = delete;
  ~TokenText();

  const std::string& text() const { return text_; }

 private:
  explicit TokenText(std::string text) : text_(std::move(text)) {}
  std::string text_;
};

class WorldToken {
 public:
  enum class Role : unsigned char { kRank = 1, kSeed = 2 };
  using Mac = std::array<std::byte, 32>;

  /// `source`: the path of a file that this user alone may read, or "fd:N", a descriptor that is read to its end.
  /// White space around the token does not count. Errors: kNotFound; kDenied: others may read the file; kTimedOut: the
  /// descriptor did not come to its end within kTokenReadTime; kInvalid: it is too short, too long, or not random. No
  /// error holds any of it.
  static Result<WorldToken> read(const std::string& source);
  /// Errors: kInvalid, as above.
  static Result<WorldToken> parse(std::string_view text);

  WorldToken(const WorldToken&) = default;
  WorldToken& operator=(const WorldToken&) = default;
  ~WorldToken();

  /// The seed's, from which its key pair is made.
  const tls::KeyPair::Seed& seed_key() const { return seed_key_; }
  tls::PublicKey seed_public_key() const { return tls::KeyPair::from(seed_key_).public_key(); }
  const base::Id128& admission() const { return admission_; }
  /// What `role` says to show that it has the token, in the session of these two incarnations, each of 16 bytes.
  Mac prove(Role role, std::span<const std::byte> rank, std::span<const std::byte> seed) const;
  /// In constant time.
  bool is_proof(std::span<const std::byte> mac, Role role, std::span<const std::byte> rank,
                std::span<const std::byte> seed) const;

 private:
  WorldToken() = default;

  tls::KeyPair::Seed seed_key_ = {};
  base::Id128 admission_;
  std::array<std::byte, 32> mac_key_ = {};
};

}  // namespace hawser::identity
