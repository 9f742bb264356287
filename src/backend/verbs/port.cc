#include "backend/verbs/port.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/fd.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::verbs {
namespace {

constexpr int kCompletionsAtOnce = 64;
constexpr int kPollRounds = 4;  ///< Per device and turn.

/// Messages need their receives more.
std::uint32_t immediates_that_fit(const Nic& nic, const QueuePairOptions& pair) {
  const auto most = static_cast<std::uint32_t>(std::max(nic.domain->attributes().max_qp_wr, 0));
  return std::min(pair.immediates, most - std::min(most, pair.messages));
}

}  // namespace

VerbsPort::VerbsPort(const Context& context, const VerbsOptions& options, PortParts parts)
    : context_(context),
      options_(options),
      parts_(std::move(parts)),
      shared_{.context = context_,
              .options = options_,
              .pairing = pairing_,
              .lanes = lanes_,
              .events = events_,
              .host = parts_.host,
              .rng = context_.rng.fork()},
      async_(lanes_, context_.log, *this),
      search_(std::move(parts_.reopening), parts_.regions, queue_depth(), context_.rng.fork()) {}

VerbsPort::~VerbsPort() = default;

Result<std::unique_ptr<VerbsPort>> VerbsPort::open(const Context& context, const VerbsOptions& options,
                                                   PortParts parts) {
  VerbsOptions fitted = options;
  for (const auto& nic : parts.nics) {
    fitted.pair.immediates = immediates_that_fit(*nic, fitted.pair);
    // A path's messages are numbered on its first queue pair, whichever that is; datagrams carry none.
    if (nic->is_srd()) fitted.pair.messages = fitted.pair.immediates = 0;
  }
  std::unique_ptr<VerbsPort> port(new VerbsPort(context, fitted, std::move(parts)));
  HAWSER_TRY_ASSIGN(port->pairing_, parse_pairing(options.rails));
  HAWSER_TRY(port->open_lanes());
  return port;
}

Status VerbsPort::open_lanes() {
  for (const auto& nic : parts_.nics) {
    HAWSER_TRY_ASSIGN(auto queues, CqPool::open(nic->domain, queue_depth()));
    HAWSER_TRY(add_lane(nic, std::move(queues)));
  }
  return {};
}

/// The lane is there also after an error: places of ports are told to peers. Then only nothing wakes for it.
Status VerbsPort::add_lane(const std::shared_ptr<Nic>& nic, std::unique_ptr<CqPool> queues) {
  const auto of_device = [&nic](const auto& lane) { return lane->nic->domain == nic->domain; };
  const auto device = static_cast<std::uint32_t>(std::ranges::find_if(lanes_, of_device) - lanes_.begin());
  const bool is_first = device == lanes_.size();
  const int queue_fd = queues->wait_fd();
  lanes_.push_back(std::make_unique<NicLane>(nic, std::move(queues)));
  lanes_.back()->device = device;
  const int async_fd = nic->domain->context()->async_fd;
  if (is_first) HAWSER_TRY(base::set_nonblocking(async_fd));
  if (parts_.control->wait_fd() < 0) return {};
  HAWSER_TRY(parts_.network->watch(queue_fd));
  return is_first ? parts_.network->watch(async_fd) : Status();
}

Result<Path*> VerbsPort::open_path(const PathTarget& target, Instant now) {
  HAWSER_TRY_ASSIGN(Path * control, parts_.control->open_path(target, now));
  const std::string name = target.peer.empty() ? base::shown(target.address) : std::string(target.peer);
  paths_.push_back(std::make_unique<VerbsPath>(shared_, name));
  VerbsPath* path = paths_.back().get();
  path->open(control, target.deadline);
  by_control_[control] = path;
  shared_.attention = true;
  return path;
}

void VerbsPort::describe(const WaitVisitor& visitor) const {
  for (const auto& path : paths_) path->describe_waits(visitor);
  // Of its streams, which are for control alone.
  parts_.control->describe([&](const Waiting& of_control) {
    Waiting each = of_control;
    each.who = "verbs, control";
    visitor(each);
  });
}

void VerbsPort::drop_control(VerbsPath& path) {
  if (path.control() == nullptr) return;
  by_control_.erase(path.control());
  for (std::size_t i = stash_at_; i < stash_end_; ++i) {
    if (stash_[i].path == path.control()) stash_[i].path = nullptr;
  }
  parts_.control->release_path(path.control());
  path.forget_control();
}

void VerbsPort::release_path(Path* path) {
  const auto found =
      std::find_if(paths_.begin(), paths_.end(), [path](const auto& each) { return each.get() == path; });
  HAWSER_ASSERT(found != paths_.end(), "a path is released that this port does not have");
  (*found)->go_down(Status(Code::kDisconnected, "this agent dropped the path").with_scope(Scope::kPath));
  drop_control(**found);
  events_.forget(path);
  by_number_.forget(found->get());
  paths_.erase(found);
}

/// Inbound paths that ended before the agent heard of them.
void VerbsPort::bury() {
  std::erase_if(paths_, [this](const std::unique_ptr<VerbsPath>& path) {
    if (!path->is_down()) return false;
    drop_control(*path);
    if (path->is_known()) return false;
    by_number_.forget(path.get());
    return true;
  });
}

std::size_t VerbsPort::turn(Instant now, const TurnBudget& budget) {
  now_ = now;
  events_.recycle();
  if (slept_) {
    for (const auto& lane : lanes_) lane->queues->drain_events();
  }
  // What is stashed shows bytes of the control port, which live until its next turn.
  const std::size_t control = stash_at_ == stash_end_ ? parts_.control->turn(now, budget) : 0;
  control_has_news_ = control_has_news_ || control > 0;
  std::size_t work = control;
  if (!paths_.empty()) work += poll_completions(now);
  if (slept_ || now >= async_.next_poll()) work += async_.poll(now);
  slept_ = false;
  if (now >= search_.next_look()) work += look_for_devices(now);
  if (shared_.attention || now >= next_due_) work += turn_paths(now);
  return work + (events_.empty() && stash_at_ == stash_end_ ? 0 : 1);
}

bool VerbsPort::has_news(Instant now) {
  const bool has_work = slept_ || shared_.attention || control_has_news_ || !events_.empty() || stash_at_ != stash_end_;
  if (has_work || now >= std::min({next_due_, async_.next_poll(), search_.next_look()})) return true;
  return (!paths_.empty() && poll_completions(now) > 0) || parts_.control->has_news(now);
}

std::size_t VerbsPort::turn_paths(Instant now) {
  shared_.attention = false;
  std::size_t work = 0;
  bool any_down = false;
  next_due_ = Instant::max();
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    VerbsPath& path = *paths_[i];
    if (path.has_work() || now >= path.next_deadline()) work += path.turn(now);
    path.tell_awaited(now);
    if (path.has_work()) shared_.attention = true;
    next_due_ = std::min(next_due_, path.next_deadline());
    any_down = any_down || (path.is_down() && (path.control() != nullptr || !path.is_known()));
  }
  if (any_down) bury();
  return work;
}

std::size_t VerbsPort::poll_completions(Instant now) {
  std::array<ibv_wc, kCompletionsAtOnce> completions;
  std::size_t work = 0;
  for (std::uint32_t lane = 0; lane < lanes_.size(); ++lane) {
    for (int round = 0; round < kPollRounds; ++round) {
      const int count = lanes_[lane]->queues->poll(completions);
      if (count < 0) {
        const Status why = Status(Code::kFailed, base::format("completions of {} were lost: its queue overran",
                                                              lanes_[lane]->nic->describe()))
                               .with_scope(Scope::kPath)
                               .with_device(lanes_[lane]->nic->device.name);
        on_lane_fault(lane, why, now);
        ++work;
        break;
      }
      for (int i = 0; i < count; ++i) {
        const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
        VerbsPath* path = by_number_.find(lane, completion.qp_num, paths_);
        if (path == nullptr) continue;
        path->on_completion(lane, completion, now);
        if (path->has_work()) shared_.attention = true;  // There is room for what waits.
      }
      work += static_cast<std::size_t>(count);
      if (count < kCompletionsAtOnce) break;
    }
  }
  return work;
}

void VerbsPort::on_lane_fault(std::uint32_t lane, const Status& why, Instant now) {
  ++lanes_[lane]->faults;
  for (const auto& path : paths_) path->on_lane_fault(lane, why, now);
}

bool VerbsPort::on_address_change(std::uint32_t lane, const Status& why, Instant now) {
  bool any = false;
  for (const auto& path : paths_) any = path->on_address_change(lane, why, now) || any;
  return any;
}

bool VerbsPort::translate(PortEvent& event, PortEvent& out) {
  if (event.path == nullptr) return false;  // Of a path that was dropped meanwhile.
  const auto found = by_control_.find(event.path);
  VerbsPath* path = found == by_control_.end() ? nullptr : found->second;
  if (path == nullptr && event.kind == PortEvent::Kind::kPathUp) {
    paths_.push_back(std::make_unique<VerbsPath>(shared_, event.peer->name));
    path = paths_.back().get();
    path->accept(event.path, now_);
    by_control_[event.path] = path;
  }
  if (path == nullptr) {
    if (event.kind == PortEvent::Kind::kPathDown) parts_.control->release_path(event.path);
    return false;
  }
  switch (event.kind) {
    case PortEvent::Kind::kPathUp:
      path->on_control_up(event);
      break;
    case PortEvent::Kind::kPathDown:
      path->go_down(event.status, event.refused);
      break;
    case PortEvent::Kind::kPathSilent:
    case PortEvent::Kind::kPathHeard:
      out.kind = event.kind;
      out.path = path;
      out.status = event.status;
      return true;
    case PortEvent::Kind::kMessage: {
      const std::size_t head = path->on_message(event.bytes, now_);
      if (head == 0) break;
      out.kind = PortEvent::Kind::kMessage;
      out.path = path;
      out.bytes = event.bytes.subspan(head);
      return true;
    }
    default:
      break;  // Peers of ours move no bytes on it.
  }
  if (path->is_down()) drop_control(*path);
  return false;
}

std::size_t VerbsPort::poll(std::span<PortEvent> out) {
  std::size_t count = events_.poll(out);
  bool shows_stash = false;
  while (count < out.size()) {
    if (stash_at_ == stash_end_) {
      if (shows_stash || !control_has_news_) break;  // Messages shown from it must stay.
      // Only what was taken: an idle turn comes here, too.
      for (PortEvent& event : std::span(stash_).first(stash_end_)) event = PortEvent();
      stash_at_ = 0;
      stash_end_ = parts_.control->poll(stash_);
      control_has_news_ = stash_end_ > 0;
      if (stash_end_ == 0) break;
    }
    PortEvent& event = stash_[stash_at_++];
    if (translate(event, out[count])) {
      ++count;
      shows_stash = true;
    }
    // What it caused comes before the peer's next word.
    if (!events_.empty()) count += events_.poll_more(out.subspan(count));
    if (!events_.empty()) break;
  }
  return count;
}

Instant VerbsPort::next_deadline() const {
  const Instant own = shared_.attention ? Instant::min() : next_due_;
  return std::min({own, search_.next_look(), parts_.control->next_deadline()});
}

bool VerbsPort::prepare_sleep() {
  slept_ = true;
  if (!events_.empty() || stash_at_ != stash_end_ || shared_.attention) return false;
  for (const auto& lane : lanes_) {
    lane->queues->drain_events();
    if (lane->is_gone || lanes_[lane->device]->is_deaf) continue;  // It tells nothing more.
    if (!lane->queues->arm()) return false;
  }
  if (poll_completions(now_) > 0) return false;
  return parts_.control->prepare_sleep();
}

bool VerbsPort::region_quiet(std::uint32_t index, std::uint32_t generation, std::string* holder) {
  bool is_used = false;
  const auto may_use = [&](const KeysInUse& keys) {
    return is_used = std::ranges::any_of(paths_, [&keys](const auto& path) { return path->may_use(keys); });
  };
  if (!parts_.regions->retire(index, generation, may_use)) {
    *holder = is_used ? "operations that are under way from other regions of the same memory"
                      : "RDMA devices that are being told to forget it";
    return false;
  }
  const std::shared_ptr<const RegionEntry> entry = context_.regions.at(index);
  const bool has_memory = entry != nullptr && entry->generation == generation && entry->base != nullptr;
  for (const auto& lane : lanes_) {
    lane->nic->domain->sweep();
    if (!has_memory) continue;
    const auto start = reinterpret_cast<std::uintptr_t>(entry->base);
    if (const Status open = lane->nic->domain->still_open(start, entry->size); !open.ok()) {
      *holder = open.to_string();
      return false;
    }
  }
  return parts_.control->region_quiet(index, generation, holder);
}

std::vector<DeviceCounters> VerbsPort::devices() const {
  std::vector<DeviceCounters> all;
  for (const auto& lane : lanes_) {
    all.push_back({.backend = "verbs",
                   .device = lane->nic->device.name,
                   .port = lane->nic->port.number,
                   .queue_pairs_gauge = lane->queue_pairs,
                   .faults = lane->faults,
                   .flow = lane->flow});
  }
  return all;
}

void VerbsPort::begin_close(Instant now) { parts_.control->begin_close(now); }

bool VerbsPort::idle() const { return parts_.control->idle(); }

void VerbsPort::on_deaf(std::uint32_t device, Instant now) {
  std::vector<std::uint8_t> ports;
  for (const auto& lane : lanes_) {
    if (lane->device == device && !lane->is_gone) ports.push_back(lane->nic->port.number);
  }
  if (ports.empty()) return;  // Another one has its place.
  const std::string& name = lanes_[device]->nic->device.name;
  if (lanes_.size() + ports.size() > wire::kPortsMax) {
    HAWSER_LOG(context_.log, kWarn, "verbs: {} came back too often to be used once more by this agent", name);
    return;
  }
  search_.miss(device, name, std::move(ports), now);
}

std::size_t VerbsPort::look_for_devices(Instant now) {
  std::size_t count = 0;
  while (std::optional<DeviceSearch::Found> found = search_.look(now)) {
    const std::string name = found->nics.front()->describe();
    const Status taken = take_back(*found);
    HAWSER_LOG(context_.log, kWarn, "verbs: {} is there again{}{}", name, taken.ok() ? "" : ": ",
               taken.ok() ? "" : taken.to_string());
    ++count;
  }
  return count;
}

/// Behind all others, with keys of their own: peers that know the old ones only do without. Paths that are there keep
/// to the ports that they agreed on.
Status VerbsPort::take_back(DeviceSearch::Found& found) {
  for (const auto& lane : lanes_) lane->is_gone = lane->is_gone || lane->device == found.device;
  Status first = std::move(found.unregistered);
  for (std::size_t i = 0; i < found.nics.size(); ++i) {
    parts_.nics.push_back(found.nics[i]);
    if (Status added = add_lane(found.nics[i], std::move(found.queues[i])); first.ok()) first = std::move(added);
  }
  events_.regions_changed();
  return first;
}

}  // namespace hawser::backend::verbs
