// hawser serve: an agent with one region that peers may read and write, to try things against. `hawser ping` is its
// counterpart, and so is any program with a Hawser agent.

#include <fmt/format.h>
#include <hawser/agent.h>
#include <unistd.h>

#include <array>
#include <deque>
#include <memory>

#include "agent/peer_names.h"
#include "base/address.h"
#include "base/shown.h"
#include "base/try.h"
#include "cli/command.h"
#include "cli/files/file_server.h"
#include "cli/interrupt.h"
#include "cli/json_out.h"
#include "cli/reach.h"
#include "cli/status_exit.h"
#include "cli/units.h"
#include "identity/files.h"

namespace hawser::cli {
namespace {

constexpr Duration kServeSlice = std::chrono::milliseconds(50);  // between two looks at the clock and at Ctrl-C
constexpr Duration kCloseTimeout = std::chrono::seconds(2);
constexpr std::size_t kEchoesMax = 4096;  // waiting for room at their peers; beyond it the oldest is dropped

constexpr const char* kServeExamples =
    "  hawser serve --name store\n"
    "  hawser serve --name store --listen 10.0.0.5:7000 --size 4GiB\n"
    "  hawser serve --name store --dir /srv/models --listen 10.0.0.5:7000\n"
    "  hawser serve --name store --directory /shared/cards --for 10m --json";

struct ServeArguments {
  Common common;
  std::uint64_t size = 1ull << 30;
  Duration lifetime = Duration::zero();  ///< Zero: until Ctrl-C.
  Duration interval = std::chrono::seconds(5);
  std::string folder;  ///< Served to `hawser cp`; empty: none.
  bool read_only = false;
  Reach reach;
};

class Server {
 public:
  Server(const ServeArguments& a, Agent agent, Region memory)
      : a_(a), agent_(std::move(agent)), memory_(std::move(memory)) {}

  /// Before `run`: answers `hawser cp` too.
  Status serve_folder();
  Status run();

 private:
  void announce();
  void take_events();
  void take_notifications();
  void send_echoes();
  void report();
  void say(Json json, const std::string& text);

  const ServeArguments& a_;
  Agent agent_;
  Region memory_;
  std::unique_ptr<FileServer> files_;
  std::deque<Notification> echoes_;
  std::uint64_t dropped_ = 0;
};

/// As a peer types it: beyond this host with the ticket, without which it would not be let in.
std::string typed_address(const std::string& address, const std::string& ticket) {
  const Result<base::HostPort> parts = base::parse_host_port(address);
  if (!parts || ticket.empty()) return address;
  const Result<base::SocketAddress> numeric = base::numeric_address(*parts);
  return numeric && base::is_loopback(*numeric) ? address : address + "#" + ticket;
}

// People read lines, programs one JSON object a line.
void Server::say(Json json, const std::string& text) {
  if (a_.common.json) {
    print_line(json);
  } else {
    fmt::print("{}\n", text);
    std::fflush(stdout);
  }
}

Json event(std::string_view kind) {
  Json json = document("serve");
  json["event"] = kind;
  return json;
}

Status Server::serve_folder() {
  HAWSER_TRY_ASSIGN(files_, FileServer::open(agent_, a_.folder, !a_.read_only));
  return Status();
}

void Server::announce() {
  Json json = event("ready");
  json["name"] = agent_.name();
  json["pid"] = getpid();
  json["region"] = {{"name", memory_.name()}, {"bytes", memory_.size()}};
  json["backends"] = Json::array();
  std::string text = fmt::format("{} serves \"{}\", {}\n", agent_.name(), memory_.name(), short_size(memory_.size()));
  std::string target;
  for (const BackendReport& report : agent_.backends()) {
    json["backends"].push_back({{"name", report.name}, {"open", report.open}, {"address", report.address}});
    text += report.open ? fmt::format("  {} at {}\n", report.name, report.address)
                        : fmt::format("  {} is not open: {}\n", report.name, report.cause.to_string());
    const bool is_typed = report.name == "tcp" || (report.name == "quic" && target.empty());
    if (!report.open || !is_typed) continue;
    const std::string address = first_address(report.address);
    // Over UDP this host's kernel does not tell who is of the same user, so the ticket is needed always.
    target =
        fmt::format("{}@{}", agent_.name(),
                    report.name == "quic" ? address + "#" + agent_.ticket() : typed_address(address, agent_.ticket()));
  }
  if (!a_.reach.directory.empty()) target = fmt::format("{} --directory {}", agent_.name(), a_.reach.directory);
  json["target"] = target;
  if (files_) json["folder"] = {{"path", a_.folder}, {"writable", !a_.read_only}};
  say(json, text + (target.empty() ? "  no way to reach it: give --directory, or let tcp or quic open"
                    : files_       ? fmt::format("try: hawser cp {}:FILE .", target)
                                   : fmt::format("try: hawser ping {}", target)));
}

void Server::take_events() {
  while (const auto news = agent_.take_event()) {
    Json json = event(agent::name_of(news->kind));
    json["peer"] = news->peer.name();
    json["incarnation"] = to_string(news->peer.incarnation());
    json["cause"] = to_json(news->cause);
    say(json, fmt::format("peer {} {}{}", base::shown(news->peer.name()), agent::name_of(news->kind),
                          news->cause.ok() ? "" : ": " + news->cause.to_string()));
  }
}

void Server::take_notifications() {
  while (auto notification = agent_.take_notification()) {
    echoes_.push_back(*std::move(notification));
    if (echoes_.size() > kEchoesMax) {
      echoes_.pop_front();
      ++dropped_;
    }
  }
}

// Each notification goes back to where it came from. A peer that does not read keeps only its own place in the queue.
void Server::send_echoes() {
  for (std::size_t left = echoes_.size(); left > 0; --left) {
    Notification echo = std::move(echoes_.front());
    echoes_.pop_front();
    if (echo.peer.notify(echo.text).code() == Code::kBusy) echoes_.push_back(std::move(echo));
  }
}

void Server::report() {
  const AgentCounters counters = agent_.counters();
  std::size_t up = 0;
  std::uint64_t in = 0, out = 0;
  for (const Peer& peer : agent_.peers()) up += peer.state() == PeerState::kUp ? 1 : 0;
  for (const PathCounters& path : counters.paths) {
    in += path.bytes_in;
    out += path.bytes_out;
  }
  Json json = event("counters");
  json["peers_up"] = up;
  json["echoes_dropped"] = dropped_;
  if (files_) {
    const FileServerCounters files = files_->counters();
    json["files"] = {{"requests", files.requests},           {"refused", files.refused},
                     {"bytes_read", files.bytes_read},       {"bytes_written", files.bytes_written},
                     {"files_written", files.files_written}, {"uploads", files.uploads}};
  }
  json["counters"] = Json::parse(to_json(counters), nullptr, false);
  say(json, fmt::format("{} peers up, {} in, {} out, {} notifications", up, short_size(in), short_size(out),
                        counters.total.notifications_received));
}

Status Server::run() {
  announce();
  const Instant start = Clock::steady().now();
  const Instant end = a_.lifetime > Duration::zero() ? start + a_.lifetime : Instant::max();
  Instant next_report = a_.interval > Duration::zero() ? start + a_.interval : Instant::max();
  while (!interrupted()) {
    take_events();
    if (files_) files_->take_requests();
    take_notifications();
    send_echoes();
    const Instant now = Clock::steady().now();
    if (now >= end) break;
    if (now >= next_report) {
      next_report = now + a_.interval;
      report();
    }
    agent_.wait(std::min(kServeSlice, end - now));
  }
  report();
  files_.reset();
  const Status closed = memory_.close(kCloseTimeout);
  const Status agent = agent_.close(kCloseTimeout);
  return closed.ok() ? agent : closed;
}

Status serve(const ServeArguments& a) {
  HAWSER_TRY_ASSIGN(AgentOptions options, agent_options(a.reach, a.common.config));
  // The loop below runs the agent all the time, as a Driver would: peers may expect heartbeats.
  options.driven = true;
  if (options.name.empty()) options.name = identity::name_beneath(options.identity.folder, "serve");
  HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(options)));
  HAWSER_TRY_ASSIGN(Region memory, agent.allocate({.name = "memory", .size = a.size}));
  Server server(a, std::move(agent), std::move(memory));
  if (!a.folder.empty()) HAWSER_TRY(server.serve_folder());
  return server.run();
}

int run_serve(const ServeArguments& a) {
  catch_interrupts();
  const Status status = serve(a);
  // Ctrl-C is how a server is meant to end.
  return status.ok() ? kExitOk : fail("serve", a.common.json, status);
}

}  // namespace

void add_serve(Shell& shell) {
  auto a = std::make_shared<ServeArguments>();
  CLI::App* command =
      add_command(shell, "serve", "Run an agent with memory that peers may read and write", kServeExamples, a->common);
  command->add_option("--name", a->reach.name, "Name of the agent (default: the configuration's, or serve)");
  command->add_option(
      "--listen", a->reach.listen,
      "Where tcp and quic listen: addresses, interfaces or networks, not those after a ^, and :PORT or :FIRST-LAST "
      "(eth0:7000, 10.0.0.0/8,^docker0:7000; default: loopback, any free port)");
  add_reach(command, a->reach);
  command->add_option("--dir", a->folder, "Folder whose files `hawser cp` may read and write");
  command->add_flag("--read-only", a->read_only, "With --dir: let read only");
  add_size(command, "--size", a->size, "Size of the region \"memory\" (default 1GiB)");
  add_duration(command, "--for", a->lifetime, "End after this time (default: at Ctrl-C)");
  add_duration(command, "--interval", a->interval, "Between two lines of counters; 0 for none (default 5s)");
  on_run(shell, command, [a] { return run_serve(*a); });
}

}  // namespace hawser::cli
