#pragma once

// CoveredStream: a TcpStream that carries TLS. An opener's begins with a preface, if it knows the acceptor's secret,
// and goes on with TLS. An acceptor's finds out by the first byte whether its peer does, and is the bare socket if not:
// whether that may be is not decided here (stream/cover.h). It takes TLS without a good preface from the same user of
// this host only, or from everybody, if its agent has no secret.
//
// It is kConnecting until the TLS handshake is through.
//
// Thread rule: confined to the port's lane. Memory: see tls/session.h.

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/stream/handshake_share.h"
#include "backend/tcp/socket.h"
#include "tls/preface.h"
#include "tls/session.h"

namespace hawser::backend {

/// An agent's credentials for all its connections; made when first needed. Confined to the port's lane.
class TlsSource {
 public:
  /// `keys` outlive it; null: there is no TLS here.
  /// `secret`: of the agent's card; zero: everybody may come in. `has_identity`: who has no card may come in, too, and
  /// show an identity.
  TlsSource(const tls::KeyPair* keys, const base::Id128& secret, bool has_identity)
      : keys_(keys), secret_(secret), has_identity_(has_identity) {}
  /// kUnsupported: GnuTLS is missing, and what to install. A failure is kept.
  Result<std::unique_ptr<tls::Session>> open(tls::End end);
  Status prepare();
  HandshakeShare& share() { return share_; }
  /// Nobody has to show the card before TLS begins.
  bool is_open_to_strangers() const { return secret_.is_zero() || has_identity_; }
  /// Whether its sender was given the card.
  bool is_preface(const tls::Preface& preface) const;

 private:
  const tls::KeyPair* const keys_;
  const base::Id128 secret_;
  const bool has_identity_;
  std::shared_ptr<const tls::Credentials> credentials_;
  Status failed_;
  HandshakeShare share_;
};

/// What an agent has for TLS: its keys, and the source made of them once it has a connection; most agents have none.
struct OwnTls {
  const tls::KeyPair* keys = nullptr;
  base::Id128 secret = {};    ///< The secret in the agent's card; zero: the card has none.
  bool has_identity = false;  ///< The agent has an identity by an authority.
  std::shared_ptr<TlsSource> source = {};
};

class CoveredStream final : public SocketStream {
 public:
  /// What an opener begins with. Without a session it is an acceptor's, which gets one if the peer speaks TLS.
  struct Opening {
    std::unique_ptr<tls::Session> session = {};
    stream::Known known = {};
  };
  CoveredStream(std::unique_ptr<TcpStream> socket, Opening opening, std::shared_ptr<TlsSource> source);
  ~CoveredStream() override;

  stream::StreamState state() const override { return is_bare() ? socket_->state() : state_; }
  Status status() const override { return is_bare() ? socket_->status() : status_; }
  stream::Moved send(std::span<const iovec> parts) override;
  /// The bytes were copied.
  std::uint64_t released() const override { return is_bare() ? socket_->released() : sent_; }
  stream::Moved receive(std::span<const iovec> parts) override;
  void close(bool abort) override;
  std::string describe() const override;
  base::FarEnd far_end(std::string* why) const override { return socket_->far_end(why); }
  std::uint64_t source() const override { return socket_->source(); }
  std::string condition() const override { return socket_->condition(); }
  stream::Cover cover() const override { return is_bare() ? socket_->cover() : stream::Cover::kTls; }
  std::span<const std::byte> peer_key() const override;
  std::span<const std::byte> binding() const override;
  bool is_flushed() const override { return session_ == nullptr || session_->to_send().empty(); }
  const TcpStream& socket() const override { return *socket_; }
  bool on_events(std::uint32_t events, stream::Readiness* news) override;
  /// Goes on with a handshake that had to wait. False: it changes nothing for who uses the stream.
  bool on_turn(stream::Readiness* news);

 private:
  enum class Phase : std::uint8_t { kUndecided, kBare, kShaking, kCovered };

  bool is_bare() const { return phase_ == Phase::kBare; }
  void advance();
  void decide();
  void take_preface();
  void begin_session();
  bool is_kin() const;
  bool send_preface();
  Status why_cut(const Status& status) const;
  void shake();
  bool fill();
  void flush();
  stream::Moved fail(const Status& why);

  std::unique_ptr<TcpStream> socket_;
  std::unique_ptr<tls::Session> session_;
  const std::shared_ptr<TlsSource> source_;
  const bool is_stranger_;         ///< An acceptor's: whoever opened it has proven nothing.
  tls::Preface preface_{};         ///< As it comes, or goes.
  std::size_t preface_at_ = 0;     ///< So much of it came, or went.
  std::size_t preface_bytes_ = 0;  ///< So much of it there is to send or to come.
  Phase phase_;
  stream::StreamState state_ = stream::StreamState::kConnecting;
  Status status_;
  Status socket_ended_;  ///< Why no more comes, as the socket says it; good for an orderly end.
  std::uint64_t sent_ = 0;
  bool wants_room_ = false;  ///< A send took less than all.
};

}  // namespace hawser::backend
