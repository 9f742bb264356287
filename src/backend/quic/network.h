#pragma once

// QuicNetwork: QUIC connections over UDP sockets as a stream::Network. The streams of a path are streams of one
// connection: a connection takes further ones until one of its streams has gone.
//
// An opener has a socket for each connection; an acceptor's connections share those that listen. Before strangers have
// proven anything they are few (kStrangersMax), few of one source, and get no answer at all without the card's secret,
// where that is asked for (Doorkeeper).
//
// Thread rule: confined to the port's lane. Lifetime: outlives its streams.

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "backend/places/interfaces.h"
#include "backend/places/listeners.h"
#include "backend/places/locator.h"
#include "backend/quic/answer_budget.h"
#include "backend/quic/connection.h"
#include "backend/quic/doorkeeper.h"
#include "backend/quic/options.h"
#include "backend/quic/tls_end.h"
#include "backend/quic/udp_socket.h"
#include "backend/stream/handshake_share.h"
#include "backend/stream/stream.h"
#include "base/events.h"

namespace hawser::backend::quic {

class QuicStream;

/// Sockets that listen, and where they can be reached.
using QuicListeners = Listeners<std::unique_ptr<UdpSocket>>;

/// Errors: kBusy (the port is in use), kInvalid (no such address here), with advice.
Result<QuicListeners> quic_listen(const QuicOptions& options, const std::shared_ptr<FdLedger>& ledger);

class QuicNetwork final : public stream::Network, private ConnectionUser {
 public:
  /// Connections that have proven nothing, and those of them that come from one source.
  static constexpr std::size_t kStrangersMax = 64;
  static constexpr std::size_t kStrangersPerSource = 16;
  /// First datagrams that wait, of 64 KiB at most each: 4 MiB, for those who showed the card or proved an address.
  static constexpr std::size_t kKnocksMax = 64;

  static Result<std::unique_ptr<QuicNetwork>> open(const QuicOptions& options, std::shared_ptr<FdLedger> ledger,
                                                   QuicListeners listeners,
                                                   std::shared_ptr<const TlsCredentials> credentials,
                                                   const Doorkeeper::Rules& rules);
  ~QuicNetwork() override;

  Result<std::vector<std::string>> candidates(std::string_view address, bool is_guarded) const override;
  std::string left_out(std::string_view address) const override;
  bool is_here(std::string_view address) const override;
  bool streams_are_apart() const override { return true; }
  bool is_beside(const stream::Stream& stream, std::string_view place) const override;
  Result<std::unique_ptr<stream::Stream>> connect(const std::string& candidate, const stream::Known& known) override;
  std::unique_ptr<stream::Stream> accept() override;
  Result<base::Id128> cookie() override;
  void stop_listening() override;
  std::size_t ready(std::span<stream::Readiness> out, bool* acceptable) override;
  int wait_fd() const override { return epoll_.fd(); }
  bool arm() override;
  Status watch(int fd) override;
  Instant next_deadline() const override;
  std::uint64_t unanswered() const override { return strangers_budget_.held_back() + crowd_budget_.held_back(); }

 private:
  friend class QuicStream;

  struct Member;

  /// A socket and what epoll said of it.
  struct Endpoint {
    std::unique_ptr<UdpSocket> socket;
    Member* opener = nullptr;  ///< Whose it is; null: it listens.
    bool is_listed = false;    ///< In readable_.
    bool has_errors = false;   ///< The kernel has something to say.
    Status refusal = {};       ///< An opener's: nobody listens where it leads.
  };
  /// A connection and what the network knows of it.
  struct Member {
    std::unique_ptr<Endpoint> own;  ///< An opener's.
    Endpoint* endpoint = nullptr;
    std::unique_ptr<Connection> connection;
    std::string place;  ///< An opener's: where it leads, and what it knows of who is there.
    stream::Known known = {};
    QuicStream* first = nullptr;  ///< An opener's, while the handshake is under way.
    std::size_t streams = 0;      ///< That the port has.
    bool is_stranger = false;     ///< The port has accepted none of its streams yet.
    std::uint64_t source = 0;
    Instant deadline = Instant::max();  ///< Until when a stranger has to open a stream, or the last bytes to arrive.
    Instant look_at = Instant::max();   ///< When to look for another address of this host; max: it is answered.
    Instant listed = Instant::max();    ///< Its place in timers_.
    bool is_touched = false;            ///< In touched_.
  };
  using Timer = std::pair<Instant, Member*>;
  /// The first datagram of an opener that may come in.
  struct Knock {
    Endpoint* endpoint = nullptr;
    Route route;
    std::vector<std::byte> datagram;
  };

  QuicNetwork(const QuicOptions& options, std::shared_ptr<FdLedger> ledger, base::Epoll epoll, Locator locator,
              std::shared_ptr<const TlsCredentials> credentials, const Doorkeeper::Rules& rules);
  Status add_endpoint(Endpoint& endpoint);

  void on_state(Connection& connection) override;
  void on_opened(Connection& connection, Flow& flow) override;
  std::size_t on_bytes(Connection& connection, Flow& flow, std::span<const std::byte> bytes) override;
  void on_id(Connection& connection, std::string_view id, bool is_added) override;

  void advance(Instant now);
  void poll_sockets(Instant now);
  void read_all(Endpoint& endpoint, Instant now);
  void dispatch(Endpoint& endpoint, const Route& route, std::span<const std::byte> datagram, Instant now);
  void first_datagram(Endpoint& endpoint, const Route& route, std::span<const std::byte> datagram, Instant now);
  bool may_answer(AnswerBudget& budget, const Route& route, Instant now) const;
  void answer_forgotten(Endpoint& endpoint, const Route& route, std::span<const std::byte> datagram, Instant now);
  void answer_version(Endpoint& endpoint, const Route& route, const ngtcp2_version_cid& asked);
  void take_in(const Knock& knock, Instant now);
  void take_in_waiting(Instant now);
  void take(Member& member, const Route& route, std::span<const std::byte> datagram, Instant now);
  void hear_errors(Endpoint& endpoint);
  ConnectionOptions options_for(const UdpSocket& socket, const base::SocketAddress& peer) const;
  Member* find_reusable(const std::string& candidate, const stream::Known& known);
  void touch(Member& member);
  void settle_touched(Instant now);
  void finish(Member& member, Instant now);
  void fire_timers(Instant now);
  void look_for_address(Member& member, Instant now);
  void follow_address(Member& member, Instant now);
  void list_timer(Member& member);
  void gather(Member& member);
  void know(Member& member);
  void go_on(Endpoint& endpoint, Instant now);
  void tell(QuicStream& stream, bool readable, bool writable);
  void left(Member& member, bool abort, Instant now);
  void drop(Member& member);
  std::size_t strangers_of(std::uint64_t source) const;
  const std::vector<InterfaceAddress>& interfaces() const;

  const QuicOptions options_;
  const std::shared_ptr<FdLedger> ledger_;
  base::Epoll epoll_;
  const Locator locator_;
  const Doorkeeper::Rules rules_;
  ConnectionSet set_;
  Doorkeeper doorkeeper_;
  AnswerBudget strangers_budget_;  ///< Of answers to those who showed nothing,
  AnswerBudget forgotten_budget_;  ///< of those to peers of connections that are no more,
  AnswerBudget crowd_budget_;      ///< and of a Retry to those who showed the card where many are about.
  std::vector<std::unique_ptr<Endpoint>> listeners_;
  std::unordered_map<Member*, std::unique_ptr<Member>> members_;
  std::unordered_map<std::string, Member*> by_id_;
  std::unordered_map<const Connection*, Member*> by_connection_;
  std::unordered_map<std::string, Member*> by_place_;  ///< Openers'; the last one to each.
  std::set<Timer> timers_;
  std::vector<Endpoint*> readable_;
  std::vector<Member*> touched_;  ///< Something happened to them that has to be answered.
  std::vector<QuicStream*> news_;
  std::deque<std::pair<Member*, Flow*>> opened_;  ///< Streams that peers opened and nobody accepted yet.
  std::unique_ptr<std::byte[]> buffer_;
  std::deque<Knock> knocks_;  ///< They wait for time for handshakes; kKnocksMax.
  HandshakeShare share_;
  std::size_t strangers_ = 0;
  std::unordered_map<std::uint64_t, std::size_t> strangers_from_;  ///< By source.
  Member* accepting_ = nullptr;                                    ///< Whose connection is being made.
  bool is_listening_ = true;
  mutable std::vector<InterfaceAddress> interfaces_;  ///< As they were at `interfaces_at_`.
  mutable Instant interfaces_at_ = Instant::min();
};

}  // namespace hawser::backend::quic
