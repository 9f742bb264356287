#pragma once

// RecordOpener: opens the records of plain data that a TLS 1.3 session gets, straight into their place. GnuTLS's own
// way copies each byte three times more: into its buffers, behind the record's head, and out again. The cipher is
// GnuTLS's; what is done here is RFC 8446, section 5.2.
//
// All other records (alerts, new keys), and those that do not open, go to GnuTLS, which then goes on with the same
// number: `hand_over` before, `take_back` after.
//
// Thread rule: one thread. Lifetime: the session outlives it.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "tls/gnutls_library.h"

namespace hawser::tls {

class RecordOpener {
 public:
  static constexpr std::size_t kHead = 5;
  static constexpr std::size_t kTag = 16;
  /// Most bytes that a record has behind its head (RFC 8446, section 5.2).
  static constexpr std::size_t kSealedMax = 16 * 1024 + 256;
  static constexpr std::size_t kPlainMax = 16 * 1024;

  /// Of a session whose handshake is through. Null: GnuTLS has to open its records, because they are of another version
  /// or cipher.
  static std::unique_ptr<RecordOpener> make(const Gnutls& library, gnutls_session_t session);
  ~RecordOpener();
  RecordOpener(const RecordOpener&) = delete;
  RecordOpener& operator=(const RecordOpener&) = delete;

  /// Bytes of the record that `came` begins with, its head included. 0: the head is not there.
  static std::size_t record_size(std::span<const std::byte> came);
  /// How many plain bytes a whole record has; they are at `to`, which has room for the record as it came. Nothing:
  /// GnuTLS has to take it. What is at `to` then, and behind the plain bytes, means nothing.
  std::optional<std::size_t> open(std::span<const std::byte> record, std::span<std::byte> to);

  bool hand_over() const;
  bool take_back();

 private:
  RecordOpener(const Gnutls& library, gnutls_session_t session) : library_(library), session_(session) {}
  using Key = std::array<unsigned char, 32>;
  using Number = std::array<unsigned char, 8>;

  const Gnutls& library_;
  const gnutls_session_t session_;
  gnutls_aead_cipher_hd_t cipher_ = nullptr;
  Key key_ = {};  ///< Of `cipher_`: GnuTLS may get another one.
  std::array<unsigned char, 12> salt_ = {};
  std::uint64_t number_ = 0;  ///< Of the next record.
};

}  // namespace hawser::tls
