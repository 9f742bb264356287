// The directory in an etcd: a worker for requests and leases, a watcher for what changes.

#include <unistd.h>

#include <algorithm>
#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "base/abandon.h"
#include "base/events.h"
#include "base/format.h"
#include "base/mutex.h"
#include "base/try.h"
#include "directory/desk.h"
#include "directory/etcd/bell.h"
#include "directory/etcd/clock.h"
#include "directory/etcd/operations.h"
#include "directory/etcd/tied.h"
#include "directory/etcd/watcher.h"
#include "directory/news.h"

namespace hawser::directory::etcd {
namespace {

using Entries = std::vector<DirectoryEntry>;

/// `run_job` waits no longer for an answer.
constexpr Duration kJobMax = std::chrono::milliseconds(5);
constexpr Duration kFarewellMax = std::chrono::milliseconds(500);
constexpr std::size_t kWarningsMax = 64;

class EtcdDirectory final : public Directory, public DirectoryRinger {
 public:
  EtcdDirectory(EtcdOptions options, std::unique_ptr<Cluster> cluster, std::unique_ptr<HttpClient> for_worker,
                std::unique_ptr<HttpClient> for_watcher);
  ~EtcdDirectory() override;

  std::string_view kind() const override { return "etcd"; }
  Ticket put(std::string_view key, std::string_view value, const PutOptions& options) override {
    return submit(
        {.kind = Request::Kind::kPut, .key = std::string(key), .value = std::string(value), .options = options});
  }
  Ticket erase(std::string_view key, const EraseOptions& options) override {
    return submit({.kind = Request::Kind::kErase, .key = std::string(key), .erasing = options});
  }
  Ticket get(std::string_view key) override { return submit({.kind = Request::Kind::kGet, .key = std::string(key)}); }
  Ticket list(std::string_view prefix) override {
    return submit({.kind = Request::Kind::kList, .key = std::string(prefix)});
  }
  Ticket watch(std::string_view prefix) override {
    return submit({.kind = Request::Kind::kWatch, .key = std::string(prefix)});
  }
  void cancel(Ticket ticket) override {
    desk_.cancel(ticket);
    watcher_.look_again();
    ring();  // Nobody needs to wait for it any more.
  }
  std::optional<DirectoryEvent> poll(Ticket ticket) override {
    answered_.attend();
    return desk_.poll(ticket, store_);
  }
  std::vector<std::string> warnings() const override;
  bool runs_itself() const override { return true; }
  bool run_job(Instant at, Instant deadline) override;
  NewsFd listen() override;

 private:
  /// Something was answered or changed.
  void ring();
  Ticket submit(Request request);
  void warn(const std::string& about, std::string text);
  void work();
  void run(const Request& request);
  Status run_put(const Request& request, Instant deadline, Entries& entries);
  Status put_under(std::int64_t lease, const Request& request, Instant deadline, Entries& entries, Fault* fault);
  Status judge(const Request& request, std::int64_t lease, const Outcome<PutAnswer>& put, Entries& entries) const;
  Status run_erase(const Request& request, Instant deadline, Entries& entries);
  Status run_erase_if(const Request& request, Instant deadline, Entries& entries);
  Status run_get(const Request& request, Instant deadline, Entries& entries);
  Status run_list(const Request& request, Instant deadline, Entries& entries);

  const EtcdOptions options_;
  const pid_t opener_ = ::getpid();
  Desk desk_;
  SharedStore store_;
  Bell asked_;
  Bell answered_;  ///< Threads attend it from their first request or look on.

  const std::unique_ptr<Cluster> cluster_;
  const std::unique_ptr<HttpClient> worker_http_, watcher_http_;
  Operations operations_;          ///< The worker's.
  Operations watcher_operations_;  ///< The watcher's.
  TiedValues tied_;                ///< The worker's.
  Watcher watcher_;

  mutable base::Mutex warnings_mutex_;
  std::map<std::string, std::string> warnings_ HAWSER_GUARDED_BY(warnings_mutex_);  ///< By what they are about.

  base::Mutex listeners_mutex_;
  std::vector<std::weak_ptr<base::EventFd>> listeners_ HAWSER_GUARDED_BY(listeners_mutex_);

  std::thread worker_thread_, watcher_thread_;
};

EtcdDirectory::EtcdDirectory(EtcdOptions options, std::unique_ptr<Cluster> cluster,
                             std::unique_ptr<HttpClient> for_worker, std::unique_ptr<HttpClient> for_watcher)
    : options_(std::move(options)),
      cluster_(std::move(cluster)),
      worker_http_(std::move(for_worker)),
      watcher_http_(std::move(for_watcher)),
      operations_(*cluster_, *worker_http_),
      watcher_operations_(*cluster_, *watcher_http_),
      tied_(operations_, options_.lease,
            [this](const std::string& about, std::string text) { warn(about, std::move(text)); }),
      watcher_(watcher_operations_, options_.prefix, options_.timeout,
               {desk_, store_, [this] { ring(); },
                [this](const std::string& about, std::string text) { warn(about, std::move(text)); }}) {
  worker_thread_ = std::thread([this] { work(); });
  watcher_thread_ = std::thread([this] { watcher_.run(); });
}

EtcdDirectory::~EtcdDirectory() {
  if (::getpid() != opener_) {
    // A forked child has no such threads, and the connections are its parent's.
    base::abandon(worker_thread_);
    base::abandon(watcher_thread_);
    return;
  }
  worker_http_->stop();
  watcher_http_->stop();
  asked_.close();
  worker_thread_.join();
  watcher_thread_.join();
  worker_http_->restart();
  tied_.farewell(now() + kFarewellMax);
}

Ticket EtcdDirectory::submit(Request request) {
  request.first_tried = now();
  answered_.attend();
  const Ticket ticket = desk_.submit(std::move(request));
  asked_.ring();
  return ticket;
}

bool EtcdDirectory::run_job(Instant at, Instant deadline) {
  // The caller's clock may be another than ours: only how long it waits is taken from it.
  const Duration patience = std::clamp(deadline - at, Duration::zero(), kJobMax);
  return answered_.wait_for_news(now() + patience);
}

NewsFd EtcdDirectory::listen() {
  Result<base::EventFd> opened = base::EventFd::open();
  if (!opened) return {};  // Out of descriptors: who waits looks from time to time.
  auto listener = std::make_shared<base::EventFd>(std::move(*opened));
  base::MutexLock lock(listeners_mutex_);
  std::erase_if(listeners_, [](const auto& each) { return each.expired(); });
  listeners_.push_back(listener);
  return {.fd = listener->fd(), .owner = std::move(listener)};
}

void EtcdDirectory::ring() {
  answered_.ring();
  base::MutexLock lock(listeners_mutex_);
  for (const auto& each : listeners_) {
    if (const auto listener = each.lock()) listener->signal();
  }
}

void EtcdDirectory::warn(const std::string& about, std::string text) {
  base::MutexLock lock(warnings_mutex_);
  if (warnings_.size() >= kWarningsMax && !warnings_.contains(about)) return;
  warnings_[about] = "etcd: " + std::move(text);
}

std::vector<std::string> EtcdDirectory::warnings() const {
  std::vector<std::string> texts;
  if (const std::string trouble = cluster_->trouble(); !trouble.empty()) texts.push_back("etcd: " + trouble);
  base::MutexLock lock(warnings_mutex_);
  for (const auto& [about, text] : warnings_) texts.push_back(text);
  return texts;
}

void EtcdDirectory::work() {
  while (!asked_.is_closed()) {
    const std::uint64_t asked = asked_.count();
    const Instant next = tied_.upkeep(now());
    if (std::optional<Request> request = desk_.take()) {
      if (request->kind == Request::Kind::kWatch) {
        watcher_.add(*std::move(request));
      } else {
        run(*request);
        ring();
      }
    } else {
      (void)asked_.wait(asked, next);
    }
  }
}

void EtcdDirectory::run(const Request& request) {
  // While etcd answers, each request has its whole time, however many wait before it; while it does not, all that wait
  // run out together.
  const Instant deadline = std::max(*request.first_tried, cluster_->last_answer()) + options_.timeout;
  Entries entries;
  Status status;
  switch (request.kind) {
    case Request::Kind::kPut:
      status = run_put(request, deadline, entries);
      break;
    case Request::Kind::kErase:
      status = run_erase(request, deadline, entries);
      break;
    case Request::Kind::kGet:
      status = run_get(request, deadline, entries);
      break;
    case Request::Kind::kList:
    case Request::Kind::kWatch:
      status = run_list(request, deadline, entries);
      break;
  }
  if (!status.ok()) entries.clear();
  desk_.answer(request, std::move(status), std::move(entries));
}

Status EtcdDirectory::run_put(const Request& request, Instant deadline, Entries& entries) {
  const PutOptions& options = request.options;
  Fault fault = Fault::kNone;
  if (options.tied) {
    HAWSER_TRY(tied_.check_room(request.key, request.key.size() + request.value.size()));
    const std::string key = options_.prefix + request.key;
    Result<std::int64_t> lease = tied_.lease(deadline);
    Status status = lease ? put_under(*lease, request, deadline, entries, &fault) : lease.status();
    if (fault == Fault::kNoSuchLease) {
      tied_.lost();
      lease = tied_.lease(deadline);
      status = lease ? put_under(*lease, request, deadline, entries, &fault) : lease.status();
    }
    const bool is_away = status.code() == Code::kDisconnected || status.code() == Code::kTimedOut;
    const bool is_plain = !options.create_only && !options.if_version;
    // Nobody may be there to ask again: it is put once etcd is back, unless the caller has given it up.
    if (status.ok() || (is_away && is_plain && desk_.is_wanted(request.ticket))) {
      tied_.hold(key, request.value, status.ok());
    } else if (is_away && options.create_only && desk_.is_wanted(request.ticket)) {
      tied_.hold_for_free_key(key, request.value);
    } else if (status.code() == Code::kBusy && !is_plain) {
      tied_.release(key);  // It is another's, or was erased: the caller decides anew.
    }
    return status;
  }
  std::int64_t lease = 0;
  if (options.lease > Duration::zero()) {
    const Outcome<LeaseAnswer> granted = operations_.grant(options.lease, deadline);
    if (!granted.ok()) return granted.reply.status;
    lease = granted.answer.id;
  }
  Status status = put_under(lease, request, deadline, entries, &fault);
  if (status.ok()) tied_.release(options_.prefix + request.key);
  return status;
}

Status EtcdDirectory::put_under(std::int64_t lease, const Request& request, Instant deadline, Entries& entries,
                                Fault* fault) {
  const std::string key = options_.prefix + request.key;
  PutRequest put{.key = key, .value = request.value, .lease = lease, .only_new = request.options.create_only};
  if (request.options.if_version) put.if_revision = static_cast<std::int64_t>(*request.options.if_version);
  const Outcome<PutAnswer> answer = operations_.put(put, deadline);
  *fault = answer.reply.fault;
  if (!answer.ok()) return answer.reply.status;
  return judge(request, lease, answer, entries);
}

Status EtcdDirectory::judge(const Request& request, std::int64_t lease, const Outcome<PutAnswer>& put,
                            Entries& entries) const {
  const auto good = [&](std::int64_t revision) {
    entries.push_back({request.key, {}, static_cast<std::uint64_t>(revision)});
    return Status();
  };
  if (put.answer.is_put) return good(put.answer.header.revision);
  const std::optional<KeyValue>& holder = put.answer.holder;
  if (put.reply.maybe_done && holder && holder->value == request.value) {
    // An earlier try of ours, whose answer was lost, may be what is in the way. Its lease tells.
    if (lease != 0 && holder->lease == lease) return good(holder->revision);
    if (lease == 0 && holder->lease == 0) {
      return Status(Code::kTimedOut,
                    base::format("etcd: \"{}\" holds this value in version {}; whether this put did it "
                                 "is unknown, as etcd was away meanwhile",
                                 request.key, holder->revision))
          .with_advice("get it and decide anew");
    }
  }
  const Status refused =
      check_put(request.key, request.options, holder ? static_cast<std::uint64_t>(holder->revision) : 0);
  return refused.ok() ? Status(Code::kCorrupt, "etcd: a put was refused without a cause") : refused;
}

Status EtcdDirectory::run_erase(const Request& request, Instant deadline, Entries& entries) {
  if (request.erasing.if_version) return run_erase_if(request, deadline, entries);
  const std::string key = options_.prefix + request.key;
  const Outcome<std::uint64_t> erased = operations_.erase(key, deadline);
  if (!erased.ok()) return erased.reply.status;
  tied_.release(key);
  if (erased.answer > 0 || erased.reply.maybe_done) entries.push_back({request.key, {}, 0});
  return {};
}

Status EtcdDirectory::run_erase_if(const Request& request, Instant deadline, Entries& entries) {
  const std::string key = options_.prefix + request.key;
  const auto revision = static_cast<std::int64_t>(*request.erasing.if_version);
  const Outcome<PutAnswer> erased = operations_.erase_if(key, revision, deadline);
  if (!erased.ok()) return erased.reply.status;
  // Erased, or another's by now: it is not put again when the lease is lost.
  tied_.release(key);
  const std::optional<KeyValue>& holder = erased.answer.holder;
  if (!erased.answer.is_put && holder) {
    return check_erase(request.key, request.erasing, static_cast<std::uint64_t>(holder->revision));
  }
  const bool was_there = erased.answer.is_put ? revision != 0 : erased.reply.maybe_done;
  if (was_there) entries.push_back({request.key, {}, 0});
  return {};
}

Status EtcdDirectory::run_get(const Request& request, Instant deadline, Entries& entries) {
  const Outcome<RangeAnswer> got = operations_.get(options_.prefix + request.key, deadline);
  if (!got.ok()) return got.reply.status;
  if (got.answer.entries.empty()) {
    return Status(Code::kNotFound, base::format("directory: no key \"{}{}\" in etcd", options_.prefix, request.key));
  }
  const KeyValue& entry = got.answer.entries.front();
  entries.push_back({request.key, entry.value, static_cast<std::uint64_t>(entry.revision)});
  return {};
}

Status EtcdDirectory::run_list(const Request& request, Instant deadline, Entries& entries) {
  Outcome<RangeAnswer> listed = operations_.list(options_.prefix + request.key, deadline);
  if (!listed.ok()) return listed.reply.status;
  for (KeyValue& entry : listed.answer.entries) {
    std::string name = entry.key.substr(options_.prefix.size());
    if (name.empty() || name.size() > kDirectoryKeyMax || entry.value.size() > kDirectoryValueMax) {
      warn(name.substr(0, 64), "a key or value beyond the bounds of a directory is passed over");
      continue;
    }
    entries.push_back({std::move(name), std::move(entry.value), static_cast<std::uint64_t>(entry.revision)});
  }
  return {};
}

}  // namespace
}  // namespace hawser::directory::etcd

HAWSER_NAMESPACE_BEGIN

Result<std::shared_ptr<Directory>> etcd(EtcdOptions options) {
  namespace parts = directory::etcd;
  HAWSER_TRY_ASSIGN(std::unique_ptr<parts::Cluster> cluster, parts::Cluster::open(options));
  HAWSER_TRY_ASSIGN(auto for_worker, parts::HttpClient::open(cluster->tls()));
  HAWSER_TRY_ASSIGN(auto for_watcher, parts::HttpClient::open(cluster->tls()));
  return std::shared_ptr<Directory>(std::make_shared<parts::EtcdDirectory>(
      std::move(options), std::move(cluster), std::move(for_worker), std::move(for_watcher)));
}

HAWSER_NAMESPACE_END
