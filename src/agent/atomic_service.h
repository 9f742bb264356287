#pragma once

// AtomicService: atomic operations between agents: asked of the owner of the word, and done here for words of our own.
//
// Asks travel on the session's reliable link, which delivers each once whatever paths come and go; that is what makes
// them done once. What ends early after it was sent is of unknown outcome, and is never asked again. Asks and answers
// have channels of their own, so that neither waits for the other's credit.
//
// Thread rule: under the lane's lock.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>

#include "agent/atomic.h"
#include "agent/inbox.h"
#include "agent/service.h"
#include "backend/backend.h"
#include "base/timer_heap.h"
#include "wire/atomic.h"

namespace hawser::agent {

inline constexpr std::uint32_t kAtomicsWindow = 256;  ///< Asks of a peer that wait for their answers to go out.
inline constexpr std::size_t kAtomicsMax = 4096;      ///< Per peer: asked and not answered; beyond: kBusy.

class AtomicService final : public Service {
 public:
  AtomicService(Carrier& carrier, const backend::RegionTable& regions, Inbox& inbox)
      : carrier_(carrier), regions_(regions), inbox_(inbox) {}

  /// Takes an operation in. An error means that nothing happened.
  Status start(Session& session, const std::shared_ptr<AtomicCore>& op, Instant now);
  void cancel(Session& session, AtomicCore& op, Instant now);

  std::span<const OwnChannel> channels() const override;
  Status on_message(Session& session, std::uint32_t channel, std::span<const std::byte> bytes, Instant now) override;
  void on_control(Session& session) override;
  bool pump(Session& session, std::size_t* work) override;
  void end(Session& session, const Status& status) override;
  bool awaits(const Session& session) const override;
  std::size_t left(const Session& session) const override;
  std::string_view name() const override { return "atomics"; }
  Instant next_deadline() const override { return deadlines_.next(); }
  std::size_t expire(Instant now) override;
  void describe(const Visitor& visitor) const override;

 private:
  /// The answer to an ask of the peer, and the ask's bytes: its place is free once the answer is out.
  struct Owed {
    wire::AtomicAnswer answer;
    std::size_t ask_bytes = 0;
  };
  using Deadlines = base::TimerHeap<AtomicCore, &AtomicCore::alarm>;
  struct Asked final : Tenancy {
    explicit Asked(Deadlines& its_deadlines) : deadlines(its_deadlines) {}
    ~Asked() override;
    Deadlines& deadlines;
    std::map<std::uint64_t, std::shared_ptr<AtomicCore>> ops;  ///< By number: not answered yet.
    std::deque<std::uint64_t> unsent;                          ///< Of those.
    std::deque<Owed> answers;                                  ///< At most as many as the peer had credit for.
  };

  Asked* known(const Session& session) const;
  Asked& of(Session& session);
  Status on_ask(Session& session, std::span<const std::byte> bytes, Instant now);
  Status on_answer(Session& session, std::span<const std::byte> bytes);
  wire::AtomicAnswer run(Session& session, const wire::AtomicAsk& ask);
  void end_one(Session& session, std::uint64_t id, Status status, std::uint64_t found = 0);

  Carrier& carrier_;
  const backend::RegionTable& regions_;
  Inbox& inbox_;
  Deadlines deadlines_;
  std::uint64_t next_id_ = 1;
};

}  // namespace hawser::agent
