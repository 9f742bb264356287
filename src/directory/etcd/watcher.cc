#include "directory/etcd/watcher.h"

#include <algorithm>
#include <set>

#include "base/format.h"
#include "directory/etcd/clock.h"

namespace hawser::directory::etcd {
namespace {

/// A stream that says nothing for this long is asked about: its member may have lost its leader, or be stopped.
constexpr Duration kSilence = std::chrono::seconds(5);
constexpr Duration kWatchAgain = std::chrono::milliseconds(100);
constexpr Duration kRestMin = std::chrono::milliseconds(10);
constexpr Duration kRestMax = std::chrono::seconds(1);
/// A request whose deadline is near still gets one try.
constexpr Duration kWatchTryMin = std::chrono::milliseconds(50);

bool covers(const std::string& prefix, std::string_view other) { return other.starts_with(prefix); }

}  // namespace

void Watcher::add(Request request) {
  {
    base::MutexLock lock(mutex_);
    arrived_.push_back(std::move(request));
  }
  operations_.http().interrupt();
}

void Watcher::run() {
  while (!operations_.http().is_stopped()) turn();
  answer_requests(Status(Code::kCancelled, "etcd: the directory is closed"));
}

void Watcher::turn() {
  take_requests();
  settle_covers();
  HttpClient& http = operations_.http();
  if (covers_.empty()) return http.pause(Instant::max());
  const Instant deadline = std::max(now() + kWatchTryMin, std::min(now() + timeout_, next_deadline()));
  if (!list_new(deadline)) return http.pause(std::min(now() + kWatchAgain, next_deadline()));
  answer_requests({});
  if (!http.is_streaming()) {
    if (rest_ > Duration::zero()) http.pause(now() + rest_);
    if (!open_stream(now() + timeout_)) return;
  }
  follow(std::min(heard_ + kSilence, next_deadline()));
}

void Watcher::take_requests() {
  base::MutexLock lock(mutex_);
  for (Request& request : arrived_) waiting_.push_back(std::move(request));
  arrived_.clear();
}

Instant Watcher::next_deadline() const {
  Instant next = Instant::max();
  for (const Request& request : waiting_) next = std::min(next, *request.first_tried + timeout_);
  return next;
}

void Watcher::settle_covers() {
  std::erase_if(waiting_, [&](const Request& request) { return !links_.desk.is_wanted(request.ticket); });
  std::set<std::string> wanted;
  for (std::string& prefix : links_.desk.watched()) wanted.insert(space_ + prefix);
  for (const Request& request : waiting_) wanted.insert(space_ + request.key);
  std::vector<Cover> next;
  for (const std::string& prefix : wanted) {  // In order: a shorter one comes before those it covers.
    if (!next.empty() && covers(next.back().prefix, prefix)) continue;
    Cover cover{.prefix = prefix};
    for (const Cover& old : covers_) {
      if (covers(old.prefix, prefix)) cover.revision = old.revision;
    }
    next.push_back(std::move(cover));
  }
  const auto same = [](const Cover& a, const Cover& b) { return a.prefix == b.prefix; };
  if (std::equal(next.begin(), next.end(), covers_.begin(), covers_.end(), same)) return;
  if (next.size() > kCoversMax) {
    return answer_requests(
        Status(Code::kBusy, base::format("etcd: {} different prefixes are watched already", kCoversMax))
            .with_advice("watch one prefix that they share"));
  }
  covers_ = std::move(next);
  operations_.http().close_stream();
  base::MutexLock lock(links_.store.mutex);
  Store& store = links_.store.store;
  for (const DirectoryEntry& entry : store.list("")) {
    const std::string key = space_ + entry.key;
    if (std::none_of(covers_.begin(), covers_.end(), [&](const Cover& c) { return covers(c.prefix, key); })) {
      store.erase(entry.key);
    }
  }
}

bool Watcher::check_history(const Header& header) {
  const bool is_same = seen_.cluster_id == 0 || (header.cluster_id == seen_.cluster_id && header.term >= seen_.term &&
                                                 header.revision >= seen_.revision);
  if (!is_same) links_.warn("store", "etcd is another store than before; what is watched was listed again");
  seen_ = header;
  return is_same;
}

bool Watcher::list_new(Instant deadline) {
  if (must_check_) {
    const Outcome<RangeAnswer> looked = operations_.look(covers_.front().prefix, deadline);
    if (!looked.ok()) {
      answer_requests(looked.reply.status);
      return false;
    }
    if (!check_history(looked.answer.header) || looked.reply.was_away) {
      for (Cover& cover : covers_) cover.revision = 0;
    }
    must_check_ = false;
  }
  for (Cover& cover : covers_) {
    if (cover.revision != 0) continue;
    operations_.http().close_stream();
    const Outcome<RangeAnswer> listed = operations_.list(cover.prefix, deadline);
    if (!listed.ok()) {
      if (listed.reply.status.code() == Code::kDisconnected || listed.reply.status.code() == Code::kTimedOut) {
        must_check_ = seen_.cluster_id != 0;
      }
      answer_requests(listed.reply.status);
      return false;
    }
    heard_ = now();
    if (!check_history(listed.answer.header)) {
      for (Cover& other : covers_) other.revision = 0;
      return false;
    }
    adopt(cover, listed.answer.entries, listed.answer.header.revision);
  }
  return true;
}

bool Watcher::name_of(const KeyValue& entry, std::string_view* name) const {
  *name = std::string_view(entry.key).substr(std::min(space_.size(), entry.key.size()));
  if (!name->empty() && name->size() <= kDirectoryKeyMax && entry.value.size() <= kDirectoryValueMax) return true;
  links_.warn(std::string(name->substr(0, 64)), "a key or value beyond the bounds of a directory is passed over");
  return false;
}

void Watcher::put(const KeyValue& entry) {
  std::string_view name;
  if (!name_of(entry, &name)) return;
  base::MutexLock lock(links_.store.mutex);
  Store& store = links_.store.store;
  const auto version = static_cast<std::uint64_t>(entry.revision);
  const Store::Record* old = store.find(name);
  if (old != nullptr && old->version == version && old->value == entry.value) return;
  if (!store.put(name, entry.value, version, Instant::max())) {
    links_.warn("store", "there are too many keys; some are not told of");
  }
}

void Watcher::adopt(Cover& cover, const std::vector<KeyValue>& entries, std::int64_t revision) {
  std::set<std::string_view> there;
  for (const KeyValue& entry : entries) there.insert(std::string_view(entry.key).substr(space_.size()));
  {
    base::MutexLock lock(links_.store.mutex);
    Store& store = links_.store.store;
    for (const DirectoryEntry& entry : store.list(std::string_view(cover.prefix).substr(space_.size()))) {
      if (!there.contains(entry.key)) store.erase(entry.key);
    }
  }
  for (const KeyValue& entry : entries) put(entry);
  cover.revision = revision;
  links_.ring();
}

void Watcher::answer_requests(const Status& failure) {
  if (waiting_.empty()) return;
  const Instant at = now();
  const bool is_final = !failure.ok() && failure.code() != Code::kDisconnected && failure.code() != Code::kTimedOut;
  std::erase_if(waiting_, [&](const Request& request) {
    if (failure.ok()) {
      links_.desk.answer_listing(request, links_.store);
      return true;
    }
    if (!is_final && at < *request.first_tried + timeout_) return false;
    links_.desk.answer(request, failure);
    return true;
  });
  links_.ring();
}

bool Watcher::open_stream(Instant deadline) {
  std::string body;
  for (std::size_t i = 0; i < covers_.size(); ++i) {
    body += encode_watch(covers_[i].prefix, covers_[i].revision + 1, static_cast<std::int64_t>(i + 1));
  }
  operations_.http().close_stream();
  member_ = operations_.cluster().member();
  const Status opened = operations_.cluster().open_stream(operations_.http(), "/v3/watch", body, deadline);
  if (!opened.ok()) lost_stream(std::string(opened.message()));
  heard_ = now();
  return opened.ok();
}

void Watcher::follow(Instant until) {
  HttpClient& http = operations_.http();
  const std::optional<std::string> line = http.next_line(until);
  if (!line) {
    if (http.is_stopped()) return;
    if (!http.is_streaming()) return lost_stream(std::string(http.stream_error().message()));
    if (now() < heard_ + kSilence) return;
    // It may be silent because nothing changes, or because its member is cut off.
    const Outcome<RangeAnswer> looked = operations_.look(covers_.front().prefix, now() + timeout_);
    heard_ = now();
    const bool is_same_member = operations_.cluster().member() == member_;
    if (!looked.ok() || looked.reply.was_away || !is_same_member || !check_history(looked.answer.header)) {
      lost_stream("its member says nothing");
    }
    return;
  }
  heard_ = now();
  const Result<WatchAnswer> answer = decode_watch(*line);
  if (!answer) {
    links_.warn("watch", std::string(answer.status().message()));
    return lost_stream(std::string(answer.status().message()));
  }
  apply(*answer);
}

void Watcher::apply(const WatchAnswer& answer) {
  if (answer.fault != Fault::kNone) {
    if (answer.fault == Fault::kToken || answer.fault == Fault::kDenied) operations_.cluster().forget_token();
    return lost_stream(answer.reason);
  }
  if (answer.watch_id < 1 || answer.watch_id > static_cast<std::int64_t>(covers_.size())) {
    if (answer.is_cancelled) return lost_stream(answer.reason);
    return;
  }
  Cover& cover = covers_[static_cast<std::size_t>(answer.watch_id - 1)];
  if (answer.is_cancelled) {
    if (answer.compacted != 0) cover.revision = 0;
    return lost_stream(answer.compacted != 0 ? "its revision was compacted" : answer.reason);
  }
  rest_ = Duration::zero();
  for (const WatchEvent& event : answer.events) {
    if (!event.is_erased) {
      put(event.entry);
      continue;
    }
    std::string_view name;
    if (!name_of(event.entry, &name)) continue;
    base::MutexLock lock(links_.store.mutex);
    links_.store.store.erase(name);
  }
  if (answer.events.empty() || answer.is_fragment) return;
  cover.revision = std::max(cover.revision, answer.events.back().entry.revision);
  seen_.revision = std::max(seen_.revision, cover.revision);
  seen_.term = std::max(seen_.term, answer.header.term);
  links_.ring();
}

void Watcher::lost_stream(const std::string& why) {
  operations_.http().close_stream();
  if (operations_.http().is_stopped()) return;
  links_.warn("watch", base::format("the watch broke and is begun again: {}", why));
  operations_.cluster().pass_over(member_);
  rest_ = std::clamp(rest_ * 2, kRestMin, kRestMax);
  must_check_ = true;
}

}  // namespace hawser::directory::etcd
