#pragma once

// What the remote-memory protocol needs of a byte-stream transport: sockets (tcp), QUIC streams (quic), a simulated
// network (sim). The protocol itself, its sessions and its lane-confined port are shared: see port.h.
//
// Nothing here blocks. Time enters where it matters as `now`; a simulated network keeps its own virtual clock.
//
// Thread rule: confined to the port's lane. Lifetime: a Network outlives its streams; streams are owned by the port.

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "backend/stream/message_order.h"
#include "base/far_end.h"
#include "base/id128.h"

namespace hawser::backend::stream {

/// What one send or receive did. `bytes` and `placed` == 0 and not `closed`: it would block.
struct Moved {
  std::size_t bytes = 0;
  bool closed = false;     ///< No byte will ever move this way again; `bytes` is 0 then.
  Status status;           ///< With `closed`: why (reset, timed out); good for an orderly end (FIN).
  std::size_t placed = 0;  ///< Bytes before those, which the stream's Landing has taken since the last receive.
};

enum class StreamState : std::uint8_t { kConnecting = 1, kOpen = 2, kClosed = 3 };

/// What keeps others than the two ends from a stream's bytes.
enum class Cover : std::uint8_t {
  kHost = 0,  ///< They do not leave this host, whose kernel gives them to the two ends only.
  kNone = 1,  ///< Nothing: whoever is on the network between can read and change them.
  kTls = 2,   ///< Both ends have proven to have the private keys to the public ones that they show.
};

/// Where the next bytes of a stream go, for a network that has them in memory of its own and so need not keep them.
class Landing {
 public:
  virtual ~Landing() = default;
  /// Takes a prefix of them, and returns its size. It calls nothing of the stream and its network.
  virtual std::size_t place(std::span<const std::byte> bytes) = 0;
};

/// One ordered, reliable byte stream in both directions.
class Stream {
 public:
  virtual ~Stream() = default;  ///< Like close(true).

  /// A connecting stream becomes kOpen or kClosed by itself (`ready` tells); kClosed: `status` says why.
  virtual StreamState state() const = 0;
  virtual Status status() const = 0;

  /// Takes a prefix of `parts` (at most kPartsMax). The bytes must stay as they are until `released` covers them.
  virtual Moved send(std::span<const iovec> parts) = 0;
  /// Total of sent bytes, from the first, that the stream does not refer to any more. Sockets: all that was sent;
  /// streams that send again from the caller's memory: all that was acknowledged.
  virtual std::uint64_t released() const = 0;
  /// Fills `parts` in order with what is there.
  virtual Moved receive(std::span<const iovec> parts) = 0;

  /// No more calls but the destructor. `abort`: unsent bytes are dropped and the peer sees a reset; else what was sent
  /// is still delivered, then the peer sees an orderly end. After it the stream refers to no memory of the caller's.
  virtual void close(bool abort) = 0;
  /// For people: both addresses.
  virtual std::string describe() const = 0;
  /// Which user owns the other end; kElsewhere where that is on another host. `why`, if there is one, gets more for
  /// people. May take some 10 us.
  virtual base::FarEnd far_end(std::string* why) const {
    static_cast<void>(why);
    return base::FarEnd::kElsewhere;
  }
  /// Connections of one source have the same number; see Lobby.
  virtual std::uint64_t source() const { return 0; }
  /// Constant once it is open.
  virtual Cover cover() const { return Cover::kHost; }
  /// With kTls: the public key to which the other end has the private one; else empty.
  virtual std::span<const std::byte> peer_key() const { return {}; }
  /// With kTls: a number that only the two ends of this very stream know; else empty. A proof that covers it holds for
  /// this stream alone.
  virtual std::span<const std::byte> binding() const { return {}; }
  /// All that it took is on its way: an orderly close loses nothing.
  virtual bool is_flushed() const { return true; }
  /// For people: what the transport knows of how its bytes fare; empty where it knows nothing.
  virtual std::string condition() const { return {}; }

  /// The port's own mark for finding what a reported stream belongs to.
  void* owner = nullptr;
  /// May be asked within Network::ready and Network::arm, where no byte waits for `receive`; null: not at all. It
  /// outlives the stream's last such call. A network that asks it reports the stream as readable, and `receive` tells
  /// how many bytes were placed.
  Landing* landing = nullptr;
};

/// Most parts in one send or receive.
inline constexpr std::size_t kPartsMax = 1024;

/// A stream changed: became readable or writable (connected, too), or ended (then both are set).
struct Readiness {
  Stream* stream = nullptr;
  bool readable = false;
  bool writable = false;
};

/// What an opener knows of the acceptor, from its card; zeros: nothing.
struct Known {
  base::Id128 secret = {};
  std::array<std::byte, 32> key = {};

  bool has_key() const { return key != std::array<std::byte, 32>{}; }
  bool is_anything() const { return !secret.is_zero() || has_key(); }
  friend bool operator==(const Known&, const Known&) = default;
};

/// Where streams come from.
class Network {
 public:
  virtual ~Network() = default;

  /// The places that `address` (from a card, or typed) names, in the order in which to try them. Errors: kInvalid,
  /// kDenied (not allowed to go there), kUnsupported (cannot be reached from here). `is_guarded`: the peer's card tells
  /// that it lets nobody in who proves nothing, so bytes that leave this host must be covered, whatever our own level.
  virtual Result<std::vector<std::string>> candidates(std::string_view address, bool is_guarded) const = 0;
  /// The places of `address` that `candidates` leaves out, and why, for people; mostly empty.
  virtual std::string left_out(std::string_view address) const {
    static_cast<void>(address);
    return {};
  }
  /// Whether a connection that is refused at `address` proves that the peer's process ended: only its own kernel, in
  /// its own network namespace, knows that nobody listens. Elsewhere an address may have changed hands.
  virtual bool is_here(std::string_view address) const {
    static_cast<void>(address);
    return false;
  }
  /// Whether `place` and the other end of `stream` are in this network namespace, so that a connection which is refused
  /// at `place` proves that nobody listens there any more. A peer says which place is its own: only its own address, or
  /// loopback, is believed.
  virtual bool is_beside(const Stream& stream, std::string_view place) const {
    static_cast<void>(stream), static_cast<void>(place);
    return false;
  }
  /// Whether the bytes of one stream never wait for those of another, and streams are cheap. If so, links have streams
  /// of their own (message_order.h). Both ends of a network give the same answer.
  virtual bool streams_are_apart() const { return false; }
  /// Starts connecting to one candidate. An error is final for this candidate; Scope::kPeer: its host refuses, nobody
  /// listens there.
  virtual Result<std::unique_ptr<Stream>> connect(const std::string& candidate, const Known& known) = 0;
  /// The next stream that a peer opened; null when there is none. May be asked at any time, is worth it after `ready`
  /// set `*acceptable`.
  virtual std::unique_ptr<Stream> accept() = 0;
  /// The secret that proves that both ends are of one user, where the kernel does not tell (base/user_cookie.h).
  virtual Result<base::Id128> cookie() { return Status(Code::kUnsupported, "this network has no users"); }
  /// What to say to peers that are turned away because this process has no descriptor left: a hello that refuses.
  virtual void set_refusal(std::string hello) { static_cast<void>(hello); }
  /// Peers turned away so. It only grows.
  virtual std::uint64_t turned_away() const { return 0; }
  /// Strangers that got no answer, because an answer might have gone to somebody else and many had gone already. It
  /// only grows.
  virtual std::uint64_t unanswered() const { return 0; }
  /// New peers are turned away from now on.
  virtual void stop_listening() = 0;

  /// Streams that changed since last asked, each at least once per change ("edges": a stream that was not read until it
  /// would block need not be told again). Fills `out`; more may be left when it is full. Where a peer connected it sets
  /// `*acceptable`, which it never clears: of one that was not accepted yet nothing tells again.
  virtual std::size_t ready(std::span<Readiness> out, bool* acceptable) = 0;
  /// When `ready` has to be asked although nothing came: a transport of its own sends lost bytes again.
  virtual Instant next_deadline() const { return Instant::max(); }
  /// A descriptor that is readable when `ready` has news, once `arm` returned true; -1 when there is none.
  virtual int wait_fd() const = 0;
  /// False: `ready` has news already.
  virtual bool arm() = 0;
  /// From now on `wait_fd` is readable whenever `fd` is, too. The descriptor stays the caller's. kUnsupported where
  /// there is no wait_fd.
  virtual Status watch(int fd) {
    static_cast<void>(fd);
    return Status(Code::kUnsupported, "this network wakes nobody");
  }
};

}  // namespace hawser::backend::stream
