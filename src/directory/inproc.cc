// The directory of one process: agents that name the same store find each other.

#include <map>

#include "base/format.h"
#include "directory/desk.h"

namespace hawser::directory {
namespace {

/// A handle: its own desk before the shared store, so one agent's full queue is not another's.
class InprocDirectory final : public Directory {
 public:
  explicit InprocDirectory(std::shared_ptr<SharedStore> store) : store_(std::move(store)) {}

  std::string_view kind() const override { return "inproc"; }
  Ticket put(std::string_view key, std::string_view value, const PutOptions& options) override {
    return desk_.submit(
        {.kind = Request::Kind::kPut, .key = std::string(key), .value = std::string(value), .options = options});
  }
  Ticket erase(std::string_view key, const EraseOptions& options) override {
    return desk_.submit({.kind = Request::Kind::kErase, .key = std::string(key), .erasing = options});
  }
  Ticket get(std::string_view key) override { return submit(Request::Kind::kGet, key); }
  Ticket list(std::string_view prefix) override { return submit(Request::Kind::kList, prefix); }
  Ticket watch(std::string_view prefix) override { return submit(Request::Kind::kWatch, prefix); }
  void cancel(Ticket ticket) override { desk_.cancel(ticket); }
  std::optional<DirectoryEvent> poll(Ticket ticket) override { return desk_.poll(ticket, *store_); }
  std::vector<std::string> warnings() const override { return {}; }

  bool run_job(Instant now, Instant) override {
    const bool expired = expire(now);
    const std::optional<Request> request = desk_.take();
    if (!request) return expired;
    if (request->lists()) {
      desk_.answer_listing(*request, *store_);
      return true;
    }
    std::vector<DirectoryEntry> entries;
    Status status = run(*request, now, entries);
    desk_.answer(*request, std::move(status), std::move(entries));
    return true;
  }

 private:
  Ticket submit(Request::Kind kind, std::string_view key) {
    return desk_.submit({.kind = kind, .key = std::string(key)});
  }
  bool expire(Instant now) {
    base::MutexLock lock(store_->mutex);
    return store_->store.expire(now);
  }
  Status run(const Request& request, Instant now, std::vector<DirectoryEntry>& entries) {
    base::MutexLock lock(store_->mutex);
    Store& store = store_->store;
    const Store::Record* found = store.find(request.key);
    if (request.kind == Request::Kind::kErase) {
      if (found == nullptr) return {};
      Status refused = check_erase(request.key, request.erasing, found->version);
      if (!refused.ok()) return refused;
      store.erase(request.key);
      entries.push_back({request.key, {}, 0});
      return {};
    }
    if (request.kind == Request::Kind::kGet) {
      if (found == nullptr) return Status(Code::kNotFound, base::format("directory: no key \"{}\"", request.key));
      entries.push_back({request.key, found->value, found->version});
      return {};
    }
    Status refused = check_put(request.key, request.options, found == nullptr ? 0 : found->version);
    if (!refused.ok()) return refused;
    const Duration lease = request.options.lease;
    const Instant expiry = lease > Duration::zero() ? now + lease : Instant::max();
    // The revision, as etcd's: never used twice, so a key that was erased and made again has a new version.
    const std::uint64_t version = store.revision() + 1;
    if (!store.put(request.key, request.value, version, expiry)) {
      return Status(Code::kBusy, base::format("directory: {} keys are there already", kKeysMax))
          .with_advice("give keys a lease, or erase what is not needed");
    }
    entries.push_back({request.key, {}, version});
    return {};
  }

  const std::shared_ptr<SharedStore> store_;
  Desk desk_;
};

/// The stores of this process by name. The only mutable global of the library: finding each other without having been
/// handed anything is what this directory is for. It keeps no store alive.
class Registry {
 public:
  static Registry& of_process() {
    static Registry& registry = *new Registry;  // Never destroyed: used by destructors of statics, too.
    return registry;
  }
  std::shared_ptr<SharedStore> find(std::string_view name) {
    base::MutexLock lock(mutex_);
    std::erase_if(stores_, [](const auto& item) { return item.second.expired(); });
    std::weak_ptr<SharedStore>& known = stores_[std::string(name)];
    std::shared_ptr<SharedStore> store = known.lock();
    if (!store) known = store = std::make_shared<SharedStore>();
    return store;
  }

 private:
  base::Mutex mutex_;
  std::map<std::string, std::weak_ptr<SharedStore>, std::less<>> stores_ HAWSER_GUARDED_BY(mutex_);
};

}  // namespace
}  // namespace hawser::directory

HAWSER_NAMESPACE_BEGIN

std::shared_ptr<Directory> inproc_directory(std::string_view name) {
  return std::make_shared<directory::InprocDirectory>(directory::Registry::of_process().find(name));
}

HAWSER_NAMESPACE_END
