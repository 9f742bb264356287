#include "tls/record_opener.h"

#include <sodium.h>

#include <algorithm>

namespace hawser::tls {
namespace {

constexpr std::byte kApplicationData{23};
constexpr std::byte kLegacyVersion{3};  // Both of its bytes.

bool is_known(gnutls_cipher_algorithm_t cipher) {
  return cipher == GNUTLS_CIPHER_AES_128_GCM || cipher == GNUTLS_CIPHER_AES_256_GCM ||
         cipher == GNUTLS_CIPHER_CHACHA20_POLY1305;
}

}  // namespace

std::unique_ptr<RecordOpener> RecordOpener::make(const Gnutls& library, gnutls_session_t session) {
  if (library.protocol_get_version(session) != GNUTLS_TLS1_3) return nullptr;
  if (!is_known(library.cipher_get(session))) return nullptr;
  std::unique_ptr<RecordOpener> opener(new RecordOpener(library, session));
  return opener->take_back() ? std::move(opener) : nullptr;
}

RecordOpener::~RecordOpener() {
  if (cipher_ != nullptr) library_.aead_cipher_deinit(cipher_);
  sodium_memzero(key_.data(), key_.size());
}

std::size_t RecordOpener::record_size(std::span<const std::byte> came) {
  if (came.size() < kHead) return 0;
  return kHead + std::to_integer<std::size_t>(came[3]) * 256 + std::to_integer<std::size_t>(came[4]);
}

std::optional<std::size_t> RecordOpener::open(std::span<const std::byte> record, std::span<std::byte> to) {
  const bool is_data = record[0] == kApplicationData && record[1] == kLegacyVersion && record[2] == kLegacyVersion;
  if (!is_data || record.size() <= kHead + kTag || record.size() > kHead + kSealedMax) return std::nullopt;
  std::array<unsigned char, 12> nonce = salt_;
  for (std::size_t i = 0; i < 8; ++i) nonce[4 + i] ^= static_cast<unsigned char>(number_ >> (56 - 8 * i));
  std::size_t size = record.size() - kHead - kTag;
  const int error = library_.aead_cipher_decrypt(cipher_, nonce.data(), nonce.size(), record.data(), kHead, kTag,
                                                 record.data() + kHead, record.size() - kHead, to.data(), &size);
  if (error < 0) return std::nullopt;
  while (size > 0 && to[size - 1] == std::byte{0}) --size;  // Padding; then the type.
  if (size <= 1 || size - 1 > kPlainMax || to[size - 1] != kApplicationData) return std::nullopt;
  ++number_;
  return size - 1;
}

bool RecordOpener::hand_over() const {
  Number number;
  for (std::size_t i = 0; i < number.size(); ++i) number[i] = static_cast<unsigned char>(number_ >> (56 - 8 * i));
  return library_.record_set_state(session_, 1, number.data()) >= 0;
}

bool RecordOpener::take_back() {
  gnutls_datum_t salt = {}, key = {};
  Number number;
  if (library_.record_get_state(session_, 1, nullptr, &salt, &key, number.data()) < 0) return false;
  if (salt.size != salt_.size() || key.size > key_.size()) return false;
  number_ = 0;
  for (const unsigned char byte : number) number_ = number_ << 8 | byte;
  std::copy_n(salt.data, salt.size, salt_.data());
  if (cipher_ != nullptr && sodium_memcmp(key_.data(), key.data, key.size) == 0) return true;
  if (cipher_ != nullptr) library_.aead_cipher_deinit(cipher_);
  cipher_ = nullptr;
  std::copy_n(key.data, key.size, key_.data());
  return library_.aead_cipher_init(&cipher_, library_.cipher_get(session_), &key) >= 0;
}

}  // namespace hawser::tls
