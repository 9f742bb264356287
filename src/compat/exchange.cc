#include "compat/exchange.h"

#include <algorithm>

#include "base/abandon.h"
#include "base/bytes.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"
#include "compat/blob.h"
#include "compat/clock.h"
#include "compat/refusal.h"
#include "wire/card.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {
namespace {

constexpr std::size_t kJobsMax = 256;
constexpr std::size_t kJobBytesMax = std::size_t{128} << 20;
constexpr std::size_t kFollowedMax = 65536;
constexpr Duration kFetchTime = std::chrono::seconds(5);  ///< As long as NIXL waits for a key.
/// How long a key may be away: an etcd that came back empty gets it again.
constexpr Duration kGraceTime = std::chrono::seconds(1);
constexpr Duration kLookEvery = std::chrono::milliseconds(20);
constexpr std::string_view kLabel = "metadata";  ///< NIXL's.

std::string label_of(const OptArgs* opt) {
  return opt == nullptr || opt->metadata_label.empty() ? std::string(kLabel) : opt->metadata_label;
}

/// An agent may hand over its own metadata only. kInvalid, naming both agents, where `metadata` is another one's.
Status check_agent(std::string_view metadata, std::string_view name) {
  HAWSER_TRY_ASSIGN(const Blob blob, decode_blob(metadata));
  if (blob.agent == name) return {};
  return Status(Code::kInvalid,
                base::format("it is metadata of agent '{}', not of '{}'", base::shown(blob.agent), base::shown(name)));
}

}  // namespace

/// Names may hold '/': keys of "a/b" lie among those of "a", and only what they hold tells whose they are. What a later
/// process of the name put there is not this one's to take away.
bool Exchange::is_ours(std::string_view value) const {
  const Result<Blob> blob = decode_blob(value);
  if (!blob) return true;  // No agent can use it.
  if (blob->agent != setup_.name) return false;
  const Result<wire::CardSummary> card = wire::check_card(base::as_bytes(blob->card));
  const std::optional<Self> self = links_.self();
  return !card || !self || card->incarnation == self->incarnation || card->born < self->born;
}

Result<std::unique_ptr<Exchange>> Exchange::open(Setup setup, Links links) {
  std::unique_ptr<Exchange> exchange(new Exchange(std::move(setup), std::move(links)));
  if (exchange->setup_.listen) {
    const char* const host = exchange->may_leave_host() ? "0.0.0.0" : "127.0.0.1";
    Exchange* const self = exchange.get();
    HAWSER_TRY_ASSIGN(
        exchange->listener_,
        Listener::open(
            host, *exchange->setup_.listen, exchange->trust(), [self](const Frame& f) { return self->answer(f); },
            [self](const std::string& address, const Status& why) { self->on_refused(address, why); }));
  }
  HAWSER_TRY_ASSIGN(exchange->asks_,
                    Asks::open(exchange->trust(), [self = exchange.get()](const AskJob& job, Result<Frame> answer) {
                      self->on_answer(job, std::move(answer));
                    }));
  const Setup& its = exchange->setup_;
  if (its.identity != nullptr && its.revocations != nullptr) {
    exchange->revocation_watch_.emplace(
        agent::RevocationWatch::Uses{.directory = its.revocations, .authenticator = its.identity, .agent = its.name});
    exchange->revocation_watch_->open();
  }
  exchange->thread_ = std::thread([self = exchange.get()] { self->run(); });
  return exchange;
}

Exchange::~Exchange() {
  listener_.reset();
  asks_.reset();
  if (!thread_.joinable()) return;
  {
    base::MutexLock lock(mutex_);
    stop_.store(true);
    wake_.notify_all();
  }
  thread_.join();
  if (revocation_watch_) revocation_watch_->close();
}

void Exchange::disown() {
  if (listener_) listener_->disown();
  if (asks_) asks_->disown();
  base::abandon(thread_);
}

Status Exchange::need_directory(std::string_view call) const {
  if (setup_.directory) return {};
  return refusal(NixlCode::kInvalidParam, call, "there is neither an address in the options nor an etcd")
      .with_advice("give ip_address and port, or set NIXL_ETCD_ENDPOINTS before the agent is made");
}

Status Exchange::by_address(std::string_view call, std::string_view name, Frame frame, const OptArgs& opt) {
  Result<base::SocketAddress> address = base::numeric_address({.host = *opt.ip_address, .port = opt.port});
  if (!address) {
    return refusal(NixlCode::kInvalidParam, call, base::format("'{}' is no IP address", *opt.ip_address));
  }
  if (!may_leave_host() && !base::is_loopback(*address)) {
    return refusal(NixlCode::kNotAllowed, call,
                   base::format("{} is beyond this host, and metadata holds keys", base::to_string(*address)))
        .with_advice(
            "give both agents an identity (HAWSER_IDENTITY, docs/security.md), or set HAWSER_SECURITY=none, which "
            "gives "
            "it to everybody who asks");
  }
  {
    base::MutexLock lock(mutex_);
    if (jobs_.size() >= kJobsMax) return too_much(call);
  }
  const Status added = asks_->add(
      {.call = std::string(call), .name = std::string(name), .frame = std::move(frame), .address = *address});
  return added.ok() ? added : refusal(NixlCode::kBackend, call, "too much is under way", added);
}

/// Whoever listens there writes it into our log.
constexpr std::size_t kRefusalMax = 1024;

/// On the thread of `asks_`, under its lock. What came is loaded, or told, on ours.
void Exchange::on_answer(const AskJob& job, Result<Frame> answer) {
  Job next{.kind = Job::Kind::kAnswer, .call = job.call, .name = job.name, .address = job.address};
  next.failure = answer.status();
  if (answer && answer->kind == Frame::Kind::kRefused) {
    next.failure = Status(Code::kFailed, "refused there: " + base::shown(answer->body, kRefusalMax));
  } else if (answer && answer->kind == Frame::Kind::kLoad) {
    next.body = std::move(answer->body);
  }
  base::MutexLock lock(mutex_);
  if (job_bytes_ + next.body.size() > kJobBytesMax) {
    next.failure = Status(Code::kBusy, base::format("{} bytes of metadata wait to be loaded already", job_bytes_));
    next.body = {};
  }
  job_bytes_ += next.body.size();
  jobs_.push_back(std::move(next));  // As many as `asks_` has at once may come beside kJobsMax.
  wake_.notify_all();
}

Status Exchange::too_much(std::string_view call) const {
  return refusal(NixlCode::kBackend, call,
                 base::format("{} exchanges of metadata with {} bytes wait already", jobs_.size(), job_bytes_))
      .with_advice("try again in a moment");
}

Status Exchange::hand_in(Job job) {
  base::MutexLock lock(mutex_);
  const std::size_t bytes = job.body.size();
  if (jobs_.size() >= kJobsMax || job_bytes_ + bytes > kJobBytesMax) return too_much(job.call);
  job_bytes_ += bytes;
  jobs_.push_back(std::move(job));
  wake_.notify_all();
  return {};
}

Status Exchange::send(std::string_view call, std::string blob, bool is_partial, const OptArgs* opt) {
  if (blob.size() > kFrameBodyMax) {
    return refusal(NixlCode::kInvalidParam, call, base::format("metadata of {} bytes", blob.size()));
  }
  if (opt != nullptr && opt->ip_address) {
    return by_address(call, {}, {.kind = Frame::Kind::kLoad, .name = setup_.name, .body = std::move(blob)}, *opt);
  }
  HAWSER_TRY(need_directory(call));
  if (is_partial && (opt == nullptr || opt->metadata_label.empty())) {
    return refusal(NixlCode::kInvalidParam, call, "partial metadata needs a label in etcd");
  }
  return hand_in({.kind = Job::Kind::kPut,
                  .call = std::string(call),
                  .name = setup_.name,
                  .key = setup_.name + "/" + label_of(opt),
                  .body = std::move(blob)});
}

Status Exchange::fetch(std::string_view call, std::string_view name, const OptArgs* opt) {
  if (name.empty() || name.size() > kFrameNameMax) {
    return refusal(NixlCode::kInvalidParam, call, base::format("a name of {} bytes", name.size()));
  }
  if (opt != nullptr && opt->ip_address) {
    return by_address(call, name, {.kind = Frame::Kind::kAsk, .name = std::string(name)}, *opt);
  }
  HAWSER_TRY(need_directory(call));
  return hand_in({.kind = Job::Kind::kFetch,
                  .call = std::string(call),
                  .name = std::string(name),
                  .key = std::string(name) + "/" + label_of(opt)});
}

Status Exchange::invalidate(std::string_view call, const OptArgs* opt) {
  if (opt != nullptr && opt->ip_address) {
    Frame frame{.kind = Frame::Kind::kInvalidate, .name = setup_.name};
    if (const std::optional<Self> self = links_.self()) frame.body = base::to_hex(self->incarnation);
    return by_address(call, {}, std::move(frame), *opt);
  }
  HAWSER_TRY(need_directory(call));
  return hand_in({.kind = Job::Kind::kErase, .call = std::string(call), .name = setup_.name});
}

void Exchange::forget(std::string_view name) {
  asks_->forget(name);  // First: what has answered already is among the jobs.
  base::MutexLock lock(mutex_);
  std::erase_if(followed_, [&](const auto& one) { return one.second.name == name; });
  std::erase_if(jobs_, [&](const Job& job) HAWSER_REQUIRES(mutex_) {
    if (!job.fetches(name)) return false;
    job_bytes_ -= job.body.size();
    return true;
  });
  if (handled_ == name) handled_.clear();
}

/// One line of a kind in a second: a peer or a client may go on and on.
void Exchange::warn(const std::string& text) {
  const std::optional<std::uint64_t> held_back = gate_.pass(text, now());
  if (held_back) HAWSER_LOG(setup_.log, kWarn, "{}{}", text, base::LineGate::more(*held_back));
}

/// On the listener's thread. Strangers may go on and on, so one line stands for all of a second.
void Exchange::on_refused(const std::string& address, const Status& why) {
  const std::optional<std::uint64_t> held_back = gate_.pass("metadata by address: refused", now());
  if (!held_back) return;
  HAWSER_LOG(setup_.log, kWarn, "metadata by address: {} was refused: {}{}", address, why.to_string(),
             base::LineGate::more(*held_back));
}

Frame Exchange::answer(const Frame& frame) {
  const auto refused = [](const Status& status) {
    return Frame{.kind = Frame::Kind::kRefused, .body = status.to_string()};
  };
  switch (frame.kind) {
    case Frame::Kind::kLoad: {
      if (const Status bad = check_agent(frame.body, frame.name); !bad.ok()) return refused(bad);
      const Result<std::string> name = links_.load(frame.body, {}, [] { return true; });  // It was sent, not fetched.
      return name ? Frame{.kind = Frame::Kind::kDone} : refused(name.status());
    }
    case Frame::Kind::kAsk: {
      if (frame.name != setup_.name) {
        return refused(Status(Code::kNotFound, base::format("here listens agent '{}'", setup_.name)));
      }
      Result<std::string> blob = links_.metadata();
      if (!blob || blob->size() > kFrameBodyMax) return refused(blob.status());
      return {.kind = Frame::Kind::kLoad, .name = setup_.name, .body = *std::move(blob)};
    }
    case Frame::Kind::kInvalidate: {
      const Status status = links_.invalidate(frame.name, base::id128_from_hex(frame.body));
      return status.ok() ? Frame{.kind = Frame::Kind::kDone} : refused(status);
    }
    default:
      return refused(Status(Code::kInvalid, "it is no question"));
  }
}

/// What was invalidated in the directory is listed and then erased: what is put after it waits for that, and what
/// follows it there, too. What came by address waits for nothing.
std::optional<Exchange::Job> Exchange::next_job() {
  const bool is_erasing = std::any_of(asked_.begin(), asked_.end(),
                                      [](const auto& one) { return one.second.starts_with("invalidate_local_md"); });
  bool is_held = false;
  for (auto at = jobs_.begin(); at != jobs_.end(); ++at) {
    is_held = is_held || (is_erasing && at->kind == Job::Kind::kPut);
    if (is_held && at->kind != Job::Kind::kAnswer) continue;
    std::optional<Job> job = std::move(*at);
    jobs_.erase(at);
    job_bytes_ -= job->body.size();
    if (job->fetches(job->name)) handled_ = job->name;
    return job;
  }
  return std::nullopt;
}

void Exchange::run() {
  for (;;) {
    std::optional<Job> job;
    {
      base::MutexLock lock(mutex_);
      job = next_job();
      const bool is_busy = !asked_.empty() || !followed_.empty();
      if (!job && !stop_.load()) {
        (void)wake_.wait_until(mutex_, next_look(is_busy));
        job = next_job();
      }
      if (stop_.load()) return;
    }
    if (job) run_job(*job);
    if (setup_.directory) look(now());
    if (!revocation_watch_) continue;
    if (now() >= revocation_watch_->next_deadline()) revocation_watch_->turn(now());
    revocation_watch_->run_jobs(now());
  }
}

Instant Exchange::next_look(bool is_busy) const {
  const Instant next = is_busy ? now() + kLookEvery : Instant::max();
  return revocation_watch_ ? std::min(next, revocation_watch_->next_deadline()) : next;
}

void Exchange::run_job(Job& job) {
  switch (job.kind) {
    case Job::Kind::kAnswer:
      return run_answer(job);
    case Job::Kind::kPut:
      asked_.emplace(setup_.directory->put(job.key, job.body, {.tied = true}), job.call);
      return;
    case Job::Kind::kErase:
      asked_.emplace(setup_.directory->list(setup_.name + "/"), job.call);
      return;
    case Job::Kind::kFetch:
      if (!follow(job)) return;
      if (watch_) setup_.directory->cancel(*watch_);  // A new one begins with all that is there.
      watch_ = setup_.directory->watch("");
      return;
  }
}

bool Exchange::follow(const Job& job) {
  {
    base::MutexLock lock(mutex_);
    if (handled_ != job.name) return false;  // Forgotten already.
    if (followed_.size() < kFollowedMax || followed_.contains(job.key)) {
      std::string label = job.key.substr(job.name.size() + 1);
      if (label == kLabel) label.clear();
      followed_[job.key] = {
          .name = job.name, .label = std::move(label), .wanted_until = now() + kFetchTime, .gone_since = {}};
      return true;
    }
  }
  warn(base::format("{}: {} keys are followed already, so {} is not", job.call, kFollowedMax, job.key));
  return false;
}

void Exchange::run_answer(const Job& job) {
  Status failure = job.failure;
  const bool has_metadata = failure.ok() && !job.name.empty() && !job.body.empty();
  if (has_metadata) failure = check_agent(job.body, job.name);
  if (has_metadata && failure.ok()) failure = load(job.body, {}).status();
  if (failure.ok() || failure.code() == Code::kCancelled) return;
  warn(base::format("{} ({}): {}", job.call, base::to_string(job.address), failure.to_string()));
}

void Exchange::look(Instant at) {
  for (auto next = asked_.begin(); next != asked_.end();) {
    const auto one = next++;
    const std::optional<DirectoryEvent> event = setup_.directory->poll(one->first);
    if (!event) continue;
    const std::string call = one->second;
    asked_.erase(one);
    if (!event->status.ok()) {
      warn(base::format("{}: {}", call, event->status.to_string()));
      continue;
    }
    if (call != "invalidate_local_md") continue;
    // What was listed is taken away; what its erasing answers is told under another name.
    for (const DirectoryEntry& entry : event->entries) {
      if (!entry.value.empty() && is_ours(entry.value))
        asked_.emplace(setup_.directory->erase(entry.key, {.if_version = entry.version}), "invalidate_local_md: erase");
    }
  }
  while (watch_) {
    const std::optional<DirectoryEvent> event = setup_.directory->poll(*watch_);
    if (!event) break;
    if (!event->status.ok()) {  // It did not begin: etcd is away.
      warn(base::format("fetch_remote_md: {}", event->status.to_string()));
      setup_.directory->cancel(*watch_);
      watch_ = setup_.directory->watch("");
      break;
    }
    apply(*event, at);
  }
  expire(at);
}

void Exchange::apply(const DirectoryEvent& event, Instant at) {
  const bool is_whole = event.kind == DirectoryEvent::Kind::kAnswer;
  const bool is_erased = event.kind == DirectoryEvent::Kind::kErased;
  if (is_whole || is_erased) {
    base::MutexLock lock(mutex_);
    for (auto& [key, followed] : followed_) {
      const bool is_named = std::any_of(event.entries.begin(), event.entries.end(),
                                        [&key = key](const DirectoryEntry& entry) { return entry.key == key; });
      const bool is_gone = is_whole ? !is_named : is_named;
      if (is_gone && !followed.wanted_until && !followed.gone_since) followed.gone_since = at;
    }
  }
  if (is_erased) return;
  for (const DirectoryEntry& entry : event.entries) take(entry);
}

void Exchange::take(const DirectoryEntry& entry) {
  std::string wanted, label;
  {
    base::MutexLock lock(mutex_);
    const auto found = followed_.find(entry.key);
    if (found == followed_.end()) return;
    Followed& followed = found->second;
    followed.gone_since.reset();
    if (!followed.wanted_until && followed.version == entry.version) return;
    followed.wanted_until.reset();
    followed.version = entry.version;
    handled_ = wanted = followed.name;
    label = followed.label;
  }
  const Result<std::string> name = load(entry.value, label);
  if (!name && name.status().code() != Code::kCancelled) {
    warn(base::format("fetch_remote_md: {} in etcd: {}", entry.key, name.status().to_string()));
  } else if (name && *name != wanted) {
    warn(base::format("fetch_remote_md: {} in etcd holds metadata of agent '{}'", entry.key, *name));
  }
}

Result<std::string> Exchange::load(std::string_view blob, std::string_view label) {
  return links_.load(blob, label, [this] { return is_wanted(); });
}

bool Exchange::is_wanted() {
  base::MutexLock lock(mutex_);
  return !handled_.empty();
}

void Exchange::expire(Instant at) {
  std::vector<std::string> gone, absent;
  {
    base::MutexLock lock(mutex_);
    for (auto next = followed_.begin(); next != followed_.end();) {
      const auto one = next++;
      Followed& followed = one->second;
      if (followed.wanted_until && at >= *followed.wanted_until) {
        absent.push_back(one->first);
        followed_.erase(one);
      } else if (followed.gone_since && at >= *followed.gone_since + kGraceTime) {
        // Followed on: a successor's is loaded when it comes.
        followed.gone_since.reset();
        followed.version = 0;
        gone.push_back(one->first);
      }
    }
  }
  for (const std::string& key : absent) {
    warn(base::format("fetch_remote_md: {} did not appear in etcd in time", key));
  }
  for (const std::string& key : gone) let_go(key);
}

/// Unless its user forgets that agent meanwhile, and may have loaded it anew by other means.
void Exchange::let_go(const std::string& key) {
  std::string name, label;
  {
    base::MutexLock lock(mutex_);
    const auto found = followed_.find(key);
    if (found == followed_.end()) return;
    handled_ = name = found->second.name;
    label = found->second.label;
  }
  (void)links_.drop(name, label, [this] { return is_wanted(); });
}

}  // namespace compat
HAWSER_NAMESPACE_END
