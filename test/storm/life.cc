#include "life.h"

#include <algorithm>
#include <sstream>
#include <thread>
#include <utility>

#include "base/format.h"
#include "pattern.h"

namespace hawser::storm {
namespace {

constexpr std::size_t kGravesMax = 3, kDropsMax = 6;
constexpr auto kNap = std::chrono::milliseconds(1);

}  // namespace

AgentOptions Life::options_of(const StormOptions& options, std::size_t worker, bool driven) {
  AgentOptions its;
  its.name = base::format("w{}", worker);
  std::stringstream names(options.backends);
  for (std::string name; std::getline(names, name, ',');) its.backends.push_back({name, {}});
  its.driven = driven;
  its.adopt = options.adopts;
  its.peer_timeout = std::chrono::seconds(2);
  its.heartbeat = std::chrono::milliseconds(250) * HAWSER_TIMEOUT_SCALE;
  return its;
}

Life::Life(Board& board, const StormOptions& options, std::size_t worker, std::uint64_t seed)
    : board_(board), options_(options), worker_(worker), rng_(seed) {
  const bool driven = rng_.chance(0.6);
  Result<Agent> opened = Agent::open(options_of(options, worker, driven));
  if (!opened) fail("open: " + opened.error().to_string());
  agent_ = std::move(*opened);
  if (driven) {
    Result<Driver> driver = Driver::start({});
    if (!driver) fail("Driver::start: " + driver.error().to_string());
    driver_.emplace(std::move(*driver));
    if (const Status status = driver_->attach(agent_); !status.ok()) fail("attach: " + status.to_string());
  }
  ++board_.posts[worker_].lives;
  ++board_.tally.agents;
  for (std::size_t i = 0; i < kPlayers; ++i) {
    if (const Status status = agent_.open_channel(channel_of(i)); !status.ok()) fail("channel: " + status.to_string());
  }
  open_region();
  for (std::size_t i = 0; i < kPlayers; ++i) {
    players_.push_back(std::make_unique<Player>(agent_, closing_, board_, options_, worker_, i, rng_.u64()));
  }
}

Life::~Life() = default;

void Life::fail(const std::string& what) {
  board_.fail(base::format("worker {}: {}", worker_, what));
  throw Fault();
}

void Life::open_region() {
  region_number_ = board_.new_uid();
  region_name_ = base::format("in.{}", region_number_);
  board_.begin_additions(region_number_);
  const std::size_t size = region_size(options_.workers);
  if (!options_.allocated) storage_.resize(size);
  Result<Region> made = options_.allocated ? agent_.allocate({.name = region_name_, .size = size})
                                           : agent_.add_region({.name = region_name_, .bytes = storage_, .device = {}});
  if (!made) fail("a region cannot be made: " + made.error().to_string());
  region_ = std::move(*made);
  const Result<std::string> card = agent_.card();
  if (!card) fail("card: " + card.error().to_string());
  if (!board_.posts[worker_].put(*card)) fail(base::format("a card of {} bytes has no place", card->size()));
}

void Life::check_word() {
  const Additions* const its = board_.additions(region_number_);
  if (its == nullptr) return;
  const std::uint64_t least = its->done;
  auto* const word = reinterpret_cast<std::uint64_t*>(region_.bytes().data() + word_offset(options_.workers));
  const std::uint64_t value = std::atomic_ref(*word).load();
  const std::uint64_t most = its->begun;
  if (value >= least && value <= most) return;
  fail(base::format("the word of '{}' is {}, but {} to {} were added", region_name_, value, least, most));
}

void Life::close_region() {
  check_word();
  const std::uint32_t stops = board_.posts[worker_].stops;
  Status status;
  for (int tries = 0; tries < 4; ++tries) {
    status = region_.close(options_.slack);
    if (status.ok()) break;
  }
  if (!status.ok() && stops == board_.posts[worker_].stops) fail("its region cannot be closed: " + status.to_string());
  ++board_.tally.closed;
  region_ = Region();
  if (!options_.allocated) bury(std::exchange(storage_, {}));
}

void Life::drop_region() {
  region_ = Region();
  ++board_.tally.dropped;
  if (!options_.allocated) dropped_.push_back(std::exchange(storage_, {}));
}

void Life::bury(std::vector<std::byte> memory) {
  look_at_graves();
  if (graves_.size() == kGravesMax) graves_.erase(graves_.begin());
  graves_.push_back({.memory = std::move(memory), .scribble = board_.new_uid()});
  fill(graves_.back().memory, graves_.back().scribble);
}

void Life::look_at_graves() {
  for (const Grave& grave : graves_) {
    const std::size_t same = matching(grave.memory, grave.scribble);
    if (same < grave.memory.size()) {
      fail(base::format("memory of a closed region changed at byte {} of {}", same, grave.memory.size()));
    }
  }
}

void Life::take_news() {
  while (auto note = agent_.take_notification()) on_note(note->text);
  for (std::size_t player = 0; player < kPlayers; ++player) {
    while (auto message = agent_.take_message(channel_of(player))) on_message(player, message->bytes);
  }
  while (agent_.take_event()) {
  }
}

void Life::on_note(const std::string& text) {
  std::istringstream words(text);
  std::uint64_t uid = 0;
  std::size_t worker = 0;
  std::uint32_t lives = 0;
  std::string region;
  words >> uid >> worker >> lives >> region;
  if (!words || uid == 0 || worker >= options_.workers) fail("a notification that nobody sent: '" + text + "'");
  if (!notes_.insert(uid).second) fail(base::format("notification {} came twice", uid));
  std::size_t at = 0, size = 0;
  char colon = ':';
  while (region == region_name_ && words >> at >> colon >> size) {
    const std::size_t same = matching(region_.bytes().subspan(at, size), uid);
    // Its sender may have given it up and written something else, or another agent of that worker has.
    const bool is_old = board_.is_withdrawn(uid) || board_.posts[worker].lives != lives;
    if (same != size && !is_old)
      fail(base::format("notification {} came before byte {} of {} at {}", uid, same, size, at));
  }
  board_.acknowledge(uid);
}

/// "worker stream number interruptions": in order, and none lost unless something happened between the two.
void Life::on_message(std::size_t player, const std::string& text) {
  std::istringstream words(text);
  std::size_t worker = 0;
  Heard now;
  words >> worker >> now.stream >> now.number >> now.interruptions;
  if (!words || worker >= options_.workers) fail("a message that nobody sent: '" + text + "'");
  Heard& last = heard_[worker][player];
  ++board_.tally.messages;
  if (now.stream < last.stream) return;  // Of a session that is over.
  const bool is_new = now.stream > last.stream;
  const bool is_next = now.number == last.number + 1;
  const bool is_gap = now.number > last.number && now.interruptions != last.interruptions;
  if (!is_new && !is_next && !is_gap) {
    fail(base::format("message {} of worker {}, player {} came after {}", now.number, worker, player, last.number));
  }
  last = now;
}

void Life::play(std::size_t number) try {
  while (board_.phase.load() == Phase::kStorm && !closing_ && !board_.failed()) {
    players_[number]->act();
    if (driver_) std::this_thread::yield();
    static_cast<void>(agent_.wait(Duration::zero()));
  }
} catch (const Fault&) {
}

/// What the main thread does while the others play.
void Life::storm() {
  const auto lifetime = std::chrono::milliseconds(rng_.range(200, 4000));
  const Instant end = Clock::steady().now() + lifetime;
  Instant renew = Clock::steady().now() + std::chrono::milliseconds(rng_.range(20, 600));
  while (board_.phase.load() == Phase::kStorm && !board_.failed()) {
    static_cast<void>(agent_.wait(kNap));
    take_news();
    check_word();
    const Instant now = Clock::steady().now();
    if (now > end) break;
    if (now < renew) continue;
    renew = now + std::chrono::milliseconds(rng_.range(20, 600));
    dropped_.size() < kDropsMax&& rng_.chance(0.3) ? drop_region() : close_region();
    open_region();
  }
}

void Life::run() {
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < kPlayers; ++i) threads.emplace_back([this, i] { play(i); });
  try {
    storm();
    closing_ = board_.phase.load() == Phase::kStorm;
    if (closing_) board_.posts[worker_].end_lives();
    // Half of the time it closes under those who play.
    if (closing_ && rng_.chance(0.5)) static_cast<void>(agent_.close(std::chrono::milliseconds(rng_.range(0, 50))));
  } catch (const Fault&) {
  }
  for (std::thread& thread : threads) thread.join();
  if (board_.failed()) throw Fault();
  if (!closing_) calm();
  end();
}

/// All players prove that all works, one after the other, while this agent goes on serving the others.
void Life::calm() {
  std::atomic<bool> proven = false;
  std::thread prover([this, &proven] {
    try {
      for (const auto& player : players_) player->prove();
    } catch (const Fault&) {
    }
    proven = true;
  });
  while (!proven && !board_.failed()) {
    static_cast<void>(agent_.wait(kNap));
    take_news();
  }
  prover.join();
  ++board_.posts[worker_].calm;
  while (!is_over() && !board_.failed()) {
    static_cast<void>(agent_.wait(kNap));
    take_news();
  }
  if (board_.failed()) throw Fault();
}

void Life::end() {
  closing_ = true;
  board_.posts[worker_].end_lives();
  Status status;
  for (int tries = 0; tries < 4; ++tries) {
    const Instant before = Clock::steady().now();
    status = agent_.close(options_.slack);
    if (status.ok()) break;
    if (Clock::steady().now() - before > 3 * options_.slack) fail("close came back long after its deadline");
  }
  if (!status.ok()) fail("its agent cannot be closed: " + status.to_string());
  for (const auto& player : players_) player->finish();  // Final they are, and judged now.
  for (auto& memory : dropped_) bury(std::move(memory));
  if (!options_.allocated) bury(std::exchange(storage_, {}));
  dropped_.clear();
  look_at_graves();
}

}  // namespace hawser::storm
