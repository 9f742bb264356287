#pragma once

// TestCarrier, for tests: carries what a service of the runtime says to nobody, keeps it, and has room and credit as
// the test says. What may be fetched lies in this process. TestSession: one session for it, without an agent.
//
// Thread rule: the test's thread.

#include <array>
#include <cstring>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "agent/peer_core.h"
#include "agent/session.h"
#include "base/bytes.h"
#include "base/inside.h"

namespace hawser::runtime {

/// Keeps what is said.
class TestCarrier final : public agent::Carrier {
 public:
  agent::Sent carry(agent::Session&, std::uint32_t channel, std::span<const std::byte> head,
                    std::span<const std::byte> body) override {
    if (answer != agent::Sent::kYes) return answer;
    if (full.contains(channel)) return agent::Sent::kNoCredit;
    said.emplace_back(std::string(base::as_text(head)) + std::string(base::as_text(body)));
    channels.push_back(channel);
    return agent::Sent::kYes;
  }
  void release_message(agent::Session&, std::uint32_t, std::size_t) override { ++released; }
  void serve(agent::Session&, Instant) override {}
  agent::Session* session_with(const Peer& peer, Status*) override { return core_of(peer)->session(); }
  bool has_path(agent::Session&) const override { return is_up; }
  bool can_fetch(agent::Session&) const override { return fetches; }
  bool fetch(agent::Session&, std::uint64_t address, std::span<std::byte> into) override {
    if (fetches) std::memcpy(into.data(), reinterpret_cast<const void*>(address), into.size());
    return fetches;
  }
  bool lends(agent::Session&) const override { return quits; }
  Result<wire::Lent> lend(agent::Session&, std::span<std::byte> bytes) override {
    if (!quits) return Status(Code::kBusy, "too much is lent");
    const auto index = static_cast<std::uint32_t>(lent.size());
    lent.push_back(bytes);
    return wire::Lent{.index = index, .generation = 1, .key = {1, 2}};
  }
  void take_back(const wire::Lent& its) override { taken_back.push_back(its.index); }
  std::uint64_t begin_write(agent::Service&, agent::Session&, const wire::Lent&, std::uint64_t, Priority,
                            std::uint64_t cookie) override {
    return quits ? cookie + 1000 : 0;
  }
  agent::LentWrite write(std::uint64_t number, std::uint64_t offset, std::span<const std::byte> bytes) override {
    if (write_answer == agent::LentWrite::kYes) writes.push_back({number, offset, bytes.size()});
    return write_answer;
  }
  void end_write(std::uint64_t number) override { ended_writes.push_back(number); }
  Instant now() const override { return Instant::from_ns(1'000'000); }
  void note_deadline() override {}
  void note_end() override {}

  agent::Sent answer = agent::Sent::kYes;
  bool fetches = false, is_up = false;
  bool quits = false;  ///< The path: memory may be lent over it.
  agent::LentWrite write_answer = agent::LentWrite::kYes;
  struct Written {
    std::uint64_t number, offset;
    std::size_t size;
    friend bool operator==(const Written&, const Written&) = default;
  };
  std::vector<Written> writes;
  std::vector<std::uint64_t> ended_writes;
  std::vector<std::span<std::byte>> lent;  ///< By index.
  std::vector<std::uint32_t> taken_back;
  std::vector<std::string> said;
  std::vector<std::uint32_t> channels;  ///< Of these.
  std::set<std::uint32_t> full;         ///< Channels without credit.
  int released = 0;
};

struct TestSession {
  TestSession() {
    peer->use().session = std::make_unique<agent::Session>(peer, proto::NotifyLimits{}, inbox, services);
  }
  ~TestSession() { peer->use().session.reset(); }  // A session and its peer own each other.
  TestSession(const TestSession&) = delete;
  TestSession& operator=(const TestSession&) = delete;
  agent::Session& operator*() { return *peer->session(); }

  agent::Inbox inbox{16};
  std::array<agent::Service*, 1> services{nullptr};
  std::shared_ptr<agent::PeerCore> peer =
      std::make_shared<agent::PeerCore>(std::weak_ptr<agent::Core>(), "peer", base::Id128{3, 4});
};

}  // namespace hawser::runtime
