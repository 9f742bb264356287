#pragma once

// QuicHost: a host of the simulation with its connections: what QuicNetwork is in an agent, on a simulated network. It
// looks at its inbox and its timers in turns, tells users what happened, and keeps the same order: settle, take, fire,
// tell, settle.
//
// Thread rule: one thread. Lifetime: the run's.

#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "quicsim/judge.h"
#include "quicsim/packet_net.h"
#include "quicsim/plain_handshake.h"
#include "quicsim/seeded_random.h"
#include "quicsim/stream_end.h"

namespace hawser::quicsim {

/// Ports of openers: this and the number of the connection.
inline constexpr std::uint16_t kPortBase = 100;
inline constexpr std::uint16_t kAcceptorsPort = 50;
/// The host of who copies datagrams.
inline constexpr const char* kStranger = "10.9.9.9";

class QuicHost;

/// One end of a connection, with its socket where it is an opener's.
class Line final : public backend::quic::PacketSender {
 public:
  Line(QuicHost& host, std::size_t number, Side side, const Route& route)
      : host_(host), number_(number), side_(side), route_(route) {}

  bool send(const Route& route, std::span<const std::byte> packets, std::size_t segment) override;

  QuicHost& host() const { return host_; }
  std::size_t number() const { return number_; }
  Side side() const { return side_; }
  const std::string& name() const { return name_; }
  backend::quic::Connection& connection() const { return *connection_; }
  /// The one that its talk is about: an opener's, or the acceptor's that came up.
  bool is_bound() const { return side_ == Side::kOpener || is_bound_; }
  bool is_held_up() const;
  /// One of its streams was left.
  void left(bool abort, Instant now);
  void close(bool abort, bool is_clean, Instant now);
  /// The judge hears of an end that its user wants.
  void note_close(bool abort, bool is_clean);

 private:
  friend class QuicHost;

  QuicHost& host_;
  const std::size_t number_;
  const Side side_;
  Route route_;  ///< An opener's socket.
  std::string name_;
  std::unique_ptr<backend::quic::Connection> connection_;
  std::vector<std::unique_ptr<StreamEnd>> streams_;
  std::size_t ids_ = 0;
  std::size_t opens_left_ = 0;
  Instant open_at_ = Instant::min();
  Instant trust_at_ = Instant::max();  ///< An acceptor's: then the port takes its first stream.
  Instant deadline_ = Instant::max();  ///< For the last bytes to arrive.
  Instant look_at_ = Instant::max();   ///< When to look for another address of the host.
  bool was_up_ = false, is_bound_ = false, is_ended_ = false, closes_unused_ = false;
  Instant fired_at_ = Instant::min();
  std::size_t fired_ = 0;  ///< Times that it was due within a moment, with nothing to say or to hear.
};

class QuicHost final : public backend::quic::ConnectionUser {
 public:
  struct Place {
    std::string name;
    base::SocketAddress address;
    Weather up, down;
    Side side = Side::kOpener;
    std::uint64_t seed = 0;
  };
  QuicHost(sim::World& world, PacketNet& net, QuicJudge& judge, const Settings& settings, const Place& place,
           const backend::quic::Ngtcp2& library);
  ~QuicHost() override;

  sim::World& world() const { return world_; }
  QuicJudge& judge() const { return judge_; }
  const Settings& settings() const { return settings_; }
  std::size_t number() const { return number_; }
  Side side() const { return side_; }
  const tls::PublicKey& key() const { return handshakes_->key(); }
  std::span<const std::unique_ptr<Line>> lines() const { return lines_; }
  bool is_gone() const { return is_gone_; }

  void connect(std::size_t connection, const base::SocketAddress& acceptor);
  void expect(std::size_t connection, const tls::PublicKey& key) { expected_[connection] = key; }

  // Faults.
  void stop(Duration span);
  void block(Duration span);
  void power_off();
  void forget(Line& line);
  void move(const base::SocketAddress& address);
  void wake() { look_by(world_.now()); }
  void calm();

 private:
  friend class Line;

  void on_state(backend::quic::Connection& connection) override;
  void on_opened(backend::quic::Connection& connection, backend::quic::Flow& flow) override;
  std::size_t on_bytes(backend::quic::Connection& connection, backend::quic::Flow& flow,
                       std::span<const std::byte> bytes) override;
  void on_id(backend::quic::Connection& connection, std::string_view id, bool is_added) override;

  void look_by(Instant at);
  void look();
  void drop_ended();
  void arm();
  void take_all(Instant now);
  void dispatch(const Datagram& datagram, Instant now);
  void dispatch_unknown(const Datagram& datagram, Instant now);
  void lose(const Datagram& datagram);
  void check_end(const Line& line);
  void take(Line& line, const Datagram& datagram, Instant now);
  bool asks_first(const ngtcp2_pkt_hd& head, const Route& route, std::optional<ngtcp2_cid>* asked);
  void fire(Line& line, Instant now);
  void follow(Line& line, Instant now);
  void use(Line& line, backend::quic::Flow& flow);
  void act(Line& line, Instant now);
  void finish(Line& line, Instant now);
  void check(const Line& line);
  Line* line_of(const backend::quic::Connection& connection) const;

  sim::World& world_;
  PacketNet& net_;
  QuicJudge& judge_;
  const Settings& settings_;
  const std::string name_;
  const Side side_;
  const backend::quic::Ngtcp2& library_;
  SeededRandom random_;
  base::Rng rng_;
  std::shared_ptr<const PlainHandshakes> handshakes_;
  backend::quic::ConnectionSet set_;
  std::size_t number_ = 0;
  std::deque<Datagram> inbox_;
  std::size_t inbox_bytes_ = 0;
  std::vector<std::unique_ptr<Line>> lines_;
  std::unordered_map<std::string, Line*> by_id_;
  struct Asked {
    ngtcp2_cid original;
    base::SocketAddress remote;
  };
  std::unordered_map<std::string, Asked> asked_;  ///< Retries, by the id that they gave.
  std::unordered_map<std::size_t, tls::PublicKey> expected_;
  Line* accepting_ = nullptr;
  Instant armed_ = Instant::max(), moved_at_ = Instant::max();
  Instant stopped_until_ = Instant::min(), blocked_until_ = Instant::min();
  bool was_blocked_ = false, is_gone_ = false, is_calm_ = false;
};

}  // namespace hawser::quicsim
