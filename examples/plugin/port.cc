#include "port.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

using mailslot::Event;
using mailslot::Job;
using mailslot::Letter;
using mailslot::Station;
using mailslot::Why;

namespace {

constexpr Why kClosed{HAWSER_PLUGIN_DISCONNECTED, HAWSER_PLUGIN_SCOPE_PEER, "the agent was closed"};
constexpr Why kNobody{HAWSER_PLUGIN_DISCONNECTED, HAWSER_PLUGIN_SCOPE_PEER, "no such agent is open in this process"};
constexpr Why kReleased{HAWSER_PLUGIN_DISCONNECTED, HAWSER_PLUGIN_SCOPE_PATH, "the path was released at the other end"};
constexpr Why kRegionClosed{HAWSER_PLUGIN_DENIED, HAWSER_PLUGIN_SCOPE_REQUEST, "the region was closed"};
constexpr Why kNotAllowed{HAWSER_PLUGIN_DENIED, HAWSER_PLUGIN_SCOPE_REQUEST,
                          "the region does not allow this operation, or is smaller than planned"};
constexpr Why kCancelled{HAWSER_PLUGIN_CANCELLED, HAWSER_PLUGIN_SCOPE_REQUEST, "cancelled before all was copied"};

bool same(const hawser_plugin_id& a, const hawser_plugin_id& b) { return a.hi == b.hi && a.lo == b.lo; }
bool is_none(const hawser_plugin_id& id) { return (id.hi | id.lo) == 0; }

/// A wrong plan or card must not become a wild store.
bool admits(const hawser_plugin_region& region, const hawser_plugin_chunk& chunk) {
  const std::uint32_t right = chunk.op == HAWSER_PLUGIN_WRITE ? HAWSER_PLUGIN_RIGHT_WRITE : HAWSER_PLUGIN_RIGHT_READ;
  if ((region.rights & right) == 0) return false;
  return std::all_of(chunk.pieces, chunk.pieces + chunk.piece_count, [&](const hawser_plugin_piece& piece) {
    return piece.remote <= region.size && piece.size <= region.size - piece.remote;
  });
}

/// `why` is empty when only the path ends.
void say_goodbye(Station& to, const hawser_plugin_id& session, const char* why) {
  Letter goodbye;
  goodbye.kind = Letter::Kind::kGoodbye;
  goodbye.session = session;
  goodbye.bytes = why;
  to.put(std::move(goodbye));
}

void copy_part(char* region, Job& job, std::uint64_t limit) {
  while (job.piece < job.chunk.piece_count && limit > 0) {
    const hawser_plugin_piece& piece = job.chunk.pieces[job.piece];
    const std::uint64_t part = std::min(limit, piece.size - job.offset);
    char* local = static_cast<char*>(piece.local) + job.offset;
    char* remote = region + piece.remote + job.offset;
    if (job.chunk.op == HAWSER_PLUGIN_WRITE) {
      std::memcpy(remote, local, part);
    } else {
      std::memcpy(local, remote, part);
    }
    limit -= part;
    job.done += part;
    job.offset += part;
    if (job.offset == piece.size) ++job.piece, job.offset = 0;
  }
}

}  // namespace

void mailslot::set_reason(hawser_plugin_reason* reason, std::uint32_t scope, const std::string& message) {
  reason->scope = scope;
  std::snprintf(reason->message, sizeof(reason->message), "%s", message.c_str());
}

Event& hawser_plugin_port::push(std::uint32_t kind, hawser_plugin_path& path, const Why& why) {
  Event& made = events.emplace_back();
  made.event.kind = kind;
  made.event.path = &path;
  made.event.code = why.code;
  made.event.session = path.session;
  mailslot::set_reason(&made.reason, why.scope, why.text);
  return made;
}

// Paths.

hawser_plugin_path& hawser_plugin_port::add_path(std::shared_ptr<Station> peer, hawser_plugin_id session) {
  paths.push_back(std::make_unique<hawser_plugin_path>());
  hawser_plugin_path& path = *paths.back();
  path.port = this;
  path.peer = std::move(peer);
  path.session = session;
  path.counters.epochs = 1;
  return path;
}

hawser_plugin_path* hawser_plugin_port::open_path(const hawser_plugin_path_target& target) {
  // What `supersedes` asks for holds by itself: only the owner of a path copies by it, and that is us.
  hawser_plugin_id session{};
  host.random(&session, sizeof(session));
  std::shared_ptr<Station> peer =
      mailslot::Office::of_this_process().find(std::string(target.address.data, target.address.size));
  hawser_plugin_path& path = add_path(peer, session);
  const bool is_it = peer && (is_none(target.incarnation) || same(target.incarnation, peer->identity.incarnation)) &&
                     (target.peer.size == 0 || std::string(target.peer.data, target.peer.size) == peer->name);
  Letter hello;
  hello.kind = Letter::Kind::kHello;
  hello.session = session;
  hello.from = station;
  if (is_closing || !is_it || !peer->put(std::move(hello))) {
    push(HAWSER_PLUGIN_PATH_DOWN, path, is_closing ? kClosed : kNobody);
    return &path;
  }
  path.state = HAWSER_PLUGIN_UP;
  push(HAWSER_PLUGIN_PATH_UP, path);
  return &path;
}

/// Ends its jobs, then tells that it is down.
void hawser_plugin_port::end_path(hawser_plugin_path& path, const Why& why) {
  if (std::exchange(path.state, std::uint32_t{HAWSER_PLUGIN_DOWN}) == HAWSER_PLUGIN_DOWN) return;
  end_jobs([&](const Job& job) { return job.path == &path; }, why);
  push(HAWSER_PLUGIN_PATH_DOWN, path, why);
}

void hawser_plugin_port::release_path(hawser_plugin_path* path) {
  if (path->state == HAWSER_PLUGIN_UP) {
    say_goodbye(*path->peer, path->session, "");
    end_path(*path, kReleased);
  }
  const auto is_its = [&](const Event& event) { return event.event.path == path; };
  events.erase(std::remove_if(events.begin(), events.end(), is_its), events.end());
  paths.erase(std::find_if(paths.begin(), paths.end(), [&](const auto& each) { return each.get() == path; }));
}

void hawser_plugin_port::close() {
  if (std::exchange(is_closing, true)) return;
  mailslot::Office::of_this_process().leave(address);
  for (const Letter& unread : station->close()) {
    if (unread.kind == Letter::Kind::kHello) say_goodbye(*unread.from, unread.session, "closed");
  }
  for (const auto& path : paths) {
    if (path->state == HAWSER_PLUGIN_UP) say_goodbye(*path->peer, path->session, "closed");
    end_path(*path, kClosed);
  }
}

// Mail.

void hawser_plugin_port::take_letter(Letter& letter) {
  if (letter.kind == Letter::Kind::kHello) {
    hawser_plugin_path& path = add_path(std::move(letter.from), letter.session);
    path.state = HAWSER_PLUGIN_UP;
    push(HAWSER_PLUGIN_PATH_UP, path).event.inbound = 1;
    return;
  }
  const auto found =
      std::find_if(paths.begin(), paths.end(), [&](const auto& path) { return same(path->session, letter.session); });
  if (found == paths.end() || (*found)->state != HAWSER_PLUGIN_UP) return;  // Released meanwhile.
  if (letter.kind == Letter::Kind::kGoodbye) {
    end_path(**found, letter.bytes.empty() ? kReleased : kClosed);
    return;
  }
  ++(*found)->counters.messages_in;
  push(HAWSER_PLUGIN_MESSAGE, **found).bytes = std::move(letter.bytes);
}

bool hawser_plugin_port::send(hawser_plugin_path& path, hawser_plugin_text head, hawser_plugin_text body) {
  if (path.state != HAWSER_PLUGIN_UP) return false;
  Letter letter;
  letter.session = path.session;
  letter.room = path.room;
  letter.bytes.reserve(head.size + body.size);
  letter.bytes.append(head.data, head.size).append(body.data, body.size);
  if (!path.peer->put(std::move(letter))) return false;
  ++path.counters.messages_out;
  return true;
}

// Memory.

std::uint32_t hawser_plugin_port::bind(hawser_plugin_path& path, const hawser_plugin_remote_region& region,
                                       hawser_plugin_binding** out, hawser_plugin_reason* reason) {
  if (region.device_kind != HAWSER_PLUGIN_DEVICE_HOST) {
    mailslot::set_reason(reason, HAWSER_PLUGIN_SCOPE_REQUEST, "mailslot reaches host memory only");
    return HAWSER_PLUGIN_UNSUPPORTED;
  }
  auto binding = std::make_unique<hawser_plugin_binding>();
  {
    // Waits for one slice of a copy at most.
    const std::lock_guard<std::mutex> lock(path.peer->memory);
    if (!path.peer->serves) {
      mailslot::set_reason(reason, kClosed.scope, kClosed.text);
      return kClosed.code;
    }
    const std::uint32_t code = host.region_find(path.peer->agent, region.index, region.generation, region.key,
                                                HAWSER_PLUGIN_RIGHT_NONE, &binding->region, reason);
    if (code != HAWSER_PLUGIN_OK) return code;
  }
  *out = binding.get();
  path.bindings[{region.index, region.generation}] = std::move(binding);
  return HAWSER_PLUGIN_OK;
}

bool hawser_plugin_port::copy(Job& job, std::uint64_t limit, Why* why) {
  Station& target = *job.path->peer;
  const hawser_plugin_region& region = job.chunk.target->region;
  if (!admits(region, job.chunk)) {
    *why = kNotAllowed;
    return false;
  }
  const std::unique_lock<std::mutex> lock(target.memory, std::try_to_lock);
  if (!lock) return false;  // Another agent copies there now; the next turn tries again.
  if (!target.serves) *why = kClosed;
  if (target.serves && !host.region_is_open(target.agent, region.index, region.generation)) *why = kRegionClosed;
  if (why->code != HAWSER_PLUGIN_OK) return false;
  copy_part(static_cast<char*>(region.base), job, limit);
  return true;
}

hawser_plugin_submitted hawser_plugin_port::submit(hawser_plugin_path& path, const hawser_plugin_chunk* chunks,
                                                   std::size_t count) {
  hawser_plugin_submitted result{0, 0};
  std::uint64_t left = kAtOnceMax;
  for (; path.state == HAWSER_PLUGIN_UP && result.taken < count; ++result.taken) {
    Job job;
    job.path = &path;
    job.chunk = chunks[result.taken];
    Why why;
    // Only the first ones may end here, and none may overtake.
    const bool at_once = result.done == result.taken && first_job() == nullptr && job.chunk.bytes <= left;
    if (at_once && copy(job, job.chunk.bytes, &why)) {
      left -= job.chunk.bytes;
      ++result.done;
      ++path.counters.chunks;
      (job.chunk.op == HAWSER_PLUGIN_WRITE ? path.counters.bytes_out : path.counters.bytes_in) += job.chunk.bytes;
      continue;
    }
    if (path.job_count == queue_max) break;
    ++path.job_count;
    jobs[std::min<std::uint32_t>(job.chunk.priority, HAWSER_PLUGIN_BULK)].push_back(job);
  }
  return result;
}

Job* hawser_plugin_port::first_job() {
  for (auto& queue : jobs) {
    if (!queue.empty()) return &queue.front();
  }
  return nullptr;
}

void hawser_plugin_port::end_job(const Job& job, const Why& why) {
  --job.path->job_count;
  if (why.code == HAWSER_PLUGIN_OK) {
    hawser_plugin_counters& counters = job.path->counters;
    ++counters.chunks;
    (job.chunk.op == HAWSER_PLUGIN_WRITE ? counters.bytes_out : counters.bytes_in) += job.chunk.bytes;
  }
  Event& event = push(HAWSER_PLUGIN_CHUNK_DONE, *job.path, why);
  event.event.cookie = job.chunk.cookie;
  event.reason.buffer = job.done == 0 ? HAWSER_PLUGIN_BUFFER_UNTOUCHED : HAWSER_PLUGIN_BUFFER_PARTLY_WRITTEN;
}

template <typename Which>
void hawser_plugin_port::end_jobs(Which which, const Why& why) {
  for (auto& queue : jobs) {
    for (const Job& job : queue) {
      if (which(job)) end_job(job, why);
    }
    queue.erase(std::remove_if(queue.begin(), queue.end(), which), queue.end());
  }
}

void hawser_plugin_port::cancel(hawser_plugin_path& path, std::uint64_t transfer) {
  end_jobs([&](const Job& job) { return job.path == &path && job.chunk.transfer == transfer; }, kCancelled);
}

// The turn.

std::size_t hawser_plugin_port::turn(const hawser_plugin_budget& budget) {
  std::size_t work = 0;
  for (Letter& letter : station->take(kLettersAtOnce)) {
    take_letter(letter);
    ++work;
  }
  std::uint64_t left = budget.copy_bytes;
  while (Job* job = left > 0 ? first_job() : nullptr) {
    Why why;
    const std::uint64_t before = job->done;
    if (!copy(*job, left, &why) && why.code == HAWSER_PLUGIN_OK) break;
    ++work;
    left -= job->done - before;
    if (why.code == HAWSER_PLUGIN_OK && job->done < job->chunk.bytes) continue;
    const Job ended = *job;
    jobs[std::min<std::uint32_t>(ended.chunk.priority, HAWSER_PLUGIN_BULK)].pop_front();
    end_job(ended, why);
  }
  return work + events.size();
}

std::size_t hawser_plugin_port::poll(hawser_plugin_event* out, std::size_t capacity) {
  given.clear();
  while (given.size() < capacity && !events.empty()) {
    given.push_back(std::move(events.front()));
    events.pop_front();
  }
  // Their addresses are settled now.
  for (std::size_t i = 0; i < given.size(); ++i) {
    Event& each = given[i];
    out[i] = each.event;
    out[i].bytes = {each.bytes.data(), each.bytes.size()};
    out[i].reason = &each.reason;
    out[i].peer = each.event.path->peer ? &each.event.path->peer->identity : nullptr;
  }
  return given.size();
}

bool hawser_plugin_port::prepare_sleep() {
  return events.empty() && first_job() == nullptr && station->prepare_sleep();
}
