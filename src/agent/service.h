#pragma once

// Service: what an agent speaks to its like at peers, on channels of its own. Carrier: what sessions do for services.
//
// The engine knows services by this alone. A service is told of messages, of a session's end and of its deadlines; it
// sends when it is pumped. What it keeps of a session lies in the session (`Tenancy`), made at first use: a peer that
// no service speaks to costs it nothing.
//
// Thread rule: under the lane's lock. Lifetime: a service outlives the engine's sessions.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include <hawser/peer.h>
#include <hawser/status.h>
#include <hawser/time.h>
#include <hawser/transfer.h>

#include "agent/describe.h"
#include "backend/backend.h"
#include "wire/lent.h"

namespace hawser::agent {

struct RemoteRegion;
struct Session;

inline constexpr std::size_t kServicesMax = 4;                     ///< Of one agent.
inline constexpr std::size_t kServiceHeadMax = wire::kOwnHeadMax;  ///< What stands before the body of a message.

/// A channel of the library's own, and how many messages of one peer may wait there.
struct OwnChannel {
  std::uint32_t id = 0;
  std::uint32_t window = 0;
  Priority priority = Priority::kRealtime;  ///< The class of its messages.
};

/// What a service keeps of one session. The service that makes one sets Session::has_tenancies; the engine calls `pump`
/// only where that is set.
struct Tenancy {
  virtual ~Tenancy() = default;
};

enum class Sent : std::uint8_t {
  kYes,
  kNoCredit,  ///< The peer has to read first: its word makes the session be served again.
  kNoRoom,    ///< The session's queue is full: `pump` is called again after a pause.
};

/// What became of bytes for memory that a peer has lent.
enum class LentWrite : std::uint8_t {
  kYes,     ///< They are on their way; Service::on_written tells of their end.
  kNoRoom,  ///< `pump` is called again after a pause.
  kLost,    ///< The path is gone.
};

class Service;

class Carrier {
 public:
  /// Sends a message on one of the service's channels: `head`, and behind it `body`. With a body the head is at most
  /// kServiceHeadMax; the body is at most kMessageMax.
  virtual Sent carry(Session& session, std::uint32_t channel, std::span<const std::byte> head,
                     std::span<const std::byte> body) = 0;
  /// The service is done with a message of so many bytes that came: the peer may send another one.
  virtual void release_message(Session& session, std::uint32_t channel, std::size_t bytes) = 0;
  /// Opens paths to the peer where there are none, and pumps the session's services in this turn. Deadlines are looked
  /// at again, too.
  virtual void serve(Session& session, Instant now) = 0;
  /// What there is with the peer, made where it is not there yet. Null: the peer is down, or the agent is closing;
  /// `why` says which.
  virtual Session* session_with(const Peer& peer, Status* why) = 0;
  /// A path leads to the peer now. `carry` may be called without it, too.
  virtual bool has_path(Session& session) const {
    static_cast<void>(session);
    return false;
  }
  /// Whether the peer can probably `fetch` what lies here. The path is the one for messages.
  virtual bool can_fetch(Session& session) const = 0;
  /// Copies what lies at `address` in the peer's process, registered or not; see Path::fetch. False: it must come by
  /// messages.
  virtual bool fetch(Session& session, std::uint64_t address, std::span<std::byte> into) = 0;
  /// Lets this agent read a region of the peer where it lies, if the path for messages has it mapped; see Path::view.
  /// The first call for a region asks the peer for it, and is kBusy.
  virtual Result<std::unique_ptr<backend::View>> view(Session& session,
                                                      const std::shared_ptr<const RemoteRegion>& region) {
    static_cast<void>(session), static_cast<void>(region);
    return Status(Code::kUnsupported, "this carrier maps no memory");
  }
  /// Whether memory can be lent the peer, to write into without a message. The path is the one for messages.
  virtual bool lends(Session& session) const {
    static_cast<void>(session);
    return false;
  }
  /// Lends it until it is taken back. Nobody else can reach it. kBusy: too much is lent.
  virtual Result<wire::Lent> lend(Session& session, std::span<std::byte> bytes) {
    static_cast<void>(session), static_cast<void>(bytes);
    return Status(Code::kUnsupported, "this carrier lends no memory");
  }
  /// When this returns, nobody writes there.
  virtual void take_back(const wire::Lent& lent) { static_cast<void>(lent); }
  /// Begins to write into what the peer has lent, `size` bytes of it, and returns the number of the write. 0: there is
  /// no path now that can. `cookie`: see Service::on_written.
  virtual std::uint64_t begin_write(Service& service, Session& session, const wire::Lent& lent, std::uint64_t size,
                                    Priority priority, std::uint64_t cookie) {
    static_cast<void>(service), static_cast<void>(session), static_cast<void>(lent), static_cast<void>(size);
    static_cast<void>(priority), static_cast<void>(cookie);
    return 0;
  }
  /// The write's bytes from `offset` on. They stay as they are until on_written, or end_write.
  virtual LentWrite write(std::uint64_t number, std::uint64_t offset, std::span<const std::byte> bytes) {
    static_cast<void>(number), static_cast<void>(offset), static_cast<void>(bytes);
    return LentWrite::kLost;
  }
  /// When this returns, nothing is read for this write any more. Nothing is told of it.
  virtual void end_write(std::uint64_t number) { static_cast<void>(number); }
  virtual Instant now() const = 0;
  /// A service's next_deadline may have come nearer.
  virtual void note_deadline() = 0;
  /// Something ended that somebody may wait for.
  virtual void note_end() = 0;

 protected:
  ~Carrier() = default;
};

class Service {
 public:
  virtual std::span<const OwnChannel> channels() const = 0;
  /// A message came; `bytes` hold during the call. An error drops the peer. The service releases it, now or later.
  virtual Status on_message(Session& session, std::uint32_t channel, std::span<const std::byte> bytes, Instant now) = 0;
  /// So many bytes of a write that the service calls `cookie` are in the peer's memory, or cannot get there: then it
  /// goes on no further, and has to be ended.
  virtual void on_written(Session& session, std::uint64_t cookie, std::uint64_t bytes, const Status& status) {
    static_cast<void>(session), static_cast<void>(cookie), static_cast<void>(bytes), static_cast<void>(status);
  }
  /// The session has a path for messages, the first one or another one; what was sent before is not lost.
  virtual void on_control(Session& session) = 0;
  /// Sends what waits. False: there is no room (Sent::kNoRoom).
  virtual bool pump(Session& session, std::size_t* work) = 0;
  /// The session is over: whatever waits for the peer ends with `status`.
  virtual void end(Session& session, const Status& status) = 0;
  /// The agent closes, for this reason. Its sessions end afterwards.
  virtual void on_closing(const Status& /*why*/, Instant /*now*/) {}
  /// Something waits for a word of the peer.
  virtual bool awaits(const Session& session) const = 0;

  /// Things of the session that are not done yet, and may wait for nobody: 0 once all is quiet.
  virtual std::size_t left(const Session& session) const = 0;

  virtual std::string_view name() const = 0;
  virtual Instant next_deadline() const = 0;
  /// Ends what is overdue. Returns how much.
  virtual std::size_t expire(Instant now) = 0;
  /// Nobody turns the lane until something rings or a deadline comes, which may be another one afterwards. False: there
  /// is something to do that rings nothing.
  virtual bool prepare_sleep() { return true; }
  virtual void describe(const Visitor& visitor) const = 0;
  /// In a forked child, which is about to let go of all that is the parent's. Only system calls.
  virtual void disown_after_fork() {}

  /// Where its tenancies are in sessions; the engine gives it out.
  std::size_t place() const { return place_; }
  void take_place(std::size_t place) { place_ = place; }

 protected:
  ~Service() = default;

 private:
  std::size_t place_ = 0;
};

}  // namespace hawser::agent
