#pragma once

// Two connections joined by a wire in memory that may lose, double, delay, exchange and change datagrams, in virtual
// time: everything follows from a seed, but for the keys.

#include <array>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backend/quic/connection.h"
#include "backend/quic/doorkeeper.h"
#include "backend/quic/tls_end.h"
#include "base/rng.h"
#include "tls/key_pair.h"

namespace hawser::backend::quic {

/// Chances of a datagram, and what its way takes.
struct Weather {
  double lost = 0, doubled = 0, changed = 0, cut = 0, late = 0;
  Duration latency = std::chrono::microseconds(50);
  Duration lateness = std::chrono::milliseconds(2);
  double bytes_per_ns = 0;               ///< Each way; 0: no bound.
  std::size_t queue_bytes = 256 * 1024;  ///< What waits for its turn; more is lost.
};

class TestPair {
 public:
  class Side final : public ConnectionUser, public PacketSender {
   public:
    Side(TestPair& pair, int index)
        : pair_(pair),
          index_(index),
          keys(tls::KeyPair::make()),
          set{.library = *ngtcp2().value(), .handshakes = TlsCredentials::make(keys).value(), .user = *this} {}
    void on_state(Connection&) override { ++states; }
    void on_opened(Connection&, Flow& flow) override { opened.push_back(&flow); }
    std::size_t on_bytes(Connection&, Flow& flow, std::span<const std::byte> bytes) override {
      return taker ? taker(flow, bytes) : 0;
    }
    void on_id(Connection&, std::string_view, bool is_added) override { ids += is_added ? 1 : -1; }
    bool send(const Route& route, std::span<const std::byte> packets, std::size_t segment) override {
      if (is_full) return false;
      for (std::size_t at = 0; at < packets.size(); at += segment) {
        pair_.post(1 - index_, route, packets.subspan(at, std::min(segment, packets.size() - at)));
      }
      return true;
    }

   private:
    TestPair& pair_;
    const int index_;

   public:
    const tls::KeyPair keys;
    ConnectionSet set;
    std::unique_ptr<Connection> connection;
    std::vector<Flow*> opened;
    /// Takes bytes as they come.
    std::function<std::size_t(Flow&, std::span<const std::byte>)> taker;
    int states = 0, ids = 0;
    bool is_full = false;
  };

  explicit TestPair(std::uint64_t seed, const Weather& weather = {}, const ConnectionOptions& options = {})
      : weather_(weather), options_(options), rng_(seed), opener(*this, 0), acceptor(*this, 1) {
    now_ = Instant::from_ns(1'000'000'000);
    const Route route = {.local = home, .remote = base::numeric_address({"10.0.0.2", 2000}).value()};
    opener.connection = Connection::open(opener.set, opener, route, {}, options_, now_).value();
    opener.connection->settle(now_);
  }

  /// Goes on in virtual time until `done`, or for `patience`. Whether it is done.
  bool run(const std::function<bool()>& done, Duration patience = std::chrono::seconds(20)) {
    const Instant until = now_ + patience;
    while (!done()) {
      Instant next = until;
      for (Side* side : {&opener, &acceptor}) {  // What `done` wrote counts, too.
        if (side->connection != nullptr && side->connection->is_dirty) side->connection->settle(now_);
      }
      if (!wire_.empty()) next = std::min(next, wire_.begin()->first);
      for (Side* side : {&opener, &acceptor}) {
        if (side->connection != nullptr) next = std::min(next, side->connection->due());
      }
      if (next >= until) {
        now_ = until;
        return done();
      }
      now_ = std::max(now_, next);
      while (!wire_.empty() && wire_.begin()->first <= now_) {
        const Posted posted = std::move(wire_.begin()->second);
        wire_.erase(wire_.begin());
        deliver(posted);
      }
      for (Side* side : {&opener, &acceptor}) {
        if (side->connection == nullptr) continue;
        if (side->connection->due() <= now_) side->connection->on_due(now_);
        follow(*side->connection);
        if (side->connection->is_dirty) side->connection->settle(now_);
        // ngtcp2 lets go of an id one nanosecond after its timer.
        if (side->connection->due() > now_) continue;
        if (std::exchange(late_at_, now_) == now_) now_ = now_ + Duration(1);
      }
    }
    return true;
  }
  bool come_up() {
    return run([&] {
      return acceptor.connection != nullptr && acceptor.connection->state() == Connection::State::kUp &&
             opener.connection->state() == Connection::State::kUp;
    });
  }
  Instant now() const { return now_; }
  Weather& weather() { return weather_; }
  std::size_t delivered() const { return delivered_; }
  /// The address of the opener's host. What a connection sends from another one does not leave it.
  base::SocketAddress home = base::numeric_address({"10.0.0.1", 1000}).value();
  /// What the acceptor sees in its place, where something between them exchanges addresses.
  std::optional<base::SocketAddress> seen;
  /// Hears of each datagram to an address that is not the opener's: which, and how many bytes.
  std::function<void(const base::SocketAddress&, std::size_t)> astray;
  /// Somebody who has such a datagram sends it to the acceptor from there.
  void spoof(const base::SocketAddress& from, std::span<const std::byte> datagram) {
    Route route = {.local = opener.connection->route().remote, .remote = from};
    acceptor.connection->take(route, datagram, now_);
  }
  /// Looks at, or changes, each datagram to that side (0: the opener); false loses it.
  std::function<bool(int, std::vector<std::byte>&)> tap;
  /// What decides about the first datagram; null: it is taken in.
  Doorkeeper* keeper = nullptr;

 private:
  static constexpr std::size_t kHeads = 28;  ///< Of IP and UDP.
  struct Posted {
    int to = 0;
    Route route;  ///< As its receiver sees it.
    std::vector<std::byte> bytes;
  };

  bool happens(double chance) { return chance > 0 && static_cast<double>(rng_.below(1'000'000)) < chance * 1e6; }

  /// As the network does where this host has another address.
  void follow(Connection& connection) {
    if (!connection.is_unanswered() || is_same_address(connection.route().local, home)) return;
    static_cast<void>(connection.move_to({.local = home, .remote = connection.route().remote}, now_));
  }

  void post(int to, const Route& route, std::span<const std::byte> packet) {
    const base::SocketAddress outside = seen.value_or(home);
    Route back = {.local = route.remote, .remote = outside};
    if (to == 1 && !is_same_address(route.local, home)) return;
    if (to == 0) {
      if (!is_same_address(route.remote, outside)) return astray ? astray(route.remote, packet.size()) : void();
      back = {.local = home, .remote = route.local};
    }
    std::vector<std::byte> bytes(packet.begin(), packet.end());
    if (tap && !tap(to, bytes)) return;
    Duration waits = Duration::zero();
    if (weather_.bytes_per_ns > 0) {
      Instant& free_at = free_at_[static_cast<std::size_t>(to)];
      free_at = std::max(free_at, now_);
      if (static_cast<double>((free_at - now_).count()) * weather_.bytes_per_ns > double(weather_.queue_bytes)) return;
      free_at = free_at + Duration(static_cast<std::int64_t>(double(bytes.size() + kHeads) / weather_.bytes_per_ns));
      waits = free_at - now_;
    }
    if (happens(weather_.lost)) return;
    if (happens(weather_.changed)) bytes[rng_.below(bytes.size())] ^= std::byte{1};
    if (happens(weather_.cut)) bytes.resize(1 + rng_.below(bytes.size()));
    const int times = happens(weather_.doubled) ? 2 : 1;
    for (int i = 0; i < times; ++i) {
      Duration way = waits + weather_.latency;
      if (happens(weather_.late))
        way += Duration(static_cast<std::int64_t>(rng_.below(static_cast<std::uint64_t>(weather_.lateness.count()))));
      wire_.emplace(now_ + way, Posted{.to = to, .route = back, .bytes = bytes});
    }
  }

  void deliver(const Posted& posted) {
    const auto& [to, back, bytes] = posted;
    // The host has another address by now, or the connection's socket has.
    if (to == 0 && !is_same_address(back.local, home)) return;
    if (to == 0 && !is_same_address(back.local, opener.connection->route().local)) return;
    ++delivered_;
    if (to == 0) return opener.connection->take(back, bytes, now_);
    if (acceptor.connection != nullptr) return acceptor.connection->take(back, bytes, now_);
    std::array<std::byte, ConnectionIds::kAnswerBytes> word;
    const std::size_t forgotten = acceptor.set.ids.answer(acceptor.set.library, bytes, word);
    if (forgotten > 0) return post(0, back, std::span(word).first(forgotten));
    ngtcp2_pkt_hd head = {};
    const auto* const raw = reinterpret_cast<const std::uint8_t*>(bytes.data());
    if (acceptor.set.library.accept(&head, raw, bytes.size()) != 0) return;
    std::optional<ngtcp2_cid> asked;
    if (keeper != nullptr) {
      const Doorkeeper::Judged judged = keeper->judge(head, back, false, now_);
      if (judged.verdict == Verdict::kRetry) {
        std::array<std::byte, 512> answer;
        const std::size_t size = keeper->write_retry(head, back, answer, now_);
        post(0, back, std::span(answer).first(size));
      }
      if (judged.verdict != Verdict::kAccept) return;
      asked = judged.asked_id;
    }
    acceptor.connection =
        Connection::accept(acceptor.set, acceptor, back, {.head = head, .asked_id = asked}, options_, now_).value();
    acceptor.connection->take(back, bytes, now_);
  }

  Weather weather_;
  const ConnectionOptions options_;
  base::Rng rng_;
  Instant now_, late_at_;
  std::multimap<Instant, Posted> wire_;
  std::array<Instant, 2> free_at_ = {Instant::min(), Instant::min()};  ///< When the wire to that side is.
  std::size_t delivered_ = 0;

 public:
  Side opener, acceptor;
};

}  // namespace hawser::backend::quic
