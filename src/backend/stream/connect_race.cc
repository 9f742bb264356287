#include "backend/stream/connect_race.h"

#include <algorithm>
#include <utility>

#include "base/fd.h"
#include "base/format.h"

namespace hawser::backend::stream {
namespace {

bool is_refusal(const Status& why) { return why.scope() == Scope::kPeer; }

/// Nothing that another try could change.
bool is_final(const Status& why) {
  return why.code() == Code::kUnsupported || why.code() == Code::kDenied || why.code() == Code::kCorrupt;
}

Status ended_early(const Stream& stream) {
  if (!stream.status().ok()) return stream.status();
  return Status(Code::kDisconnected, base::format("the connection ended ({})", stream.describe()));
}

}  // namespace

ConnectRace::ConnectRace(Network& network, void* owner, std::vector<std::string> places, const Known& known,
                         Instant now, Instant deadline)
    : network_(network),
      owner_(owner),
      known_(known),
      began_(now),
      deadline_(deadline),
      start_at_(now),
      left_(places.size()) {
  for (std::string& place : places)
    entries_.push_back({.place = std::move(place), .state = State::kWaiting, .stream = {}});
  const auto half = (deadline - now) / (2 * std::max<std::int64_t>(1, static_cast<std::int64_t>(left_)));
  stagger_ = std::clamp<Duration>(half, kStaggerMin, kStaggerMax);
}

ConnectRace::~ConnectRace() {
  for (Entry& entry : entries_) {
    if (entry.stream != nullptr) entry.stream->close(true);
  }
}

void ConnectRace::turn(Instant now) {
  for (Entry& entry : entries_) {
    if (entry.state == State::kConnecting || entry.state == State::kConnected) look(entry, now);
  }
  if (now < deadline_) return start_due(now);
  for (Entry& entry : entries_) {
    const bool is_open = entry.state == State::kConnected || entry.state == State::kTaken;
    if (is_open || entry.state == State::kFailed) continue;
    const auto waited_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - began_).count();
    fail(entry, Status(Code::kTimedOut, base::format("{} did not answer within {} ms", entry.place, waited_ms)));
  }
}

bool ConnectRace::is_under_way() const {
  return std::ranges::any_of(entries_, [](const Entry& entry) {
    return entry.state == State::kConnecting || entry.state == State::kConnected;
  });
}

// One is started when its time has come, or when no other is under way.
void ConnectRace::start_due(Instant now) {
  while (!has_taken_ && next_ < entries_.size() && (now >= start_at_ || !is_under_way())) {
    Entry& entry = entries_[next_++];
    start(entry);
    if (entry.state == State::kFailed) continue;
    look(entry, now);
    start_at_ = now + stagger_;
    if (entry.state == State::kConnected) return;  // Its hello goes first.
  }
}

void ConnectRace::start(Entry& entry) {
  Result<std::unique_ptr<Stream>> stream = network_.connect(entry.place, known_);
  if (!stream) return fail(entry, stream.error());
  entry.stream = *std::move(stream);
  entry.stream->owner = owner_;
  entry.state = State::kConnecting;
}

void ConnectRace::look(Entry& entry, Instant now) {
  static_cast<void>(now);
  if (entry.stream->state() == StreamState::kOpen) entry.state = State::kConnected;
  if (entry.stream->state() == StreamState::kClosed) fail(entry, ended_early(*entry.stream));
}

std::unique_ptr<Stream> ConnectRace::take(Instant now) {
  if (has_taken_) return nullptr;
  const auto found = std::ranges::find(entries_, State::kConnected, &Entry::state);
  if (found == entries_.end()) return nullptr;
  taken_ = static_cast<std::size_t>(found - entries_.begin());
  has_taken_ = true;
  found->state = State::kTaken;
  const Duration share = (deadline_ - now) / static_cast<std::int64_t>(left_);
  hello_deadline_ = std::min(deadline_, now + std::max(share, kHelloMin));
  return std::move(found->stream);
}

void ConnectRace::reject(const Status& why) {
  has_taken_ = false;
  hello_deadline_ = Instant::max();
  start_at_ = Instant::min();
  fail(entries_[taken_], why);
}

void ConnectRace::fail(Entry& entry, const Status& why) {
  if (entry.stream != nullptr) entry.stream->close(true);
  entry.stream.reset();
  entry.state = State::kFailed;
  --left_;
  failures_.push_back({entry.place, why});
}

std::string ConnectRace::losers(Instant now) const {
  const auto waited_ms = std::chrono::duration_cast<std::chrono::milliseconds>(now - began_).count();
  std::string text;
  for (const Entry& entry : entries_) {
    if (entry.state != State::kConnecting && entry.state != State::kConnected) continue;
    text += base::format("{}{} ({} within {} ms)", text.empty() ? "" : ", ", entry.place,
                         entry.state == State::kConnected ? "later" : "no answer", waited_ms);
  }
  return text;
}

Instant ConnectRace::next_deadline() const {
  if (left_ == 0) return Instant::min();
  if (has_taken_) return Instant::max();  // The hello's own deadline goes.
  return next_ < entries_.size() ? std::min(deadline_, start_at_) : deadline_;
}

bool may_change(const ConnectRace& race) {
  return std::ranges::any_of(race.failures(),
                             [](const auto& each) { return !is_refusal(each.why) && !is_final(each.why); });
}

Status verdict_of(const ConnectRace& race, std::string_view peer) {
  const auto& failures = race.failures();
  if (failures.empty()) return Status(Code::kNotFound, base::format("{} has no address to connect to", peer));
  const auto told = [&](const ConnectRace::Failure& failure) {
    return Status(failure.why.code(), base::format("cannot reach {} at {}", peer, failure.place)).because(failure.why);
  };
  // A shortage of this process says nothing of the peer. Else what may change stands first: its code says that another
  // try may help.
  auto first = std::ranges::find_if(failures, [](const auto& failure) { return base::is_shortage(failure.why); });
  const bool is_short = first != failures.end();
  if (!is_short) first = std::ranges::find_if(failures, [](const auto& failure) { return !is_final(failure.why); });
  if (first == failures.end()) first = failures.begin();
  Status all = told(*first);
  bool is_refused = false, is_unclear = false;
  for (const auto& failure : failures) {
    if (&failure != &*first) all = all.because(told(failure));
    is_refused = is_refused || is_refusal(failure.why);
    is_unclear = is_unclear || (!is_refusal(failure.why) && failure.why.code() != Code::kUnsupported);
  }
  if (is_short) return all.with_scope(Scope::kAgent);
  return all.with_scope(is_refused && !is_unclear ? Scope::kPeer : Scope::kPath);
}

}  // namespace hawser::backend::stream
