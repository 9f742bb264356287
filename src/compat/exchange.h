#pragma once

// Exchange: metadata that travels by itself, through an etcd (NIXL_ETCD_ENDPOINTS) or by address. Calls hand a job in
// and return; what fails later is logged, as it is in NIXL, and check_remote_metadata tells.
//
// In etcd an agent's metadata lies under <namespace>/<agent>/<label>, tied to the agent's life. Whoever fetched it
// follows the key: what is put there later is loaded, and when it stays away, what came by that label goes; the agent
// with its last label, or with the main one.
//
// By address many exchanges are under way at once (`Asks`), so a peer that says nothing delays no other one.
//
// Thread rule: thread-safe; jobs run on a thread of its own, which calls `Links`, as the listener's does. Lifetime:
// these threads end with it.

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <hawser/compat/agent.h>
#include <hawser/directory.h>

#include "agent/inner_identity.h"
#include "base/id128.h"
#include "base/line_gate.h"
#include "base/log.h"
#include "base/mutex.h"
#include "compat/asks.h"
#include "compat/listener.h"

HAWSER_NAMESPACE_BEGIN
namespace compat {

class Exchange {
 public:
  /// Which of the incarnations of one name this is.
  struct Self {
    base::Id128 incarnation;
    std::uint64_t born = 0;  ///< Orders them (docs/wire.md).
  };
  struct Links {
    /// Loads nothing (kCancelled) when `is_wanted` says no, which is asked while nobody can load or invalidate. The
    /// label is empty for the main key's, and for what comes by address.
    std::function<Result<std::string>(std::string_view blob, std::string_view label,
                                      const std::function<bool()>& is_wanted)>
        load;
    /// If no incarnation is named, whichever is known. What is known of another one stays.
    std::function<Status(std::string_view name, const std::optional<base::Id128>& incarnation)> invalidate;
    /// What came by that label. `is_wanted` as for `load`.
    std::function<Status(std::string_view name, std::string_view label, const std::function<bool()>& is_wanted)> drop;
    std::function<Result<std::string>()> metadata;
    /// Of this process's agent; nothing before it has a backend.
    std::function<std::optional<Self>()> self;
  };
  struct Setup {
    std::string name;
    std::shared_ptr<Directory> directory;                    ///< Null: only by address.
    std::optional<std::uint16_t> listen;                     ///< The port.
    bool everybody = false;                                  ///< Security `none`: metadata goes to everybody who asks.
    std::shared_ptr<IdentityDesk> desk;                      ///< The agent's identity; null: it has none.
    std::shared_ptr<identity::Authenticator> identity = {};  ///< What the desk goes by.
    /// The agent's own directory, where the identity's authority may tell of revoked certificates; null: there is none.
    std::shared_ptr<Directory> revocations = {};
    base::Logger log;
  };

  static Result<std::unique_ptr<Exchange>> open(Setup setup, Links links);
  ~Exchange();

  /// To the address in `opt`, or into etcd. Partial metadata in etcd needs a label.
  Status send(std::string_view call, std::string blob, bool is_partial, const OptArgs* opt);
  Status fetch(std::string_view call, std::string_view name, const OptArgs* opt);
  Status invalidate(std::string_view call, const OptArgs* opt);
  /// The user forgets that agent: what was fetched before is not loaded any more, from this moment on, until it is
  /// fetched again.
  void forget(std::string_view name);
  /// 0 where nobody listens.
  std::uint16_t port() const { return listener_ ? listener_->port() : 0; }
  void disown();

 private:
  struct Job {
    enum class Kind : std::uint8_t { kPut, kErase, kFetch, kAnswer };
    Kind kind = Kind::kPut;
    std::string call;
    std::string name;                  ///< Of the agent that it is about.
    std::string key;                   ///< In the directory.
    std::string body;                  ///< What is put, or what came by address.
    Status failure;                    ///< Why nothing came.
    base::SocketAddress address = {};  ///< From which it came.
    bool fetches(std::string_view agent) const {
      return name == agent && (kind == Kind::kFetch || kind == Kind::kAnswer);
    }
  };
  /// A key that was fetched.
  struct Followed {
    std::string name;
    std::string label;                    ///< Empty: the main one.
    std::optional<Instant> wanted_until;  ///< Not yet loaded.
    std::optional<Instant> gone_since;
    std::uint64_t version = 0;
  };

  Exchange(Setup setup, Links links) : setup_(std::move(setup)), links_(std::move(links)) {}
  /// Asks at the address in `opt`. `name`: of the agent that is fetched, else empty.
  Status by_address(std::string_view call, std::string_view name, Frame frame, const OptArgs& opt);
  void on_answer(const AskJob& job, Result<Frame> answer);
  Status need_directory(std::string_view call) const;
  Trust trust() const { return {.everybody = setup_.everybody, .desk = setup_.desk.get()}; }
  bool may_leave_host() const { return setup_.everybody || setup_.desk != nullptr; }
  bool is_ours(std::string_view value) const;
  Status hand_in(Job job);
  Status too_much(std::string_view call) const HAWSER_REQUIRES(mutex_);
  std::optional<Job> next_job() HAWSER_REQUIRES(mutex_);
  void warn(const std::string& text);
  void on_refused(const std::string& address, const Status& why);
  Frame answer(const Frame& frame);
  void run();
  void run_job(Job& job);
  void run_answer(const Job& job);
  /// False: it is not to be followed, or cannot.
  bool follow(const Job& job);
  void look(Instant now);
  Instant next_look(bool is_busy) const;
  void apply(const DirectoryEvent& event, Instant now);
  void take(const DirectoryEntry& entry);
  /// Of the agent that is handled, unless it is forgotten meanwhile: kCancelled.
  Result<std::string> load(std::string_view blob, std::string_view label);
  bool is_wanted();
  void expire(Instant now);
  void let_go(const std::string& key);

  const Setup setup_;
  const Links links_;
  base::LineGate gate_;
  base::Mutex mutex_;
  base::CondVar wake_;
  std::deque<Job> jobs_ HAWSER_GUARDED_BY(mutex_);
  std::size_t job_bytes_ HAWSER_GUARDED_BY(mutex_) = 0;
  std::map<std::string, Followed> followed_ HAWSER_GUARDED_BY(mutex_);  ///< By key; at most kFollowedMax.
  /// The agent that the thread is about to load or to invalidate; nobody once that is forgotten.
  std::string handled_ HAWSER_GUARDED_BY(mutex_);
  std::atomic<bool> stop_{false};

  // The thread's own.
  std::map<Ticket, std::string> asked_;  ///< Puts and erases not yet answered, by call.
  std::optional<Ticket> watch_;
  /// Beside the agent's own, which turns only as often as somebody runs the agent, and not before it has a backend.
  std::optional<agent::RevocationWatch> revocation_watch_;
  std::unique_ptr<Listener> listener_;
  std::unique_ptr<Asks> asks_;
  std::thread thread_;
};

}  // namespace compat
HAWSER_NAMESPACE_END
