#include "backend/stream/stream_port.h"

#include <algorithm>
#include <utility>

#include "base/try.h"
#include "proto/detector.h"

namespace hawser::backend::stream {
namespace {

/// Turns are cheap and asking the network is a system call: it is asked only so often, and after each sleep.
constexpr Duration kLookEvery = std::chrono::microseconds(20);
constexpr Duration kLookEveryIdle = std::chrono::microseconds(50);  ///< While no path has anything to do.
/// With more hot paths than this, one look costs less than trying each stream.
constexpr std::size_t kHotPathsMax = 4;
constexpr std::size_t kReadyMax = 64;

/// The work that one turn does at most. Shares are looked at before a step, so the last one may go beyond its share;
/// and the last path visited may be one that ends, whose last words are read.
TurnWatch::Work turn_bound(const TurnBudget& budget) {
  constexpr std::uint64_t kAhead = kFrameRoom + Inlet::kBufferSize;  // Heads, and what is read ahead.
  constexpr std::uint64_t kPathControl = 4 * (kControlStep + kAhead) + 2 * kLastWordsSteps * (kControlStep + kAhead);
  constexpr std::uint32_t kPathCalls = 2 * kStreamsMax + 4;
  return {.bytes = kControlTurn + kPathControl + 6 * (budget.kernel_copy_bytes + kAhead) + kVisitsMax * kAhead,
          .calls = kVisitsMax * (kPathCalls + 2 * kLastWordsSteps)};
}

}  // namespace

StreamPort::StreamPort(const Context& context, const PortOptions& options, std::unique_ptr<Network> network)
    : context_(context),
      options_(options),
      network_(std::move(network)),
      files_(context_, *network_),
      shared_{.context = context_,
              .options = options_,
              .network = *network_,
              .events = events_,
              .files = files_,
              .active = active_,
              .lobby = lobby_,
              .parts = parts_,
              .pace = {},
              .rng = context_.rng.fork()} {
  network_->set_refusal(padded(
      refusal(Status(Code::kBusy, "all descriptors of its process are in use, RLIMIT_NOFILE must be raised there"))));
}

StreamPort::~StreamPort() {
  paths_.clear();
  knocks_.clear();
}

Result<Path*> StreamPort::open_path(const PathTarget& target, Instant now) {
  if (closing_) return Status(Code::kDisconnected, "this agent is closing");
  auto path = std::make_unique<StreamPath>(shared_);
  HAWSER_TRY(path->open(target, now));
  paths_.push_back(std::move(path));
  shared_.next_due = std::min(shared_.next_due, paths_.back()->next_deadline());
  return paths_.back().get();
}

void StreamPort::release_path(Path* path) {
  const auto found = std::find_if(paths_.begin(), paths_.end(), [path](const auto& p) { return p.get() == path; });
  HAWSER_ASSERT(found != paths_.end(), "a path is released that this port does not have");
  StreamPath& dropped = **found;
  dropped.say_goodbye(Code::kOk, "the path was dropped");
  dropped.go_down(Status(Code::kDisconnected, "this agent dropped the path"), false);
  events_.forget(path);
  std::erase(active_, &dropped);
  std::swap(*found, paths_.back());
  paths_.pop_back();
}

std::size_t StreamPort::turn(Instant now, const TurnBudget& budget) {
  events_.recycle();
  shared_.watch.begin();
  if (active_.size() > kHotPathsMax || is_look_due(now)) look(now);
  std::size_t work = 0;
  if (!knocks_.empty()) work += turn_knocks(now);
  if (acceptable_) admit(now);
  while (const Lobby::Guest guest = lobby_.take_surplus(now)) send_off(guest);
  shared_.next_due = std::min(shared_.next_due, lobby_.surplus_at());
  if (now >= shared_.next_due) wake_due(now);
  work += serve_files(budget);
  if (!active_.empty()) work += turn_paths(now, budget);
  shared_.watch.end(turn_bound(budget));
  return work + (events_.empty() ? 0 : 1);
}

bool StreamPort::is_look_due(Instant now) {
  const Duration every = active_.empty() ? kLookEveryIdle : kLookEvery;
  if (has_slept_ || now - last_look_ >= every || now >= network_->next_deadline()) return true;
  return options_.look_turns > 0 && ++turns_since_look_ >= options_.look_turns;
}

bool StreamPort::has_news(Instant now) {
  const bool has_work = !active_.empty() || !events_.empty() || may_accept(now) || !knocks_.empty() || files_.is_open();
  return has_work || now >= shared_.next_due || is_look_due(now);
}

std::size_t StreamPort::serve_files(const TurnBudget& budget) {
  if (!files_.is_open()) return 0;  // Most agents serve none, and an idle turn comes here, too.
  const std::size_t work = files_.turn(budget.kernel_copy_bytes);
  for (FileJob job; files_.poll(&job);) {
    static_cast<StreamPath*>(job.path)->activate();
    job.target->on_file(std::move(job));
  }
  return work;
}

void StreamPort::look(Instant now) {
  last_look_ = now;
  turns_since_look_ = 0;
  has_slept_ = false;
  std::array<Readiness, kReadyMax> ready;
  const std::size_t count = network_->ready(ready, &acceptable_);
  for (const Readiness& news : std::span(ready).first(count)) {
    auto* owner = static_cast<StreamOwner*>(news.stream->owner);
    if (owner == nullptr) continue;
    owner->readable = owner->readable || news.readable || (news.writable && owner->path == nullptr);
    if (news.writable) owner->blocked = false;
    if (owner->path != nullptr) owner->path->on_ready(*owner);
  }
}

void StreamPort::wake_due(Instant now) {
  shared_.next_due = Instant::max();
  for (const auto& knock : knocks_) shared_.next_due = std::min(shared_.next_due, knock->deadline);
  shared_.next_due = std::min(shared_.next_due, lobby_.surplus_at());
  if (lobby_full_) shared_.next_due = std::min(shared_.next_due, std::max(lobby_.next_room(), now));
  auto woken = static_cast<std::size_t>(
      std::ranges::count_if(paths_, [now](const auto& path) { return path->next_deadline() <= now; }));
  const bool is_due = woken > 0;
  for (const auto& path : paths_) {
    if (is_due && woken < proto::kHastenedMax && path->hasten_ping(now)) ++woken;
    const Instant due = path->next_deadline();
    if (due <= now) {
      path->activate();
    } else {
      shared_.next_due = std::min(shared_.next_due, due);
    }
  }
}

// Few paths take turns at being the first. Of many, or where the first ones used the turn up, the others are first in
// the next.
std::size_t StreamPort::turn_paths(Instant now, const TurnBudget& budget) {
  Share share = shared_.pace.share(now, budget.kernel_copy_bytes);
  const std::uint64_t turn_bytes = kControlTurn + 2 * budget.kernel_copy_bytes;
  std::size_t work = 0;
  visiting_.swap(active_);
  active_.clear();
  const std::size_t count = visiting_.size();
  const std::size_t most = std::min(count, kVisitsMax);
  const std::size_t start = count <= kVisitsMax ? ++first_ % count : 0;
  std::rotate(visiting_.begin(), visiting_.begin() + static_cast<std::ptrdiff_t>(start), visiting_.end());
  std::size_t visited = 0;
  for (; visited < most && shared_.watch.now().bytes < turn_bytes; ++visited) {
    StreamPath* path = visiting_[visited];
    path->is_active = false;
    work += path->turn(now, share);
    shared_.next_due = std::min(shared_.next_due, path->next_deadline());
    if (path->wants_turns()) path->activate();
  }
  active_.insert(active_.begin(), visiting_.begin() + static_cast<std::ptrdiff_t>(visited), visiting_.end());
  visiting_.clear();
  if (std::exchange(shared_.has_silent_dead, false)) drop_silent_dead();  // Not else: it looks at all paths.
  return work;
}

// Inbound paths that ended before the agent heard of them.
void StreamPort::drop_silent_dead() {
  std::erase_if(paths_, [this](const std::unique_ptr<StreamPath>& path) {
    if (!path->is_down() || path->is_known()) return false;
    std::erase(active_, path.get());
    return true;
  });
}

std::size_t StreamPort::poll(std::span<PortEvent> out) { return events_.poll(out); }

Instant StreamPort::next_deadline() const { return std::min(shared_.next_due, network_->next_deadline()); }

bool StreamPort::prepare_sleep() {
  has_slept_ = true;  // Also when it comes to nothing: there is news then.
  if (!events_.empty() || (acceptable_ && !lobby_full_) || !files_.can_sleep()) return false;
  for (const auto& knock : knocks_) {
    if (knock->owner.readable) return false;
  }
  for (const StreamPath* path : active_) {
    if (!path->may_sleep()) return false;
  }
  return network_->arm();
}

bool StreamPort::region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) {
  bool quiet = files_.region_quiet(index, generation);
  if (!quiet && holder != nullptr) *holder = "the kernel, which still moves bytes of the file";
  const base::Id128 only = only_holder(context_.regions, {index, generation});
  for (const auto& path : paths_) {
    if (!only.is_zero() && path->peer().incarnation != only) continue;  // It was never served.
    if (path->region_quiet(index, generation)) continue;
    quiet = false;
    if (holder != nullptr) *holder = path->peer().name;
  }
  return quiet;
}

void StreamPort::begin_close(Instant now) {
  closing_ = true;
  network_->stop_listening();
  acceptable_ = false;
  for (auto& knock : knocks_) {
    lobby_.leave(knock.get());
    knock->shake->stream().close(true);
  }
  knocks_.clear();
  for (auto& path : paths_) path->begin_close(now);
  shared_.next_due = now;
}

bool StreamPort::idle() const {
  return std::all_of(paths_.begin(), paths_.end(), [](const auto& path) { return path->is_down(); });
}

void StreamPort::describe(const WaitVisitor& visitor) const {
  for (const auto& path : paths_) path->describe_waits(visitor);
  if (lobby_.size() > 0) {
    visitor({.who = options_.backend, .what = "proofs by strangers", .count = lobby_.size(), .since = lobby_.oldest()});
  }
}

std::unique_ptr<Port> make_port(const Context& context, const PortOptions& options, std::unique_ptr<Network> network) {
  return std::make_unique<StreamPort>(context, options, std::move(network));
}

Traits stream_traits(std::string_view name) {
  Traits traits;
  traits.name = name;
  traits.carries_arrivals = true;
  traits.checks_holder = true;
  traits.moves_in_submit = true;
  traits.chunk_bytes_max = 1u << 20;
  traits.chunk_pieces_max = wire::kPiecesMax;
  traits.quiesce_max = std::chrono::seconds(2);
  return traits;
}

}  // namespace hawser::backend::stream
