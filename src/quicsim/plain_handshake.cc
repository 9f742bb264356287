#include "quicsim/plain_handshake.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "base/bytes.h"
#include "base/planted.h"

namespace hawser::quicsim {
namespace {

using backend::quic::CryptoLevel;
using backend::quic::Ngtcp2;
using base::Planted;
using base::planted;

constexpr std::size_t kIvBytes = 12;  // As those of the real ciphers.
constexpr std::size_t kSecretBytes = 32;
constexpr std::size_t kMaskBytes = 5;
constexpr std::uint64_t kEncryptionsMax = 1ull << 40;
constexpr std::uint8_t kAlertDecode = 50, kAlertProof = 51;
constexpr std::size_t kMessageMax = 64 * 1024;

using Secret = std::array<std::uint8_t, kSecretBytes>;
using Bytes = std::span<const std::uint8_t>;

/// Numbers that depend on all that goes in. XXH3 is the same on every platform.
class Mixer {
 public:
  explicit Mixer(std::uint64_t what) : number_{.low64 = what, .high64 = ~what} {}
  Mixer& add(Bytes bytes) {
    const XXH128_hash_t more = XXH3_128bits_withSeed(bytes.data(), bytes.size(), number_.low64 ^ bytes.size());
    number_ = {.low64 = more.low64 + number_.high64, .high64 = more.high64 ^ number_.low64};
    return *this;
  }
  void write(std::span<std::uint8_t> to) {
    while (!to.empty()) {
      XXH128_canonical_t text;
      XXH128_canonicalFromHash(&text, number_);
      const std::size_t count = std::min(to.size(), sizeof text.digest);
      std::copy_n(text.digest, count, to.begin());
      to = to.subspan(count);
      add({text.digest, sizeof text.digest});
    }
  }

 private:
  XXH128_hash_t number_;
};

enum class Use : std::uint64_t { kFirst = 1, kShaking, kData, kNext, kProof, kBinding, kTag, kMask };

Secret derive(Use use, Bytes from, std::uint8_t way) {
  Secret secret;
  Mixer(static_cast<std::uint64_t>(use)).add(from).add({&way, 1}).write(secret);
  return secret;
}

/// What a native handle of a cipher points to.
struct PlainKey {
  Secret secret;
};

ngtcp2_crypto_aead_ctx aead_of(const Secret& secret) { return {.native_handle = new PlainKey{secret}}; }
ngtcp2_crypto_cipher_ctx cipher_of(const Secret& secret) { return {.native_handle = new PlainKey{secret}}; }

void tag_of(const PlainKey& key, Bytes nonce, Bytes header, Bytes payload, std::span<std::uint8_t> tag) {
  Mixer(static_cast<std::uint64_t>(Use::kTag)).add(key.secret).add(nonce).add(header).add(payload).write(tag);
}

int encrypt(std::uint8_t* to, const ngtcp2_crypto_aead*, const ngtcp2_crypto_aead_ctx* key, const std::uint8_t* plain,
            std::size_t size, const std::uint8_t* nonce, std::size_t nonce_size, const std::uint8_t* header,
            std::size_t header_size) {
  std::array<std::uint8_t, kPlainTagBytes> tag;
  tag_of(*static_cast<const PlainKey*>(key->native_handle), {nonce, nonce_size}, {header, header_size}, {plain, size},
         tag);
  if (size > 0) std::memmove(to, plain, size);
  std::ranges::copy(tag, to + size);
  return 0;
}

int decrypt(std::uint8_t* to, const ngtcp2_crypto_aead*, const ngtcp2_crypto_aead_ctx* key, const std::uint8_t* sealed,
            std::size_t size, const std::uint8_t* nonce, std::size_t nonce_size, const std::uint8_t* header,
            std::size_t header_size) {
  if (size < kPlainTagBytes) return NGTCP2_ERR_DECRYPT;
  const std::size_t count = size - kPlainTagBytes;
  std::array<std::uint8_t, kPlainTagBytes> tag;
  tag_of(*static_cast<const PlainKey*>(key->native_handle), {nonce, nonce_size}, {header, header_size}, {sealed, count},
         tag);
  const bool is_right = std::equal(tag.begin(), tag.end(), sealed + count);
  if (!is_right && !planted(Planted::kTagUnchecked)) return NGTCP2_ERR_DECRYPT;
  if (count > 0) std::memmove(to, sealed, count);
  return 0;
}

int mask(std::uint8_t* to, const ngtcp2_crypto_cipher*, const ngtcp2_crypto_cipher_ctx* key,
         const std::uint8_t* sample) {
  Mixer(static_cast<std::uint64_t>(Use::kMask))
      .add(static_cast<const PlainKey*>(key->native_handle)->secret)
      .add({sample, NGTCP2_HP_SAMPLELEN})
      .write({to, kMaskBytes});
  return 0;
}

ngtcp2_crypto_aead the_aead() {
  static int is_some;  // ngtcp2 asks only whether there is a handle.
  return {.native_handle = &is_some, .max_overhead = kPlainTagBytes};
}

ngtcp2_crypto_ctx suite() {
  ngtcp2_crypto_ctx suite = {};
  suite.aead = the_aead();
  suite.md.native_handle = suite.aead.native_handle;
  suite.hp.native_handle = suite.aead.native_handle;
  suite.max_encryption = suite.max_decryption_failure = kEncryptionsMax;
  return suite;
}

Secret retry_secret() { return derive(Use::kFirst, {}, 9); }

std::array<std::uint8_t, kIvBytes> iv_of(const Secret& secret) {
  std::array<std::uint8_t, kIvBytes> iv;
  std::copy_n(secret.begin(), iv.size(), iv.begin());
  return iv;
}

enum class Word : std::uint8_t { kHello = 1, kAnswer = 2, kProof = 3 };

/// One end. Its messages: a type, the size of what follows in three bytes, a number, a key, parameters, a certificate
/// and a proof, as far as that type has them.
class PlainEnd final : public backend::quic::HandshakeEnd {
 public:
  PlainEnd(const PlainHandshakes& all, bool is_opener) : all_(all), library_(all.library()), is_opener_(is_opener) {}

  void add_callbacks(ngtcp2_callbacks& table) const override {
    table.client_initial = [](ngtcp2_conn* connection, void*) { return self(connection).begin(); };
    table.recv_client_initial = [](ngtcp2_conn* connection, const ngtcp2_cid* id, void*) {
      return self(connection).install_first(*id);
    };
    table.recv_retry = [](ngtcp2_conn* connection, const ngtcp2_pkt_hd* head, void*) {
      return self(connection).install_first(head->scid);
    };
    table.recv_crypto_data = [](ngtcp2_conn* connection, CryptoLevel level, std::uint64_t, const std::uint8_t* data,
                                std::size_t size, void*) {
      return self(connection).take(level, {data, size});
    };
    table.encrypt = encrypt;
    table.decrypt = decrypt;
    table.hp_mask = mask;
    table.update_key = [](ngtcp2_conn*, std::uint8_t* in_secret, std::uint8_t* out_secret,
                          ngtcp2_crypto_aead_ctx* in_key, std::uint8_t* in_iv, ngtcp2_crypto_aead_ctx* out_key,
                          std::uint8_t* out_iv, const std::uint8_t* in_now, const std::uint8_t* out_now,
                          std::size_t size, void*) {
      next_of({in_now, size}, in_secret, in_key, in_iv);
      next_of({out_now, size}, out_secret, out_key, out_iv);
      return 0;
    };
    table.delete_crypto_aead_ctx = [](ngtcp2_conn*, ngtcp2_crypto_aead_ctx* key, void*) {
      delete static_cast<PlainKey*>(key->native_handle);
    };
    table.delete_crypto_cipher_ctx = [](ngtcp2_conn*, ngtcp2_crypto_cipher_ctx* key, void*) {
      delete static_cast<PlainKey*>(key->native_handle);
    };
    table.get_path_challenge_data = [](ngtcp2_conn* connection, std::uint8_t* data, void*) {
      self(connection).all_.source().fill({data, NGTCP2_PATH_CHALLENGE_DATALEN});
      return 0;
    };
  }

  void attach(ngtcp2_conn* connection) override {
    connection_ = connection;
    library_.conn_set_tls_native_handle(connection, this);
  }
  Status learn() override { return {}; }
  const tls::PublicKey& peer_key() const override { return peer_key_; }
  Result<std::array<std::byte, 32>> binding(std::int64_t stream) const override {
    std::array<std::uint8_t, 8> number;
    base::store_little_endian(reinterpret_cast<std::byte*>(number.data()), static_cast<std::uint64_t>(stream));
    std::array<std::byte, 32> result;
    Mixer(static_cast<std::uint64_t>(Use::kBinding))
        .add(numbers_)
        .add(number)
        .write({reinterpret_cast<std::uint8_t*>(result.data()), result.size()});
    return result;
  }
  std::string describe() const override { return "QUIC v1, plain, of the simulator"; }

  bool update(Instant now) const {
    return library_.conn_initiate_key_update(connection_, backend::quic::stamp(now)) == 0;
  }

 private:
  static PlainEnd& self(ngtcp2_conn* connection);

  static void next_of(Bytes secret, std::uint8_t* next, ngtcp2_crypto_aead_ctx* key, std::uint8_t* iv) {
    const Secret made = derive(Use::kNext, secret, 0);
    std::ranges::copy(made, next);
    *key = aead_of(made);
    std::ranges::copy(iv_of(made), iv);
  }

  /// The opener's, and the acceptor's.
  std::array<Secret, 2> both(Use use, Bytes from) const {
    const Secret opener = derive(use, from, 0), acceptor = derive(use, from, 1);
    return is_opener_ ? std::array{opener, acceptor} : std::array{acceptor, opener};
  }

  int install_first(const ngtcp2_cid& id) {
    const auto [out, in] = both(Use::kFirst, {id.data, id.datalen});
    const ngtcp2_crypto_ctx first = suite();
    library_.conn_set_initial_crypto_ctx(connection_, &first);
    const ngtcp2_crypto_aead_ctx in_key = aead_of(in), out_key = aead_of(out);
    const ngtcp2_crypto_cipher_ctx in_mask = cipher_of(in), out_mask = cipher_of(out);
    return library_.conn_install_initial_key(connection_, &in_key, iv_of(in).data(), &in_mask, &out_key,
                                             iv_of(out).data(), &out_mask, kIvBytes);
  }

  int begin() {
    const ngtcp2_crypto_aead aead = the_aead();
    const ngtcp2_crypto_aead_ctx retry = aead_of(retry_secret());
    library_.conn_set_retry_aead(connection_, &aead, &retry);
    if (install_first(*library_.conn_get_dcid(connection_)) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
    return say(backend::quic::kInitialLevel, Word::kHello);
  }

  int say(CryptoLevel level, Word type) {
    std::vector<std::uint8_t> bytes = {static_cast<std::uint8_t>(type), 0, 0, 0};
    const auto add = [&bytes](Bytes more) { bytes.insert(bytes.end(), more.begin(), more.end()); };
    if (type != Word::kProof) {
      std::array<std::uint8_t, kSecretBytes> number;
      all_.source().fill(number);
      add(number);
      std::ranges::copy(number, numbers_.begin() + (is_opener_ ? 0 : kSecretBytes));
    }
    const bool has_params = is_opener_ ? type == Word::kHello : type == Word::kProof;
    if (has_params) {
      std::array<std::uint8_t, 512> params;
      const ngtcp2_ssize size = library_.conn_encode_local_transport_params(connection_, params.data(), params.size());
      if (size < 0) return NGTCP2_ERR_CALLBACK_FAILURE;
      const auto count = static_cast<std::size_t>(size);
      bytes.push_back(static_cast<std::uint8_t>(count >> 8));
      bytes.push_back(static_cast<std::uint8_t>(count));
      add({params.data(), count});
    }
    if (type == Word::kProof) {
      add({reinterpret_cast<const std::uint8_t*>(all_.key().data()), all_.key().size()});
      add(proof(is_opener_, {reinterpret_cast<const std::uint8_t*>(all_.key().data()), all_.key().size()}));
      bytes.resize(bytes.size() + all_.certificate(), 0x63);
    }
    const std::size_t size = bytes.size() - 4;
    for (int i = 0; i < 3; ++i) bytes[1 + i] = static_cast<std::uint8_t>(size >> (16 - 8 * i));
    return library_.conn_submit_crypto_data(connection_, level, keep(std::move(bytes)), size + 4);
  }

  /// ngtcp2 copies nothing of a handshake before the peer has it.
  const std::uint8_t* keep(std::vector<std::uint8_t> bytes) {
    said_.push_back(std::move(bytes));
    return said_.back().data();
  }

  Secret proof(bool by_opener, Bytes key) const {
    Secret proof;
    const std::uint8_t way = by_opener ? 0 : 1;
    Mixer(static_cast<std::uint64_t>(Use::kProof)).add(numbers_).add(key).add({&way, 1}).write(proof);
    return proof;
  }

  int refuse(std::uint8_t alert) {
    library_.conn_set_tls_alert(connection_, alert);
    return NGTCP2_ERR_CRYPTO;
  }

  int take(CryptoLevel level, Bytes data) {
    std::vector<std::uint8_t>& heard = level == backend::quic::kInitialLevel ? first_ : second_;
    heard.insert(heard.end(), data.begin(), data.end());
    while (heard.size() >= 4) {
      const std::size_t size = std::size_t{heard[1]} << 16 | std::size_t{heard[2]} << 8 | heard[3];
      if (size > kMessageMax) return refuse(kAlertDecode);
      if (heard.size() < 4 + size) return 0;
      const std::vector<std::uint8_t> body(heard.begin() + 4, heard.begin() + 4 + static_cast<std::ptrdiff_t>(size));
      const auto type = static_cast<Word>(heard[0]);
      heard.erase(heard.begin(), heard.begin() + 4 + static_cast<std::ptrdiff_t>(size));
      if (const int error = hear(level, type, body); error != 0) return error;
    }
    return 0;
  }

  int hear(CryptoLevel level, Word type, Bytes body) {
    const bool is_first = level == backend::quic::kInitialLevel;
    if (!is_opener_ && is_first && type == Word::kHello && step_ == 0) return hear_hello(body);
    if (is_opener_ && is_first && type == Word::kAnswer && step_ == 0) return hear_answer(body);
    if (level == backend::quic::kHandshakeLevel && type == Word::kProof && step_ == 1) return hear_proof(body);
    return refuse(kAlertDecode);
  }

  bool take_number(Bytes& body) {
    if (body.size() < kSecretBytes) return false;
    std::ranges::copy(body.first(kSecretBytes), numbers_.begin() + (is_opener_ ? kSecretBytes : 0));
    body = body.subspan(kSecretBytes);
    return true;
  }

  int take_params(Bytes& body) {
    if (body.size() < 2) return refuse(kAlertDecode);
    const std::size_t size = std::size_t{body[0]} << 8 | body[1];
    if (body.size() < 2 + size) return refuse(kAlertDecode);
    const int error = library_.conn_set_remote_params(connection_, body.data() + 2, size);
    body = body.subspan(2 + size);
    return error;
  }

  int hear_hello(Bytes body) {
    step_ = 1;
    if (!take_number(body)) return refuse(kAlertDecode);
    if (const int error = take_params(body); error != 0) return error;
    if (say(backend::quic::kInitialLevel, Word::kAnswer) != 0 || !install_shaking()) {
      return NGTCP2_ERR_CALLBACK_FAILURE;
    }
    if (say(backend::quic::kHandshakeLevel, Word::kProof) != 0) return NGTCP2_ERR_CALLBACK_FAILURE;
    return install_data(true) ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
  }

  int hear_answer(Bytes body) {
    step_ = 1;
    if (!take_number(body)) return refuse(kAlertDecode);
    return install_shaking() ? 0 : NGTCP2_ERR_CALLBACK_FAILURE;
  }

  int hear_proof(Bytes body) {
    step_ = 2;
    if (is_opener_) {
      if (const int error = take_params(body); error != 0) return error;
    }
    if (body.size() < peer_key_.size() + kSecretBytes) return refuse(kAlertDecode);
    const Bytes key = body.first(peer_key_.size());
    if (!std::ranges::equal(proof(!is_opener_, key), body.subspan(key.size(), kSecretBytes))) {
      return refuse(kAlertProof);
    }
    std::ranges::copy(std::as_bytes(key), peer_key_.begin());
    if (is_opener_) {
      if (say(backend::quic::kHandshakeLevel, Word::kProof) != 0 || !install_data(true)) {
        return NGTCP2_ERR_CALLBACK_FAILURE;
      }
    }
    if (!install_data(false)) return NGTCP2_ERR_CALLBACK_FAILURE;
    library_.conn_set_shaken(connection_);
    return 0;
  }

  bool install_shaking() {
    const ngtcp2_crypto_ctx all = suite();
    library_.conn_set_crypto_ctx(connection_, &all);
    const auto [out, in] = both(Use::kShaking, numbers_);
    const ngtcp2_crypto_aead_ctx in_key = aead_of(in), out_key = aead_of(out);
    const ngtcp2_crypto_cipher_ctx in_mask = cipher_of(in), out_mask = cipher_of(out);
    return library_.conn_install_rx_handshake_key(connection_, &in_key, iv_of(in).data(), kIvBytes, &in_mask) == 0 &&
           library_.conn_install_tx_handshake_key(connection_, &out_key, iv_of(out).data(), kIvBytes, &out_mask) == 0;
  }

  bool install_data(bool is_out) {
    const auto [out, in] = both(Use::kData, numbers_);
    const Secret& secret = is_out ? out : in;
    const ngtcp2_crypto_aead_ctx key = aead_of(secret);
    const ngtcp2_crypto_cipher_ctx its_mask = cipher_of(secret);
    const auto install = is_out ? library_.conn_install_tx_key : library_.conn_install_rx_key;
    return install(connection_, secret.data(), secret.size(), &key, iv_of(secret).data(), kIvBytes, &its_mask) == 0;
  }

  const PlainHandshakes& all_;
  const Ngtcp2& library_;
  const bool is_opener_;
  ngtcp2_conn* connection_ = nullptr;
  int step_ = 0;
  std::array<std::uint8_t, 2 * kSecretBytes> numbers_{};  ///< The opener's and the acceptor's.
  tls::PublicKey peer_key_{};
  std::vector<std::vector<std::uint8_t>> said_;
  std::vector<std::uint8_t> first_, second_;  ///< Parts of messages, by level.
};

/// The library of the process: a callback of ngtcp2 gets its connection and nothing else of ours.
PlainEnd& PlainEnd::self(ngtcp2_conn* connection) {
  return *static_cast<PlainEnd*>((*backend::quic::ngtcp2())->conn_get_tls_native_handle(connection));
}

}  // namespace

Result<std::unique_ptr<backend::quic::HandshakeEnd>> PlainHandshakes::open_end(tls::End end) const {
  return std::unique_ptr<backend::quic::HandshakeEnd>(std::make_unique<PlainEnd>(*this, end == tls::End::kOpener));
}

const char* PlainHandshakes::alert_name(std::uint8_t alert) const {
  if (alert == kAlertDecode) return "a message that cannot be read";
  return alert == kAlertProof ? "a proof that is wrong" : nullptr;
}

std::size_t PlainHandshakes::write_retry(const ngtcp2_pkt_hd& first, const ngtcp2_cid& own,
                                         std::span<const std::uint8_t> token, std::span<std::byte> room) const {
  const ngtcp2_crypto_aead aead = the_aead();
  PlainKey key = {retry_secret()};
  const ngtcp2_crypto_aead_ctx context = {.native_handle = &key};
  const ngtcp2_ssize size =
      library_.pkt_write_retry(reinterpret_cast<std::uint8_t*>(room.data()), room.size(), first.version, &first.scid,
                               &own, &first.dcid, token.data(), token.size(), encrypt, &aead, &context);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

bool update_keys(const backend::quic::Connection& connection, Instant now) {
  return static_cast<const PlainEnd&>(connection.handshake()).update(now);
}

}  // namespace hawser::quicsim
