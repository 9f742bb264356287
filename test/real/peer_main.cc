// An agent in a process of its own, for tests of what processes do to each other. Reads commands as lines on stdin and
// answers each with one line, "ok ..." or "error ...", on stdout. Peers are named by their incarnation in hex.
//
//   open NAME [backend=shm,tcp] [devices=NAME] [driven=0|1] [heartbeat_ms=N] [timeout_ms=N]
//        [directory=FOLDER|etcd://HOST:PORT] [places=N] [adopt=0|1] [listen=ADDRESS] [security=LEVEL]
//   card                                    its card in hex
//   know HEX                                loads a card; answers the incarnation
//   find NAME MS                            find_peer; answers the incarnation
//   region NAME SIZE allocated|foreign      adds a region
//   put NAME BYTE | see NAME BYTE           sets all bytes; whether all are so ("yes", or the first that is not)
//   count NAME BYTE                         how many bytes are so
//   close NAME MS                           closes the region
//   plan write|read LOCAL PEER REMOTE SIZE  makes the plan that `submit` uses
//   explain                                 what the agent says of that plan, in one line
//   submit [notify=TEXT] [deadline_ms=N]    starts a transfer
//   wait MS                                 waits for the last transfer; answers its status
//   add PEER REMOTE COUNT                   adds 1 to the region's first word, so often, 8 in flight; 0: without end,
//                                           and answers other commands
//   swap PEER REMOTE COUNT                  adds 1 to the second word by compare-swaps that took place, so often
//   word NAME                               the value of its region's first word
//   flood                                   from now on writes without end, 4 in flight, and answers other commands
//   take | event                            one notification or peer event, or "none"
//   channel NUMBER CREDIT                   opens a channel
//   hold                                    how many messages its agent has taken; the agent takes no more until the
//                                           next line (not with driven=1)
//   exit | exec | abandon                   _exit(0); exec of sleep; return from main without closing
//
// Without driven=1 the agent is polled between the commands. A process that hears nothing for a minute ends.

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <vector>

#include <hawser/hawser.h>

#include "../must.h"
#include "peer_process.h"

namespace hawser::real {
namespace {

using Words = std::vector<std::string>;

constexpr int kBoredom_ms = 60'000;
constexpr std::size_t kAdditions = 8;  ///< In flight.

struct Memory {
  std::vector<std::byte> storage;
  Region region;
  std::span<std::byte> bytes;
};

class Program {
 public:
  int run();

 private:
  std::string act(const Words& words);
  std::string open(const Words& words);
  std::string add_region(const Words& words);
  std::string put(const Words& words);
  std::string see(const Words& words);
  std::string count(const Words& words);
  /// The tests' order of things goes over pipes, which sanitizers cannot follow; the lane's lock they can. So whoever
  /// touches memory that peers write does this before and after.
  void order_with_lane() { (void)agent_->counters(); }
  std::string explain();
  std::string make_plan(const Words& words);
  std::string submit(const Words& words);
  std::string add_ones(const Words& words);
  std::string swap_ones(const Words& words);
  std::string word(const Words& words);
  void keep_adding();
  void work();
  bool read_some(int timeout_ms);

  bool ended_ = false;
  bool driven_ = false;
  bool flooding_ = false, adding_ = false, holding_ = false;
  std::string buffer_;
  std::optional<Driver> driver_;
  std::unique_ptr<Agent> agent_;
  std::map<std::string, Memory> memory_;
  std::map<std::string, Peer> peers_;
  Plan plan_;
  Transfer transfer_;
  std::vector<Transfer> flood_;
  RemoteRange sum_;
  std::vector<AtomicOp> additions_;
};

std::string value_of(const Words& words, std::string_view key, std::string fallback) {
  for (const std::string& word : words) {
    if (word.starts_with(std::string(key) + "=")) return word.substr(key.size() + 1);
  }
  return fallback;
}

std::string Program::open(const Words& words) {
  AgentOptions options;
  options.name = words.at(1);
  std::stringstream backends(value_of(words, "backend", "shm,tcp"));
  for (std::string name; std::getline(backends, name, ',');) {
    options.backends.push_back({name, {}});
    const std::string devices = value_of(words, "devices", "");
    const std::string listen = value_of(words, "listen", "");
    if (name == "tcp" && !listen.empty()) options.backends.back().params["listen"] = listen;
    if (name == "verbs" && !devices.empty()) options.backends.back().params["devices"] = devices;
  }
  const std::string security = value_of(words, "security", "");
  if (security == "none") options.security = Security::kNone;
  if (security == "encrypt") options.security = Security::kEncrypt;
  driven_ = value_of(words, "driven", "0") == "1";
  options.driven = driven_;
  options.adopt = value_of(words, "adopt", "0") == "1";
  options.heartbeat = std::chrono::milliseconds(std::stoi(value_of(words, "heartbeat_ms", "250")));
  options.peer_timeout = std::chrono::milliseconds(std::stoi(value_of(words, "timeout_ms", "5000")));
  if (const int places = std::stoi(value_of(words, "places", "0")); places > 0) {
    options.limits.notification_bytes = static_cast<std::uint32_t>(places) * kPlaceCost;
  }
  const std::string folder = value_of(words, "directory", "");
  if (folder.starts_with("etcd://")) {
    options.directory = must(etcd({.endpoints = {folder.substr(7)}, .lease = std::chrono::seconds(5)}));
  } else if (!folder.empty()) {
    options.directory = must(file_directory(folder));
  }
  agent_ = std::make_unique<Agent>(must(Agent::open(std::move(options))));
  if (!driven_) return to_string(agent_->incarnation());
  driver_.emplace(must(Driver::start()));
  must(driver_->attach(*agent_));
  return to_string(agent_->incarnation());
}

std::string Program::add_region(const Words& words) {
  Memory& memory = memory_[words.at(1)];
  const std::size_t size = std::stoul(words.at(2));
  if (words.at(3) == "allocated") {
    memory.region = must(agent_->allocate({.name = words[1], .size = size}));
    memory.bytes = memory.region.bytes();
    return {};
  }
  memory.storage.resize(size);
  memory.bytes = memory.storage;
  memory.region = must(agent_->add_region({.name = words[1], .bytes = memory.bytes, .device = {}}));
  return {};
}

std::string Program::put(const Words& words) {
  order_with_lane();
  std::ranges::fill(memory_.at(words.at(1)).bytes, static_cast<std::byte>(std::stoi(words.at(2))));
  order_with_lane();
  return {};
}

std::string Program::see(const Words& words) {
  order_with_lane();
  const auto value = static_cast<std::byte>(std::stoi(words.at(2)));
  const std::span<std::byte> bytes = memory_.at(words.at(1)).bytes;
  const auto wrong = std::ranges::find_if(bytes, [&](std::byte byte) { return byte != value; });
  order_with_lane();
  if (wrong == bytes.end()) return "yes";
  return "byte " + std::to_string(wrong - bytes.begin()) + " is " + std::to_string(static_cast<int>(*wrong));
}

std::string Program::count(const Words& words) {
  order_with_lane();
  const auto value = static_cast<std::byte>(std::stoi(words.at(2)));
  const auto found = std::ranges::count(memory_.at(words.at(1)).bytes, value);
  order_with_lane();
  return std::to_string(found);
}

std::string Program::make_plan(const Words& words) {
  const Peer& peer = peers_.at(words.at(3));
  const std::size_t size = std::stoul(words.at(5));
  const std::vector<LocalRange> ours = {memory_.at(words.at(2)).region.range(0, size)};
  const std::vector<RemoteRange> theirs = {peer.range(words.at(4), 0, size)};
  plan_ = must(words.at(1) == "write" ? agent_->plan_write(peer, ours, theirs) : agent_->plan_read(peer, theirs, ours));
  return {};
}

std::string Program::explain() {
  std::string text = agent_->explain(plan_);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string Program::submit(const Words& words) {
  const std::string notify = value_of(words, "notify", "");
  SubmitOptions options;
  options.deadline = std::chrono::milliseconds(std::stoi(value_of(words, "deadline_ms", "0")));
  if (!notify.empty()) options.notify = notify;
  transfer_ = must(plan_.submit(options));
  return {};
}

std::string Program::add_ones(const Words& words) {
  sum_ = peers_.at(words.at(1)).range(words.at(2), 0, sizeof(std::uint64_t));
  const std::size_t count = std::stoul(words.at(3));
  if (count == 0) return adding_ = true, "";
  std::vector<AtomicOp> ops;
  for (std::size_t i = 0; i < count; ++i) {
    if (i >= kAdditions) must(ops[i - kAdditions].wait(kPatience));
    ops.push_back(must(fetch_add(*agent_, sum_, 1)));
  }
  for (AtomicOp& op : ops) must(op.wait(kPatience));
  return {};
}

std::string Program::swap_ones(const Words& words) {
  const RemoteRange sum = peers_.at(words.at(1)).range(words.at(2), sizeof(std::uint64_t), sizeof(std::uint64_t));
  const std::size_t count = std::stoul(words.at(3));
  std::uint64_t guess = 0;
  for (std::size_t done = 0; done < count;) {
    AtomicOp op = must(compare_swap(*agent_, sum, guess, guess + 1));
    must(op.wait(kPatience));
    const bool took_place = op.found() == guess;
    done += took_place ? 1 : 0;
    guess = took_place ? guess + 1 : op.found();
  }
  return {};
}

void Program::keep_adding() {
  std::erase_if(additions_, [](const AtomicOp& each) { return each.done(); });
  while (additions_.size() < kAdditions) {
    Result<AtomicOp> started = fetch_add(*agent_, sum_, 1);
    if (!started) break;
    additions_.push_back(std::move(*started));
  }
}

std::string Program::word(const Words& words) {
  auto* const at = reinterpret_cast<std::uint64_t*>(memory_.at(words.at(1)).bytes.data());
  return std::to_string(std::atomic_ref<std::uint64_t>(*at).load());
}

std::string Program::act(const Words& words) {
  const std::string& verb = words.at(0);
  if (verb == "open") return open(words);
  if (verb == "card") return PeerProcess::to_hex(must(agent_->card()));
  if (verb == "know" || verb == "find") {
    const Peer peer = verb == "know"
                          ? must(agent_->add_peer(PeerProcess::from_hex(words.at(1))))
                          : must(agent_->find_peer(words.at(1), std::chrono::milliseconds(std::stoi(words.at(2)))));
    return peers_.insert_or_assign(to_string(peer.incarnation()), peer).first->first;
  }
  if (verb == "region") return add_region(words);
  if (verb == "put") return put(words);
  if (verb == "see") return see(words);
  if (verb == "count") return count(words);
  if (verb == "close")
    return memory_.at(words.at(1)).region.close(std::chrono::milliseconds(std::stoi(words.at(2)))).to_string();
  if (verb == "plan") return make_plan(words);
  if (verb == "explain") return explain();
  if (verb == "submit") return submit(words);
  if (verb == "wait") return transfer_.wait(std::chrono::milliseconds(std::stoi(words.at(1)))).to_string();
  if (verb == "add") return add_ones(words);
  if (verb == "swap") return swap_ones(words);
  if (verb == "word") return word(words);
  if (verb == "flood") return flooding_ = true, "";
  if (verb == "take") {
    const auto got = agent_->take_notification();
    return got ? "got " + got->text : "none";
  }
  if (verb == "event") {
    const auto event = agent_->take_event();
    return event ? std::to_string(static_cast<int>(event->kind)) + " " + std::string(event->peer.name()) : "none";
  }
  if (verb == "channel") {
    must(agent_->open_channel(static_cast<std::uint32_t>(std::stoul(words.at(1))),
                              static_cast<std::uint32_t>(std::stoul(words.at(2)))));
    return {};
  }
  if (verb == "hold") {
    holding_ = true;
    return std::to_string(agent_->counters().total.messages_received);
  }
  if (verb == "exit") ::_exit(0);
  if (verb == "exec") return ::execlp("sleep", "sleep", "60", nullptr), "exec failed";
  if (verb == "abandon") return ended_ = true, "";
  throw std::runtime_error("unknown command " + verb);
}

void Program::work() {
  if (agent_ && !driven_ && !holding_) agent_->poll();
  if (adding_) keep_adding();
  if (!flooding_) return;
  constexpr std::size_t kInFlight = 4;
  std::erase_if(flood_, [](const Transfer& each) { return each.done(); });
  while (flood_.size() < kInFlight) {
    Result<Transfer> sent = plan_.submit();
    if (!sent) break;
    flood_.push_back(std::move(*sent));
  }
}

bool Program::read_some(int timeout_ms) {
  // A polled agent sleeps by its descriptor, as a user's own loop would.
  pollfd both[2] = {{.fd = STDIN_FILENO, .events = POLLIN, .revents = 0}, {.fd = -1, .events = POLLIN, .revents = 0}};
  if (agent_ && !driven_ && !holding_) both[1].fd = agent_->event_fd();
  if (::poll(both, 2, timeout_ms) <= 0 || both[0].revents == 0) return true;
  char bytes[65536];
  const ssize_t size = ::read(STDIN_FILENO, bytes, sizeof(bytes));
  if (size <= 0) return false;
  buffer_.append(bytes, static_cast<std::size_t>(size));
  return true;
}

int Program::run() {
  Instant heard = Clock::steady().now();
  while (!ended_) {
    if (!read_some(flooding_ || adding_ ? 0 : 1000)) ::_exit(0);
    work();
    if (const Instant now = Clock::steady().now(); now - heard > std::chrono::milliseconds(kBoredom_ms)) ::_exit(3);
    const std::size_t end = buffer_.find('\n');
    if (end == std::string::npos) continue;
    heard = Clock::steady().now();
    std::istringstream line(buffer_.substr(0, end));
    buffer_.erase(0, end + 1);
    Words words;
    for (std::string word; line >> word;) words.push_back(word);
    try {
      holding_ = false;
      std::string said = act(words);
      std::ranges::replace(said, '\n', ' ');
      std::cout << "ok " << said << std::endl;
    } catch (const std::exception& error) {
      std::cout << "error " << error.what() << std::endl;
    }
  }
  return 0;
}

}  // namespace
}  // namespace hawser::real

int main() {
  // Never destroyed: some tests end the process without a word. Static, so that LeakSanitizer finds it in the end.
  static auto* const program = new hawser::real::Program;
  return program->run();
}
