#pragma once

// StreamPort: the paths of one lane over one Network, and the door at which peers knock.
//
// A turn looks at the network now and then, lets paths that have something move bytes, and answers hellos. Idle paths
// cost nothing but their deadlines.
//
// Thread rule: confined to its lane. Lifetime: owns network and paths.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "backend/admission_count.h"
#include "backend/stream/lobby.h"
#include "backend/stream/path.h"
#include "backend/stream/port.h"
#include "base/line_gate.h"

namespace hawser::backend::stream {

class StreamPort final : public Port {
 public:
  StreamPort(const Context& context, const PortOptions& options, std::unique_ptr<Network> network);
  ~StreamPort() override;

  Result<Path*> open_path(const PathTarget& target, Instant now) override;
  void release_path(Path* path) override;
  std::size_t turn(Instant now, const TurnBudget& budget) override;
  std::size_t poll(std::span<PortEvent> out) override;
  bool has_news(Instant now) override;
  Instant next_deadline() const override;
  int wait_fd() const override { return network_->wait_fd(); }
  bool prepare_sleep() override;
  bool region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) override;
  void begin_close(Instant now) override;
  bool idle() const override;
  void describe(const WaitVisitor& visitor) const override;
  std::optional<AdmissionCounters> admissions() const override {
    AdmissionCounters counters = admissions_.counters();
    counters.unanswered = network_->unanswered();
    return counters;
  }
  /// How long turns were; see TurnWatch.
  const TurnWatch::Work& longest_turn() const { return shared_.watch.longest(); }

 private:
  /// A connection whose hello or proof is awaited: of fixed memory and few.
  struct Knock {
    std::unique_ptr<Handshake> shake;
    StreamOwner owner;
    Instant deadline;      ///< Of the stage.
    bool is_kin = false;   ///< Of this host and user.
    bool refused = false;  ///< Only the answer has still to leave, and the opener to go.
  };

  bool is_look_due(Instant now);
  bool may_accept(Instant now) const { return acceptable_ && (!lobby_full_ || lobby_.has_room(now)); }
  void look(Instant now);
  std::size_t serve_files(const TurnBudget& budget);
  void admit(Instant now);
  void take_in(std::unique_ptr<Stream> stream, Instant now);
  void send_off(Lobby::Guest guest);
  std::size_t turn_knocks(Instant now);
  bool turn_knock(Knock& knock, Instant now);
  bool see_off(Knock& knock, Instant now);
  Status heard(Knock& knock, Instant now);
  Status check_hello(const wire::Hello& hello) const;
  Status come_in(Knock& knock, Instant now);
  Status join(Knock& knock, Instant now);
  wire::Hello answer_to(const wire::Hello& hello) const;
  void log_turned_away(const Knock& knock, const Status& why, Instant now);
  PeerClaim claim_of(Handshake& shake) const;
  Status open_session(Knock& knock, Instant now);
  Status attach_stream(Knock& knock, Instant now);
  bool supersede(const wire::Hello& hello);
  void refuse(Knock& knock, const Status& why, Instant now);
  wire::Hello own_hello() const;
  wire::Hello refusal(const Status& why) const;
  void tell_of_shortage(Instant now);
  std::size_t turn_paths(Instant now, const TurnBudget& budget);
  void wake_due(Instant now);
  void drop_silent_dead();

  Context context_;
  PortOptions options_;
  std::unique_ptr<Network> network_;
  EventQueue events_;
  FileDesk files_;
  std::vector<iovec> parts_;
  std::vector<StreamPath*> active_;
  std::vector<StreamPath*> visiting_;  ///< Those of this turn.
  Lobby lobby_;
  base::LineGate line_gate_;
  AdmissionCount admissions_;
  PortShared shared_;
  std::vector<std::unique_ptr<StreamPath>> paths_;
  std::vector<std::unique_ptr<Knock>> knocks_;
  Instant last_look_ = Instant::min();
  unsigned turns_since_look_ = 0;
  bool has_slept_ = true;        ///< Since the last look: what came meanwhile is not known.
  unsigned first_ = 0;           ///< Active path that goes first.
  std::uint64_t told_away_ = 0;  ///< Of Network::turned_away, as the log has it.
  Instant tell_shortage_at_ = Instant::min();
  bool acceptable_ = true;   ///< Somebody may be waiting to be accepted.
  bool lobby_full_ = false;  ///< Who waits to be accepted waits for a place.
  bool closing_ = false;
};

}  // namespace hawser::backend::stream
