#include "runtime/rank_seat.h"

#include <filesystem>
#include <utility>

#include "base/host_id.h"
#include "base/inside.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/planted.h"
#include "base/shown.h"
#include "base/try.h"

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
  seat->boards_.emplace([its = &seat->agent](std::size_t bytes) -> Result<BoardShelf::Memory> {
    HAWSER_TRY_ASSIGN(Region made,
                      its->allocate({.size = bytes, .rights = Rights::kRead, .huge_pages = HugePages::kOff}));
    auto region = std::make_shared<Region>(std::move(made));
    return BoardShelf::Memory{.bytes = region->bytes().first(bytes), .owner = region};
  });
  if (seat->driver_ != nullptr) {
    HAWSER_TRY(seat->driver_->attach(seat->agent));
  }
  return seat;
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

void RankSeat::record(const Recorder::Site& site, const LogOptions& log) {
  const std::filesystem::path page(agent::inner::status_page(agent));
  if (page.empty()) return;
  Result<Recorder> recorder =
      Recorder::open(page.parent_path().string(), page.stem().string(), site, agent::inner::now(agent));
  if (!recorder) {
    HAWSER_LOG(base::Logger(log), kWarn, "rank {} of world '{}' has no flight recorder: {}", site.rank,
               base::shown(site.world), recorder.error().to_string());
    return;
  }
  static_cast<void>(
      agent::inner::under_lane(agent, "World", [&](Instant) { mailbox->record_by(std::move(*recorder)); }));
}

RankSeat::~RankSeat() {
  constexpr Duration kPatience = std::chrono::seconds(1);
  const bool is_open = mailbox != nullptr && core_of(agent) != nullptr;  // The simulator takes it from a dead process.
  if (is_open) static_cast<void>(agent.close(kPatience));
}

}  // namespace hawser::runtime
