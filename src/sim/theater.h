#pragma once

// Theater: the agents of one run, opened, turned, ended and begun again. Real agents on simulated hosts.
//
// Thread rule: one thread. Lifetime: the run's.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "sim/judge.h"
#include "sim/life.h"

namespace hawser::simulation {

struct Settings {
  std::uint64_t seed = 1;
  sim::Mode mode = sim::Mode::kStream;
  std::size_t nodes = 3;
  Duration heartbeat = std::chrono::milliseconds(20);
  Duration peer_timeout = std::chrono::milliseconds(400);
  Duration default_deadline = std::chrono::milliseconds(300);
  bool driven = true;
  bool lies = false;  ///< Hand out cards that claim more than is true.
  unsigned connections = 2;
  std::uint64_t chunk_bytes = 16 * 1024;
  std::uint32_t channel_credit = 16;
  std::uint32_t notification_bytes = 65'600;            ///< In an inbox, of one peer.
  Duration busy_time = std::chrono::milliseconds(200);  ///< How long users are active.
  std::size_t actions = 60;                             ///< Of all users together, about.
  bool cuts = false;       ///< Links are cut and processes stopped for times around peer_timeout, and nothing else is.
  bool late = false;       ///< Resets come to one end first, the other reads on for a while.
  bool doubled = false;    ///< Agents connect at once, so that two paths are between them.
  bool devices = false;    ///< Agents have a better backend, whose device may go away.
  bool breaks = false;     ///< Mapped memory that two agents share breaks, with what lies in its rings.
  bool spare = false;      ///< Then there is a second, worse backend, whose paths may lose messages.
  bool narrow = false;     ///< Paths of mapped memory hardly hold anything, and are full all the time.
  bool drops = false;      ///< Users do not close regions: they drop them.
  bool apart = false;      ///< Links have streams of their own.
  bool strangers = false;  ///< Connections come that prove nothing and stay.
  bool copies = false;     ///< Old copies of cards and tables are handed out in any order, and clocks may be set back.
};

/// Of mapped memory, where no fault is and nothing else was drawn.
sim::MappedOptions mapped_options(const Settings& settings);

class Theater {
 public:
  Theater(sim::Universe& universe, Judge& judge, Settings settings);
  ~Theater();
  Theater(const Theater&) = delete;
  Theater& operator=(const Theater&) = delete;

  sim::Universe& universe() { return universe_; }
  Judge& judge() { return judge_; }
  const Settings& settings() const { return settings_; }
  base::Rng& rng() { return universe_.world.rng(); }

  std::size_t nodes() const { return current_.size(); }
  /// The life that runs, or ran last, at a node.
  Life& at(std::size_t node) { return *current_[node]; }
  const std::vector<std::unique_ptr<Life>>& lives() const { return lives_; }

  /// Another incarnation at `node`; the one before must have ended.
  void begin(std::size_t node);
  /// The process is gone, without a word.
  void crash(Life& life, bool power);
  /// Agent::close, in virtual time. Only one at a time.
  Status close(Life& life);
  bool closing_one() const { return closing_one_; }
  /// Called whenever an agent's blocking call lets time pass.
  void on_pause(std::function<void()> watch) { watch_ = std::move(watch); }

  Area& add_area(Life& life, const std::string& name, std::size_t size, Rights rights);
  Area& add_atomic_area(Life& life, const std::string& name);
  /// Region::close without waiting; asked again at each tick until it says kOk.
  void close_area(Life& life, Area& area);
  /// The same of the memory that the life's own transfers use; there is other memory for them at once.
  void close_scratch(Life& life);
  /// The card of `life` as others get it.
  std::string card_of(Life& life, bool lies);
  /// `life` learns, or hears again, of `other`.
  void introduce(Life& life, Life& other);
  /// Regular small work of every life: closes that are pending, finals, checks.
  void tick();

 private:
  std::vector<backend::Factory> backends_of(Life& life);
  void open_areas(Life& life);
  sim::Host::Turned turn(Life& life, Instant now);
  void drop_handles(Life& life);

  sim::Universe& universe_;
  Judge& judge_;
  const Settings settings_;
  std::vector<std::unique_ptr<Life>> lives_;
  std::vector<Life*> current_;
  std::function<void()> watch_;
  bool closing_one_ = false;
};

}  // namespace hawser::simulation
