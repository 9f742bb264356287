#pragma once

// Connection: one QUIC connection (RFC 9000) without its socket: ngtcp2 in the shape that a network needs. Datagrams
// come in by `take`; those to send go to a PacketSender; `due` says when it wants to be woken.
//
// What its streams have taken is copied. With ConnectionOptions::is_lent it sends large parts from where they lie, also
// again, until `released` covers them. A stream that is left before that ends the connection.
//
// Thread rule: one thread. Lifetime: environment and sender outlive it. Memory: for each stream what is unacknowledged
// (SendQueue::kUnackedMax) and what came and was not read (the window), and some 40 KiB for ngtcp2 and GnuTLS.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/quic/answer_watch.h"
#include "backend/quic/connection_ids.h"
#include "backend/quic/connection_options.h"
#include "backend/quic/flow.h"
#include "backend/quic/handshake_end.h"
#include "backend/quic/ngtcp2_library.h"
#include "backend/quic/packet_batch.h"
#include "backend/quic/packet_writer.h"
#include "backend/quic/qlog.h"
#include "backend/quic/random_source.h"
#include "backend/quic/receive_windows.h"
#include "backend/quic/route.h"
#include "backend/quic/sending.h"
#include "backend/quic/stall_watch.h"

namespace hawser::backend::quic {

class Connection;

/// A connection tells its user what happens, from within `take`, `on_due` and the calls that send.
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  /// The handshake is through, or the connection ended.
  virtual void on_state(Connection& connection) = 0;
  /// The peer opened a stream.
  virtual void on_opened(Connection& connection, Flow& flow) = 0;
  /// Bytes came, and none that came before wait to be read. Those that its user takes here, a prefix, are read; the
  /// others wait. Nothing may be asked of the connection meanwhile.
  virtual std::size_t on_bytes(Connection&, Flow&, std::span<const std::byte>) { return 0; }
  /// Acceptor's: datagrams to that id are of this connection, or not any more.
  virtual void on_id(Connection& connection, std::string_view id, bool is_added) = 0;
};

/// What all connections of an agent share.
struct ConnectionSet {
  const Ngtcp2& library;
  std::shared_ptr<const Handshakes> handshakes;
  ConnectionUser& user;
  RandomSource& random = secure_random();
  PacketBatch::Buffer spare = {};
  ChunkPool chunks = {};
  ConnectionIds ids = ConnectionIds(random);
};

class Connection {
 public:
  enum class State : std::uint8_t { kShaking, kUp, kEnded };

  /// An opener's. `token`: of its first datagrams, for the acceptor to look at before it computes anything.
  static Result<std::unique_ptr<Connection>> open(ConnectionSet& set, PacketSender& sender, const Route& route,
                                                  std::span<const std::byte> token, const ConnectionOptions& options,
                                                  Instant now);
  /// What an acceptor's first datagram said.
  struct First {
    ngtcp2_pkt_hd head;
    std::optional<ngtcp2_cid> asked_id;  ///< The opener's first choice, where it was told to come back.
  };
  static Result<std::unique_ptr<Connection>> accept(ConnectionSet& set, PacketSender& sender, const Route& route,
                                                    const First& first, const ConnectionOptions& options, Instant now);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  State state() const { return state_; }
  /// Once it ended: why; good for an end that both wanted.
  const Status& why() const { return why_; }
  bool is_opener() const { return is_opener_; }
  /// An acceptor's remote end is an address that has answered: datagrams from elsewhere alone do not change it.
  const Route& route() const { return route_; }

  void take(const Route& route, std::span<const std::byte> datagram, Instant now);
  /// Sends what there is: acknowledgements, and what waited for room. To be called after some `take`s or `read`s.
  void settle(Instant now);
  Instant due() const { return due_; }
  void on_due(Instant now);
  /// An opener's: it asked twice for an answer since something came. Perhaps this host has another address now.
  bool is_unanswered() const { return answer_.is_unanswered() && state_ == State::kUp; }
  /// An opener's: goes on by that route. False: the peer does not let it, or does not know yet that it may.
  bool move_to(const Route& route, Instant now);
  /// The kernel takes datagrams again.
  void on_writable(Instant now);
  /// The peer has proven who it is. From now on what came counts as taken for the connection's window, though not for
  /// its stream's, while no more than `unread_max` is unread: so streams that nobody reads hold no other one back.
  /// Until then all that a peer can have unread here is the first window.
  void trust();
  /// Something else than the peer says that it is gone.
  void fail(const Status& why);

  /// Null: the peer allows no more now.
  Flow* open_flow();
  /// Takes a prefix; 0: no room, and `is_writable` will tell.
  std::size_t write(Flow& flow, std::span<const iovec> parts, Instant now);
  /// Total of bytes that the stream took, from the first, to whose memory nothing refers any more.
  std::uint64_t released(const Flow& flow) const;
  /// What came, up to the size of `parts`.
  std::size_t read(Flow& flow, std::span<const iovec> parts);
  /// Its user goes. `abort`: what was not sent is dropped, and the peer sees a reset.
  void leave(Flow& flow, bool abort, Instant now);
  bool is_blocked() const { return sending_.is_blocked(); }
  bool has_left() const { return has_left_; }
  /// Nobody uses any of its streams.
  bool is_unused() const;
  /// What was to be delivered is acknowledged, or never will be.
  bool is_delivered() const;
  /// Says goodbye and ends.
  void close(Instant now, bool abort);

  std::span<std::unique_ptr<Flow>> flows() { return flows_; }
  const HandshakeEnd& handshake() const { return *handshake_; }
  std::string describe() const;
  std::string condition() const;
  /// Whether `settle` has to be called.
  bool is_dirty = false;

 private:
  Connection(ConnectionSet& set, PacketSender& sender, const Route& route, const ConnectionOptions& options);
  Status init_opener(std::span<const std::byte> token, Instant now);
  Status init_acceptor(const First& first, Instant now);
  void attach();
  void open_log(const ngtcp2_cid& id, Instant now);
  Qlog::Metrics metrics() const;
  void note_sent(Instant now);
  bool is_still_to_count(int error, Instant now) const;
  void note_missed(Instant now);
  void note_asked(Instant now);
  void note_unanswered(Instant now);
  void note_stall(Instant now);
  Duration probe_timeout() const;
  Duration patience_of_stall() const;
  void give_credit(Flow& flow, std::size_t bytes);
  void widen(std::int64_t id, std::uint64_t bytes);
  void note_came(std::size_t bytes);
  void note_taken(std::size_t bytes);
  void note_read(Flow& flow, std::size_t bytes);
  void note_due();
  void end(const Status& why);
  void fail_by(int error, Instant now);
  void say_close(const CloseError& error, Instant now);
  Status why_closed() const;
  void forget_ids();
  void add_id(const ngtcp2_cid& id);
  Flow& add_flow(std::int64_t id);
  void drop_over();

  // Callbacks of ngtcp2.
  static ngtcp2_callbacks callbacks(const HandshakeEnd& handshake);
  static int handshake_completed(ngtcp2_conn*, void* self);
  static int handshake_confirmed(ngtcp2_conn*, void* self);
  static int stream_opened(ngtcp2_conn*, std::int64_t id, void* self);
  static int data_came(ngtcp2_conn*, std::uint32_t flags, std::int64_t id, std::uint64_t offset,
                       const std::uint8_t* data, std::size_t size, void* self, void* flow);
  static int data_acked(ngtcp2_conn*, std::int64_t id, std::uint64_t offset, std::uint64_t size, void* self,
                        void* flow);
  static int stream_closed(ngtcp2_conn*, std::uint32_t flags, std::int64_t id, std::uint64_t code, void* self,
                           void* flow);
  static int stream_reset(ngtcp2_conn*, std::int64_t id, std::uint64_t size, std::uint64_t code, void* self,
                          void* flow);
  static int make_id(ngtcp2_conn*, ngtcp2_cid* id, std::uint8_t* token, std::size_t size, void* self);
  static int drop_id(ngtcp2_conn*, const ngtcp2_cid* id, void* self);
  static int forgotten(ngtcp2_conn*, const ngtcp2_pkt_stateless_reset*, void* self);
  static int path_checked(const ngtcp2_path* path, ngtcp2_path_validation_result result, void* self);

  ConnectionSet& set_;
  const Ngtcp2& library_;
  const ConnectionOptions options_;
  Ngtcp2Writer writer_;
  std::vector<std::unique_ptr<Flow>> flows_;
  Sending sending_;
  ConnectionWindow window_;
  std::unique_ptr<Qlog> qlog_;  ///< Null: none is wanted, or its file cannot be made.
  Route route_;
  bool is_opener_ = false;
  State state_ = State::kShaking;
  Status why_;
  std::unique_ptr<HandshakeEnd> handshake_;
  ngtcp2_conn* connection_ = nullptr;
  std::vector<std::string> ids_;
  Instant due_ = Instant::max();
  AnswerWatch answer_;         ///< An opener's.
  bool is_confirmed_ = false;  ///< Both ends know that the handshake is through.
  StallWatch stall_;
  bool is_widening_ = false;  ///< A stream's window got wider since it was settled last.
  Instant widened_at_ = Instant::min();
  bool is_forgotten_ = false;  ///< The peer says that it does not know this connection.
  bool has_left_ = false;      ///< One of its streams' users is gone.
};

}  // namespace hawser::backend::quic
