#include "runtime/rank_seat.h"

#include <filesystem>
#include <map>
#include <utility>

#include "base/host_id.h"
#include "base/inside.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"
#include "runtime/formation_watch.h"

namespace hawser::runtime {
namespace {

/// All worlds of a process share one thread that drives their agents.
Result<std::shared_ptr<Driver>> shared_driver() {
  static base::Mutex mutex;
  static std::weak_ptr<Driver> known;
  const base::MutexLock lock(mutex);
  if (std::shared_ptr<Driver> driver = known.lock()) return driver;
  Result<Driver> started = Driver::start();
  if (!started) return started.error();
  auto driver = std::make_shared<Driver>(std::move(*started));
  known = driver;
  return driver;
}

}  // namespace

Result<std::shared_ptr<RankSeat>> RankSeat::open(AgentOptions options, std::optional<Relay::Site> relays,
                                                 SeatHooks hooks) {
  auto seat = std::make_shared<RankSeat>();
  seat->host_ = hooks.host;
  if (seat->host_ == 0) {
    HAWSER_TRY_ASSIGN(seat->host_, base::this_host());
  }
  seat->hooks_ = std::move(hooks);
  const bool is_ours = !seat->hooks_.open;
  if (options.driven && is_ours) {
    HAWSER_TRY_ASSIGN(seat->driver_, shared_driver());
  }
  const auto tenant = [&](agent::Carrier& carrier) -> std::shared_ptr<agent::Service> {
    if (relays) {
      seat->relay = std::make_shared<Relay>(carrier, std::move(*relays));
      seat->mailbox = seat->relay->mailbox();
      return seat->relay;
    }
    seat->mailbox = std::make_shared<Mailbox>(carrier);
    return seat->mailbox;
  };
  Result<Agent> agent =
      is_ours ? agent::inner::open(std::move(options), tenant) : seat->hooks_.open(std::move(options), tenant);
  if (!agent) return agent.error();
  if (seat->relay != nullptr) seat->relay->share_place();  // Nothing turns the agent yet: it has no sessions.
  seat->agent = std::move(*agent);
  seat->open_shelf();
  if (seat->driver_ != nullptr) {
    HAWSER_TRY(seat->driver_->attach(seat->agent));
  }
  return seat;
}

void RankSeat::open_shelf() {
  boards_.emplace([its = &agent](std::size_t bytes) -> Result<BoardShelf::Memory> {
    HAWSER_TRY_ASSIGN(Region made,
                      its->allocate({.size = bytes, .rights = Rights::kRead, .huge_pages = HugePages::kOff}));
    auto region = std::make_shared<Region>(std::move(made));
    return BoardShelf::Memory{.bytes = region->bytes().first(bytes), .owner = region};
  });
}

/// An agent of a program's, run by the library's thread as long as a guest is there.
struct RankSeat::Drive {
  Drive(Agent its, std::shared_ptr<Driver> by) : agent(std::move(its)), driver(std::move(by)) {}
  ~Drive() {
    const bool is_ours = agent::inner::not_forked(agent, "World").ok();  // A child takes no lock of its parent's agent.
    if (is_ours) agent::inner::say_driven(agent, false);
    if (is_ours) static_cast<void>(driver->detach(agent));  // It may be closed.
    let_go(agent);
  }
  Drive(const Drive&) = delete;
  Drive& operator=(const Drive&) = delete;

  Agent agent;
  const std::shared_ptr<Driver> driver;
};

/// Null: another driver runs it.
Result<std::shared_ptr<RankSeat::Drive>> RankSeat::drive_of(Agent& agent) {
  static base::Mutex mutex;
  static std::map<const void*, std::weak_ptr<Drive>> known;
  const base::MutexLock lock(mutex);
  std::erase_if(known, [](const auto& each) { return each.second.expired(); });
  std::weak_ptr<Drive>& its = known[core_of(agent).get()];
  if (std::shared_ptr<Drive> drive = its.lock()) return drive;
  if (agent::inner::is_driven(agent)) return std::shared_ptr<Drive>();
  HAWSER_TRY_ASSIGN(std::shared_ptr<Driver> driver, shared_driver());
  HAWSER_TRY(driver->attach(agent));
  agent::inner::say_driven(agent, true);
  auto drive = std::make_shared<Drive>(agent::inner::borrowed(agent), std::move(driver));
  its = drive;
  return drive;
}

Result<std::shared_ptr<RankSeat>> RankSeat::join(Agent& agent, bool driven, SeatHooks hooks) {
  const auto make = [](agent::Carrier& carrier) -> std::shared_ptr<agent::Service> {
    return std::make_shared<Mailbox>(carrier);
  };
  HAWSER_TRY_ASSIGN(const std::shared_ptr<agent::Service> tenant, agent::inner::tenant_of(agent, "World::open", make));
  auto seat = std::make_shared<RankSeat>();
  seat->is_guest_ = true;
  seat->mailbox = std::dynamic_pointer_cast<Mailbox>(tenant);
  if (seat->mailbox == nullptr) {
    return Status(Code::kUnsupported, "World::open: agent '" + std::string(agent.name()) + "' is a world's own");
  }
  seat->host_ = hooks.host;
  if (seat->host_ == 0) {
    HAWSER_TRY_ASSIGN(seat->host_, base::this_host());
  }
  seat->hooks_ = std::move(hooks);
  seat->agent = agent::inner::borrowed(agent);
  seat->open_shelf();
  if (driven) {
    HAWSER_TRY_ASSIGN(seat->drive_, drive_of(agent));
  }
  return seat;
}

void RankSeat::leave_agent() {
  static_cast<void>(agent::inner::under_lane(agent, "World", [this](Instant) {
    pasts_.clear();
    if (recording_ != nullptr) mailbox->recorders().remove(*std::exchange(recording_, nullptr));
  }));
  pasts_.clear();
  boards_.reset();
  mailbox.reset();
  drive_.reset();
  let_go(agent);
}

void RankSeat::run(std::function<void()> job) {
  if (hooks_.run) {
    hooks_.run(std::move(job));
  } else {
    workers_.run(std::move(job));
  }
}

void RankSeat::keep(std::unique_ptr<PastAccord> past) {
  if (base::planted(base::Planted::kPastForgotten)) return;
  pasts_.push_back(std::move(past));
  if (pasts_.size() > kPastsMax) pasts_.pop_front();
}

void RankSeat::record(Recorder::Site site, const LogOptions& log) {
  const std::filesystem::path page(agent::inner::status_page(agent));
  if (page.empty()) return;
  // An agent of the program's may be in several worlds, and the file of a world that went wrong stays.
  const std::string suffix = is_guest_ ? "-" + std::to_string(FormationWatch::key_of(site.world)) : "";
  site.agent = agent.name();
  Result<Recorder> recorder =
      Recorder::open(page.parent_path().string(), page.stem().string() + suffix, site, agent::inner::now(agent));
  if (!recorder) {
    HAWSER_LOG(base::Logger(log), kWarn, "rank {} of world '{}' has no flight recorder: {}", site.rank,
               base::shown(site.world), recorder.error().to_string());
    return;
  }
  static_cast<void>(agent::inner::under_lane(
      agent, "World", [&](Instant) { recording_ = &mailbox->recorders().add(std::move(*recorder)); }));
}

RankSeat::~RankSeat() {
  if (is_guest_) {
    leave_agent();
    return;
  }
  constexpr Duration kPatience = std::chrono::seconds(1);
  const bool is_open = mailbox != nullptr && core_of(agent) != nullptr;  // The simulator takes it from a dead process.
  if (is_open) static_cast<void>(agent.close(kPatience));
}

}  // namespace hawser::runtime
