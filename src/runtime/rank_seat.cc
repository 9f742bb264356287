#include "runtime/rank_seat.h"

#include <utility>

#include "base/mutex.h"
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

Result<std::shared_ptr<RankSeat>> RankSeat::open(AgentOptions options) {
  auto seat = std::make_shared<RankSeat>();
  if (options.driven) {
    HAWSER_TRY_ASSIGN(seat->driver_, shared_driver());
  }
  Result<Agent> agent = agent::inner::open(std::move(options), [&seat](agent::Carrier& carrier) {
    seat->mailbox = std::make_shared<Mailbox>(carrier);
    return seat->mailbox;
  });
  if (!agent) return agent.error();
  seat->agent = std::move(*agent);
  if (seat->driver_ != nullptr) {
    HAWSER_TRY(seat->driver_->attach(seat->agent));
  }
  return seat;
}

RankSeat::~RankSeat() {
  constexpr Duration kPatience = std::chrono::seconds(1);
  if (mailbox != nullptr) static_cast<void>(agent.close(kPatience));
}

}  // namespace hawser::runtime
