#pragma once

// Session: one end of a TLS 1.3 connection, without its socket. Whoever has the socket puts in what came (`room`,
// `came`) and sends what is `to_send`; plain bytes go in by `write` and come out by `read`.
//
// Both ends show a certificate; neither is checked against an authority. What a session proves is that the peer has the
// private key to `peer_key`. To whom that key belongs is the caller's to know.
//
// Thread rule: one thread. Memory: kOut and at most kInMax bytes of buffers, and some 20 KiB of GnuTLS's own. Before
// the handshake is through the buffers are kInFirst and what a handshake needs.

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>

#include "tls/credentials.h"
#include "tls/key_pair.h"

namespace hawser::tls {

enum class End : std::uint8_t { kOpener, kAcceptor };

class Session {
 public:
  static constexpr std::size_t kRecordMax = 16 * 1024;  ///< Plain bytes of one record.
  static constexpr std::size_t kRecordFrame = 64;       ///< More than a record adds to its plain bytes.
  static constexpr std::size_t kOut = 8 * (kRecordMax + kRecordFrame);
  static constexpr std::size_t kInFirst = 8 * 1024;
  static constexpr std::size_t kInMax = 128 * 1024;

  static Result<std::unique_ptr<Session>> open(std::shared_ptr<const Credentials> credentials, End end);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Where to put bytes of the peer; empty: take plain bytes out first.
  std::span<std::byte> room();
  void came(std::size_t bytes);
  /// The peer will send no more.
  void ended() { in_ended_ = true; }

  std::span<const std::byte> to_send() const { return std::span(out_).subspan(out_begin_); }
  void sent(std::size_t bytes);

  /// Goes on with the handshake as far as what came allows. Errors: kDenied (the peer shows no certificate of the right
  /// kind), kCorrupt (what came is no TLS, or not what the protocol allows), kUnsupported (nothing in common), each
  /// with GnuTLS's words. After an error there may be an alert to send.
  Status handshake();
  bool is_up() const { return is_up_; }

  /// Takes a prefix of `parts`: as much as `to_send` has room for, and some records more than kOut where the peer takes
  /// small ones only. The bytes are copied. Errors: the session is broken.
  Result<std::size_t> write(std::span<const iovec> parts);
  /// Fills `parts` in order with what came. 0: nothing is there yet, or the peer `is_done`. Errors: kCorrupt: somebody
  /// changed what came, or the protocol was broken.
  Result<std::size_t> read(std::span<const iovec> parts);
  /// The peer said that it says no more. An end of the socket without it may be an attacker's.
  bool is_done() const { return is_done_; }
  /// Tells the peer that no more comes.
  void say_done();

  /// The key that the peer proved to have; zeros before the handshake is through.
  const PublicKey& peer_key() const { return peer_key_; }
  /// A number that only the two ends of this session know (RFC 5705, RFC 8446 section 7.5), for proofs that must hold
  /// for this session alone.
  using Binding = std::array<std::byte, 32>;
  const Binding& binding() const { return binding_; }
  /// For people: version and algorithms.
  std::string describe() const;

 private:
  explicit Session(std::shared_ptr<const Credentials> credentials);
  Status init(End end);
  Status learn();
  Status learn_key();
  static ssize_t push(gnutls_transport_ptr_t self, const giovec_t* parts, int count);
  static ssize_t pull(gnutls_transport_ptr_t self, void* to, std::size_t size);
  bool has_out_room() const { return kOut - out_.size() >= kRecordMax + kRecordFrame; }
  Status broken(std::string_view doing, int result);
  Result<std::size_t> write_record(std::span<const std::byte> bytes);
  Result<bool> next_record();
  void drop_record();

  std::shared_ptr<const Credentials> credentials_;
  const Gnutls& library_;
  gnutls_session_t session_ = nullptr;
  std::vector<std::byte> in_;  ///< What came and GnuTLS has not taken: from in_begin_ to in_end_.
  std::size_t in_begin_ = 0, in_end_ = 0;
  bool was_filled_ = false;              ///< There may be more than `room` had room for.
  gnutls_packet_t record_ = nullptr;     ///< The last that was opened, while some of it was not read,
  std::span<const std::byte> unread_{};  ///< namely this.
  std::vector<std::byte> out_;
  std::size_t out_begin_ = 0;
  std::vector<std::byte> gathered_;  ///< Small parts, until they are a record.
  bool in_ended_ = false;
  bool is_up_ = false;
  bool is_done_ = false;
  Status failed_;  ///< What broke it; every later call says it again.
  PublicKey peer_key_{};
  Binding binding_{};
};

}  // namespace hawser::tls
