#include "backend/shm/path.h"

#include <errno.h>
#include <sys/eventfd.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "backend/hello_identity.h"
#include "backend/shm/port.h"
#include "base/format.h"
#include "base/shown.h"
#include "base/try.h"

namespace hawser::backend::shm {

/// Holds the path's pin on one region after another while chunks are copied.
class ShmPath::Pin {
 public:
  explicit Pin(ShmPath& path) : path_(path) {}
  ~Pin() { leave(); }
  Pin(const Pin&) = delete;
  Pin& operator=(const Pin&) = delete;

  /// False: the owner closed the region.
  [[nodiscard]] bool enter(const ShmBinding& target) {
    if (held_ == &target) return true;
    leave();
    Atomics::Word& pin = path_.link_.my_pin();
    if (!enter_pin<Atomics>(pin, *target.gate, target.index, target.generation, path_.fence_)) return false;
    held_ = &target;
    const Hooks& hooks = path_.port_.options().hooks;
    if (hooks.inside_pin) [[unlikely]]
      hooks.inside_pin();
    return true;
  }

  bool is_fence_due = false;  ///< What copies under this pin said.

 private:
  void leave() {
    if (held_ == nullptr) return;
    if (is_fence_due) base::stream_fence();  // streamed stores must not come after the pin is gone
    is_fence_due = false;
    leave_pin<Atomics>(path_.link_.my_pin());
    held_ = nullptr;
  }
  ShmPath& path_;
  const ShmBinding* held_ = nullptr;
};

namespace {

constexpr Duration kRetry = std::chrono::milliseconds(1);  // While the peer's queue of connections is full.
constexpr int kPacketsPerLook = 16;

Greeting::Uses uses_of(const Shared& shared) {
  return {.identity = shared.context.identity,
          .probe = shared.probe,
          .gates = shared.gates,
          .ring_bytes = shared.options.ring_bytes};
}

Status closed_region() {
  return Status(Code::kDenied, "the region was closed by its owner")
      .with_scope(Scope::kRequest)
      .with_advice("fetch the peer's card again");
}

/// How to copy. Pieces of a region that fits into a cache are probably there, however they lie.
base::CopyHint hint_of(const ShmBinding& target, const Chunk& chunk, std::uint64_t total_bytes) {
  constexpr std::uint64_t kCachedRegionMax = 8u << 20;
  return {.total_bytes = total_bytes,
          .scattered = chunk.pieces.size() > 1 && target.size > kCachedRegionMax,
          .read_elsewhere = chunk.read_next && chunk.op == Operation::kWrite};
}

}  // namespace

ShmPath::ShmPath(ShmPort& port, const PathTarget& target, std::string socket_path)
    : port_(port),
      greeting_(uses_of(port.shared()), {.socket = std::move(socket_path),
                                         .peer = std::string(target.peer),
                                         .incarnation = target.incarnation,
                                         .supersedes = target.supersedes}),
      deadline_(target.deadline),
      socket_(port.watches(), port.shared().forks, this),
      server_(port.shared().context.regions, port.options()) {}

ShmPath::ShmPath(ShmPort& port, ForkFd socket, const Open& open)
    : port_(port),
      stage_(Stage::kGreeting),
      is_inbound_(true),
      greeting_(uses_of(port.shared()), open.hello.session),
      peer_(identity_of(open.hello)),
      socket_(port.watches(), port.shared().forks, this),
      server_(port.shared().context.regions, port.options()) {
  socket_.take(std::move(socket));
}

ShmPath::~ShmPath() {
  if (my_door_) port_.watches().remove(my_door_.get());
  if (has_served_) port_.served().forget(this);
}

BufferState ShmPath::buffer_state(const Job& job) const {
  if (job.cursor.done > 0) return BufferState::kPartlyWritten;
  // A chunk that call_at_once began comes back as a job, and which one that is nobody remembers.
  return is_torn_ ? BufferState::kUnknown : BufferState::kUntouched;
}

PathState ShmPath::state() const {
  switch (stage_) {
    case Stage::kConnecting:
    case Stage::kGreeting:
      return PathState::kConnecting;
    case Stage::kUp:
      return PathState::kUp;
    default:
      return PathState::kDown;
  }
}

Status ShmPath::named(Status status) const {
  return status.with_peer(peer_.name.empty() ? greeting_.wanted().peer : peer_.name);
}

void ShmPath::count_chunk(const Chunk& chunk) {
  ++counts_.chunks;
  (chunk.op == Operation::kWrite ? counts_.bytes_out : counts_.bytes_in) += chunk.bytes;
}

Submitted ShmPath::submit(std::span<const Chunk> chunks, Instant) {
  Submitted result;
  if (stage_ != Stage::kUp) return result;
  // Chunks that wait have no right to go first, but then one turn may copy so much only.
  std::uint64_t allowance = kAtOnceMax;
  result.taken = result.done = job_count_ == 0 ? copy_at_once(chunks, port_.options().inline_bytes_max, allowance)
                                               : copy_at_once(chunks, kSmallChunk, port_.beside_jobs_left());
  while (result.taken < chunks.size() && enqueue(chunks[result.taken])) ++result.taken;
  return result;
}

Result<std::unique_ptr<View>> ShmPath::view(Binding& region) {
  if (stage_ != Stage::kUp) return named(Status(Code::kBusy, "the path is not up"));
  Result<std::unique_ptr<View>> made = views_.take(static_cast<const ShmBinding&>(region), fence_);
  if (!made) return named(made.error());
  return made;
}

bool ShmPath::move_at_once(const Chunk& chunk) {
  if (stage_ != Stage::kUp || job_count_ != 0) return false;
  // Whoever asks for this would have to do the copy in its next turn.
  std::uint64_t allowance = kAloneFactor * port_.options().inline_bytes_max;
  const auto& target = static_cast<const ShmBinding&>(*chunk.target);
  if (target.state == ShmBinding::State::kForeign) return chunk.bytes <= allowance && call_at_once(target, chunk);
  return copy_at_once({&chunk, 1}, allowance, allowance) == 1;
}

bool ShmPath::fetch(std::uint64_t address, std::span<std::byte> into) {
  while (!into.empty()) {
    if (!can_fetch() || !cross_.is_alive()) return false;
    const iovec local{into.data(), into.size()};
    const iovec remote{reinterpret_cast<void*>(address), into.size()};
    const ssize_t moved = cross_.move(Operation::kRead, {&local, 1}, {&remote, 1});
    if (moved <= 0) return false;
    address += static_cast<std::uint64_t>(moved);
    into = into.subspan(static_cast<std::size_t>(moved));
  }
  return true;
}

/// The whole chunk by one kernel call, or not at all as far as anybody is told.
bool ShmPath::call_at_once(const ShmBinding& target, const Chunk& chunk) {
  if (chunk.bytes == 0 || chunk.pieces.size() > kCrossPiecesMax || !admits(target, chunk)) return false;
  if (!cross_.is_alive()) return false;
  Pin pin(*this);
  if (!pin.enter(target)) return false;
  Cursor cursor;
  (void)port_.cross_mover().move_part(cross_, target, chunk, &cursor, chunk.bytes);
  if (cursor.done == chunk.bytes) {
    count_chunk(chunk);
    return true;
  }
  is_torn_ |= cursor.done != 0;
  return false;
}

/// Copies small chunks here and now; stops at the first that is not small, not mapped or not right, or goes beyond
/// `left`.
std::uint32_t ShmPath::copy_at_once(std::span<const Chunk> chunks, std::uint64_t bytes_max, std::uint64_t& left) {
  Pin pin(*this);
  std::uint32_t done = 0;
  for (const Chunk& chunk : chunks) {
    const auto& target = static_cast<const ShmBinding&>(*chunk.target);
    if (target.state != ShmBinding::State::kMapped || chunk.bytes > bytes_max) break;
    if (chunk.bytes > left || !admits(target, chunk) || meets_ends(target, chunk) || !pin.enter(target)) break;
    Cursor cursor;
    target.first_touch.prepare(chunk, cursor, chunk.bytes);
    pin.is_fence_due |= copy_part(target.base, chunk, &cursor, chunk.bytes, hint_of(target, chunk, chunk.bytes));
    left -= chunk.bytes;
    count_chunk(chunk);
    ++done;
  }
  return done;
}

bool ShmPath::enqueue(const Chunk& chunk) {
  if (job_count_ == kJobsMax) return false;
  Job* job = port_.queue().make(*this, chunk);
  if (job == nullptr) return false;
  ++job_count_;
  if (static_cast<const ShmBinding&>(*chunk.target).state == ShmBinding::State::kAsking) {
    if (waiting_.empty()) waiting_since_ = port_.now();
    waiting_.push_back(*job);
  } else {
    port_.queue().schedule(*job);
  }
  return true;
}

void ShmPath::end_job(Job& job, Status status) {
  PortEvent event;
  event.kind = PortEvent::Kind::kChunkDone;
  event.path = this;
  event.cookie = job.chunk.cookie;
  if (status.ok()) {
    count_chunk(job.chunk);
  } else {
    event.status = named(std::move(status));
  }
  --job_count_;
  port_.queue().erase(job);
  port_.push(std::move(event));
}

void ShmPath::end_jobs(const Status& why) {
  if (job_count_ == 0) return;
  port_.queue().for_each([&](Job& job) {
    if (job.path == this) end_job(job, why.with_buffer(buffer_state(job)));
  });
}

void ShmPath::cancel(std::uint64_t transfer) {
  if (job_count_ == 0) return;
  const Status cancelled = Status(Code::kCancelled, "cancelled before all was copied").with_scope(Scope::kRequest);
  port_.queue().for_each([&](Job& job) {
    if (job.path == this && job.chunk.transfer == transfer) end_job(job, cancelled.with_buffer(buffer_state(job)));
  });
}

std::uint64_t ShmPath::work(Job& job, const TurnBudget& budget, std::uint64_t limit) {
  const auto& target = static_cast<const ShmBinding&>(*job.chunk.target);
  if (target.state == ShmBinding::State::kFailed) {
    end_job(job, target.status.with_buffer(BufferState::kUntouched));
    return 0;
  }
  if (job.cursor.done == 0 && !admits(target, job.chunk)) {
    end_job(job, Status(Code::kDenied, "the peer's region does not allow this operation, or is smaller than planned")
                     .with_scope(Scope::kRequest)
                     .with_buffer(BufferState::kUntouched));
    return 0;
  }
  if (target.state == ShmBinding::State::kMapped) return work_mapped(job, target, limit);
  return work_foreign(job, target, budget.kernel_copy_bytes);
}

std::uint64_t ShmPath::work_mapped(Job& job, const ShmBinding& target, std::uint64_t limit) {
  const base::CopyHint hint = hint_of(target, job.chunk, port_.queue().transfer_bytes(job));
  const std::uint64_t before = job.cursor.done;
  std::uint64_t moved = 0;
  Status ends;
  {
    Pin pin(*this);
    if (!pin.enter(target)) {
      end_job(job, closed_region().with_buffer(buffer_state(job)));
      return 0;
    }
    // A message that came meanwhile is not kept waiting for the rest of the turn.
    const std::uint64_t stream_step = port_.expects_messages() ? kStreamStep : kQuietStreamStep;
    const std::uint64_t step = base::streams(job.chunk.bytes, hint) ? stream_step : kCachedStep;
    do {
      const std::uint64_t size = std::min(step, limit - moved);
      target.first_touch.prepare(job.chunk, job.cursor, size);
      pin.is_fence_due |= copy_part(target.base, job.chunk, &job.cursor, size, hint);
      moved = job.cursor.done - before;
    } while (moved < limit && job.cursor.done < job.chunk.bytes && !port_.has_message());
    if (job.cursor.done == job.chunk.bytes && meets_ends(target, job.chunk)) ends = move_ends(target, job.chunk);
  }
  if (!ends.ok()) {
    end_job(job, ends.with_buffer(BufferState::kPartlyWritten));
  } else if (job.cursor.done == job.chunk.bytes) {
    end_job(job, {});
  }
  return moved;
}

/// The bytes that the mapping does not have: a copy went over the pages in their place, which mean nothing.
Status ShmPath::move_ends(const ShmBinding& target, const Chunk& chunk) {
  if (!cross_.is_alive()) return left_process();
  const int error = port_.cross_mover().move_ends(cross_, target, chunk);
  return error == 0 ? Status() : cross_memory_status(-error, socket_.credentials().process);
}

Status ShmPath::left_process() const {
  return Status(Code::kDisconnected, base::format("process {} left", socket_.credentials().process))
      .with_scope(Scope::kPath);
}

// One kernel call is a turn's work.
std::uint64_t ShmPath::work_foreign(Job& job, const ShmBinding& target, std::uint64_t limit) {
  ssize_t moved = 0;
  if (!cross_.is_alive()) {
    end_job(job, left_process().with_buffer(buffer_state(job)));
    return 0;
  }
  {
    Pin pin(*this);
    if (!pin.enter(target)) {
      end_job(job, closed_region().with_buffer(buffer_state(job)));
      return 0;
    }
    if (job.chunk.bytes != 0) {
      moved = port_.cross_mover().move_part(cross_, target, job.chunk, &job.cursor, limit);
    }
  }
  if (moved < 0) {
    end_job(
        job,
        cross_memory_status(static_cast<int>(-moved), socket_.credentials().process).with_buffer(buffer_state(job)));
  } else if (job.cursor.done == job.chunk.bytes) {
    end_job(job, {});
  }
  return limit;
}

bool ShmPath::send(wire::Link, std::span<const std::byte> head, std::span<const std::byte> body) {
  if (stage_ != Stage::kUp || rings_.has_outbox()) return false;
  port_.make_hot(*this);  // an answer is likely
  port_.note_message();
  const bool was_refused = rings_.has_refused();
  const bool sent = note_put(was_refused, rings_.send(head, body));
  if (sent) ++counts_.messages_out;
  if (rings_.has_outbox()) port_.note_outbox(*this);
  return sent;
}

/// Does what a put calls for. True: it is done.
bool ShmPath::note_put(bool was_refused, Put result) {
  if (result == Put::kCorrupt) {
    end(Status(Code::kCorrupt, "the peer's ring claims to be read beyond its end"));
    return false;
  }
  if (rings_.has_refused()) {
    if (!was_refused) refused_since_ = port_.now();
    port_.note_blocked(*this);
  }
  if (result == Put::kDone && heartbeat_.is_on() && !heartbeat_.is_unread()) {
    heartbeat_.note_unread(port_.now());
    port_.heartbeat_at(heartbeat_.next());
  }
  return result == Put::kDone;
}

bool ShmPath::each_untaken(const SeeMessage& see) const { return !link_ || rings_.each_untaken(see); }

bool ShmPath::each_whole_untaken(const SeeMessage& see) const { return !link_ || rings_.each_whole_untaken(see); }

bool ShmPath::flush_outbox() {
  const bool was_refused = rings_.has_refused();
  return stage_ != Stage::kUp || note_put(was_refused, rings_.flush());
}

void ShmPath::ring_own_door() { static_cast<void>(::eventfd_write(my_door_.get(), 1)); }

std::size_t ShmPath::receive(std::span<PortEvent> out, Inbox& inbox) {
  std::size_t count = 0;
  rings_.begin_taking();
  while (count < std::min(out.size(), kBurst) && has_read_stage()) {
    std::span<const std::byte> bytes;
    const MessageRings::Took took = rings_.take(inbox, &bytes);
    if (took == MessageRings::Took::kNothing) break;
    if (took == MessageRings::Took::kCorrupt) {
      end(Status(Code::kCorrupt, "the peer's ring holds no valid record"));
      break;
    }
    PortEvent& event = out[count++];
    event = {};
    event.kind = PortEvent::Kind::kMessage;
    event.path = this;
    event.peer = &peer_;
    event.bytes = bytes;
    ++counts_.messages_in;
  }
  return count;
}

// ---- How it comes up.

void ShmPath::start(Instant now) {
  if (began_ == Instant::min()) began_ = now;
  retry_at_ = Instant::max();
  Result<base::Fd> socket = connect_to(greeting_.wanted().socket);
  if (!socket && socket.error().code() == Code::kBusy && socket.error().scope() == Scope::kPeer) {
    retry_at_ = now + kRetry;
    return;
  }
  if (!socket) return end(socket.error());
  socket_.take(ForkFd(std::move(*socket), port_.shared().forks));
  stage_ = step(stage_, StageEvent::kSaidHello).next;
  if (Status status = greet(); !status.ok()) end(std::move(status));
}

/// Makes the link and says hello with it.
Status ShmPath::greet() {
  HAWSER_TRY(look_at_peer());
  HAWSER_TRY_ASSIGN(Greeting::Ends ends, greeting_.say_open(socket_.fd()));
  is_peer_quiet_ = false;
  adopt(std::move(ends));
  return watch_all();
}

Status ShmPath::look_at_peer() {
  HAWSER_TRY(socket_.look_at_peer());
  cross_ = CrossMemory(socket_.credentials().process, socket_.process_fd(), socket_.fd(), port_.shared().forks);
  return {};
}

void ShmPath::adopt(Greeting::Ends ends) {
  link_ = std::move(ends.link);
  my_door_ = ForkFd(std::move(ends.my_door), port_.shared().forks);
  peer_door_ = ForkFd(std::move(ends.peer_door), port_.shared().forks);
}

Status ShmPath::watch_all() {
  HAWSER_TRY(socket_.watch());
  // By edges: ringing again tells again, and the counter need not be read.
  return port_.watches().add(my_door_.get(), EPOLLIN | EPOLLET, door_watch_);
}

template <typename Said>
void ShmPath::learn(const Said& said) {
  if (said.membarrier && port_.shared().gates.has_membarrier()) fence_ = PinFence::kLight;
  knows_ends_ = said.ends;
  if (said.views) views_.begin(link_.my_view_pins());
}

Status ShmPath::admit(Packet& packet, const Open& open) {
  HAWSER_TRY_ASSIGN(Greeting::Taken taken, Greeting::take_open(packet, open));
  gates_ = std::move(taken.gates);
  adopt(std::move(taken.ends));
  HAWSER_TRY(look_at_peer());
  learn(open);
  HAWSER_TRY(watch_all());
  supersedes_ = open.hello.supersedes;
  if (!supersedes_.is_zero()) port_.supersede(supersedes_, open.hello.incarnation);
  HAWSER_TRY(greeting_.say_accept(socket_.fd()));
  is_peer_quiet_ = false;
  come_up(open.probe);
  return {};
}

void ShmPath::on_accept(Packet& packet, const Accept& message) {
  Result<PeerGates> gates = greeting_.take_accept(packet, message);
  if (!gates) return end(gates.error());
  gates_ = std::move(*gates);
  peer_ = identity_of(message.hello);
  learn(message);
  come_up(message.probe);
}

void ShmPath::come_up(const Probe& probe) {
  cross_status_ = port_.options().attach ? cross_.try_probe(probe) : Status(Code::kUnsupported, "attach=false");
  stage_ = step(stage_, StageEvent::kGreeted).next;
  deadline_ = Instant::max();
  rings_.begin(link_, peer_door_.get());
  ++counts_.epochs;
  PortEvent event;
  event.kind = PortEvent::Kind::kPathUp;
  event.path = this;
  event.inbound = is_inbound_;
  event.peer = &peer_;
  event.session = greeting_.session();
  if (is_inbound_) event.supersedes = supersedes_;
  port_.push(std::move(event));
  port_.make_hot(*this);
  begin_heartbeats();
  ask_regions();
}

Instant ShmPath::next_deadline() const {
  if (stage_ != Stage::kConnecting && stage_ != Stage::kGreeting) return Instant::max();
  return std::min(deadline_, retry_at_);
}

void ShmPath::check_deadline(Instant now) {
  if (next_deadline() > now) return;
  if (now < deadline_) return start(now);
  end(Status(Code::kTimedOut,
             base::format("no answer from '{}' before the deadline", base::shown(greeting_.wanted().socket))));
}

// ---- Its socket, and its end.

void ShmPath::on_socket(std::uint32_t events) {
  if ((events & EPOLLOUT) != 0) send_reply();
  Packet packet;
  for (int i = 0; i < kPacketsPerLook && socket_ && !server_.has_reply(); ++i) {
    const Io io = socket_.receive(&packet);
    if (io == Io::kAgain) return;
    if (io == Io::kDone) {
      handle(packet);
      continue;
    }
    if (io == Io::kFailed) end(base::errno_status(Code::kCorrupt, "reading the peer's socket", errno));
    return on_peer_left();
  }
  // What waits behind an answer that cannot be sent is not read, but the end is noticed.
  if (socket_ && (events & (EPOLLHUP | EPOLLERR)) != 0) on_peer_left();
}

void ShmPath::handle(Packet& packet) {
  Result<Control> control = decode_control(packet.bytes(), versions_of(port_.shared().context.identity));
  if (!control) return end(control.error());
  const Reading how = reading(stage_, static_cast<PacketKind>(control->index()));
  if (how == Reading::kCorrupt) return end(Status(Code::kCorrupt, "the peer greeted twice"));
  if (how == Reading::kPassOver) return;
  if (auto* bye = std::get_if<Bye>(&*control)) {
    bye_ = std::move(*bye);
  } else if (auto* accept = std::get_if<Accept>(&*control)) {
    on_accept(packet, *accept);
  } else if (auto* bind = std::get_if<Bind>(&*control)) {
    on_bind(*bind);
  } else if (auto* bound = std::get_if<Bound>(&*control)) {
    on_bound(packet, *bound);
  }
}

void ShmPath::on_process_end() {
  socket_.unwatch_process();
  on_socket(EPOLLIN);  // its last words
  if (!is_peer_quiet_) on_peer_left();
}

/// The peer will not copy any more: it closed its end, or it died.
void ShmPath::on_peer_left() {
  is_peer_quiet_ = true;
  if (bye_) {
    Status status(bye_->code, base::format("the peer closed: {}", base::shown(bye_->reason)));
    end(bye_->gone ? status.with_scope(Scope::kPeer) : status.with_scope(Scope::kPath));
  } else {
    end(Status(Code::kDisconnected, base::format("process {} exited without closing", socket_.credentials().process))
            .with_scope(Scope::kPeer));
  }
  close_socket();
}

void ShmPath::close_socket() {
  cross_ = {};  // Its look at a socket that is closed would find nothing wrong.
  socket_.close();
}

void ShmPath::end(Status why) {
  const StageStep& taken = step(stage_, StageEvent::kEnded);
  if (taken.action == StageAction::kNone) return;
  end_status_ = named(std::move(why));
  stage_ = taken.next;
  views_.end_all();  // Before the peer hears that nobody here is in its memory any more.
  rings_.drain();
  end_jobs(end_status_);
  if (socket_ && !is_peer_quiet_) {
    Bye bye{end_status_.code(), port_.is_closing(), std::string(end_status_.message())};
    socket_.say_last(encode(bye));
  }
  if (taken.action == StageAction::kReportDown) return report_down();
  port_.note_draining(*this);
}

bool ShmPath::release() {
  end(Status(Code::kDisconnected, "released by this agent"));
  stage_ = step(stage_, StageEvent::kReleased).next;
  released_ = port_.now();
  for (Mapping& mapping : regions_.forget_all()) port_.unmap_later(std::move(mapping));
  return !is_peer_quiet_ && socket_;
}

bool ShmPath::holds(std::uint32_t index, std::uint32_t generation, std::string* holder) const {
  if (is_peer_quiet_ || !link_) return false;
  const auto is_it = [&](const Atomics::Word& pin) { return is_inside<Atomics>(pin, index, generation); };
  if (!is_it(link_.their_pin()) && std::ranges::none_of(link_.their_view_pins(), is_it)) return false;
  if (holder != nullptr) *holder = base::format("{} (process {})", peer_.name, socket_.credentials().process);
  return true;
}

void ShmPath::finish_draining() {
  const StageStep& taken = step(stage_, StageEvent::kDrained);
  stage_ = taken.next;
  if (taken.action == StageAction::kReportDown) report_down();
}

void ShmPath::report_down() {
  PortEvent event;
  event.kind = PortEvent::Kind::kPathDown;
  event.path = this;
  event.inbound = is_inbound_;
  event.peer = &peer_;
  event.session = greeting_.session();
  event.status = end_status_;
  port_.push(std::move(event));
}

// ---- Regions.

Result<Binding*> ShmPath::bind(const RemoteRegionRef& region) {
  Result<ShmBinding*> found = regions_.bind(region, stage_ == Stage::kUp ? cross_status_ : Status());
  if (!found) return named(found.error());
  ask_regions();
  return *found;
}

void ShmPath::unbind(std::uint32_t index, std::uint32_t generation) {
  port_.unmap_later(regions_.forget(index, generation));
}

void ShmPath::ask_regions() {
  if (stage_ != Stage::kUp) return;
  regions_.ask([this](std::span<const std::byte> bytes) { return socket_.send(bytes); });
}

void ShmPath::on_bound(Packet& packet, const Bound& message) {
  const Result<ShmBinding*> answered = regions_.take(packet, message, {gates_, cross_status_});
  if (!answered) return end(answered.error());
  ask_regions();
  ShmBinding* const binding = *answered;
  if (binding == nullptr) return;
  if (!binding->status.ok()) binding->status = named(binding->status);
  for (Job& job : waiting_) {
    if (job.chunk.target != binding) continue;
    base::IntrusiveList<Job, &Job::hook>::erase(job);
    port_.queue().schedule(job);
  }
}

void ShmPath::on_bind(const Bind& message) {
  if (server_.answer(message, {peer_.incarnation, knows_ends_})) {
    port_.served().note({message.index, message.generation}, this);
    has_served_ = true;
  }
  send_reply();
}

void ShmPath::send_reply() {
  if (Status status = socket_.send_reply(server_); !status.ok()) end(std::move(status));
}

// ---- Heartbeats.

void ShmPath::begin_heartbeats() {
  const auto& context = port_.shared().context;
  if (!peer_.driven || context.heartbeat <= Duration::zero()) return;
  heartbeat_.begin(context.heartbeat, context.peer_timeout, port_.now());
  port_.heartbeat_at(heartbeat_.next());
}

void ShmPath::set_awaited(bool awaited, Instant now) {
  heartbeat_.set_awaited(awaited, now);
  if (heartbeat_.is_on() && stage_ == Stage::kUp) port_.heartbeat_at(heartbeat_.next());
}

void ShmPath::answer_heartbeat() {
  if (stage_ == Stage::kUp && heartbeat_.answer(port_.now())) note_silence(PortEvent::Kind::kPathHeard, {});
}

void ShmPath::note_silence(PortEvent::Kind kind, Status status) {
  PortEvent event;
  event.kind = kind;
  event.path = this;
  event.status = std::move(status);
  port_.push(std::move(event));
}

/// No proof of death, and so no kDisconnected.
Status ShmPath::silence(Duration silent, Scope scope) const {
  const auto silent_ms = std::chrono::duration_cast<std::chrono::milliseconds>(silent).count();
  return Status(Code::kTimedOut, base::format("{} has been silent for {} ms", peer_.name, silent_ms))
      .with_scope(scope)
      .with_peer(peer_.name)
      .with_advice(
          "its process is stopped or overloaded; AgentOptions::peer_timeout of this agent says how long "
          "silence may last");
}

void ShmPath::watch_peer(Instant now) {
  if (next_heartbeat() > now) return;
  const Heartbeat::Look seen = heartbeat_.look(counts_.messages_in, rings_.is_drained(), now);
  if (seen.is_heard_again) note_silence(PortEvent::Kind::kPathHeard, {});
  if (seen.verdict == Heartbeat::Verdict::kNothing) return;
  if (seen.verdict == Heartbeat::Verdict::kFailed) return end(silence(seen.silent, Scope::kPeer));
  static_cast<void>(::eventfd_write(peer_door_.get(), 1));
  if (seen.verdict == Heartbeat::Verdict::kSuspect) {
    note_silence(PortEvent::Kind::kPathSilent, silence(seen.silent, Scope::kPath));
  }
}

PathCounters ShmPath::counters() const {
  PathCounters counters = counts_;
  counters.peer = peer_.name.empty() ? greeting_.wanted().peer : peer_.name;
  counters.backend = "shm";
  constexpr std::string_view kNames[] = {"connecting", "connecting", "up", "draining", "down"};
  counters.state = kNames[static_cast<std::size_t>(stage_)];
  return counters;
}

std::string ShmPath::describe() const {
  const PeerRegions::Mapped mapped = regions_.mapped();
  return base::format(
      "shm {} process {} pins {} cross-memory {} mapped {} regions, {} bytes; {} views; {} chunks queued",
      is_inbound_ ? "from" : "to", socket_.credentials().process,
      fence_ == PinFence::kLight ? "by membarrier" : "by fence",
      cross_status_.ok() ? std::string("allowed") : std::string(cross_status_.message()), mapped.count, mapped.bytes,
      views_.text(), job_count_);
}

void ShmPath::describe_waits(const WaitVisitor& visitor) const {
  const std::string_view peer = peer_.name.empty() ? greeting_.wanted().peer : peer_.name;
  const auto tell = [&](std::string_view what, Instant since, Instant until) {
    visitor({.who = "shm", .what = what, .peer = peer, .since = since, .until = until});
  };
  if (stage_ == Stage::kConnecting) tell("the listener", began_, deadline_);
  if (stage_ == Stage::kGreeting) tell("the hello", began_, deadline_);
  if (released_ != Instant::min()) tell("the last access to this agent's memory", released_, Instant::max());
  if (stage_ != Stage::kUp) return;
  if (rings_.has_refused()) tell("room in the ring", refused_since_, Instant::max());
  if (!waiting_.empty()) tell("the place of a region", waiting_since_, Instant::max());
  if (const proto::Detector* const silent = heartbeat_.silent()) {
    tell("a sign of life", silent->last_heard(), silent->fails_at());
  }
}

}  // namespace hawser::backend::shm
