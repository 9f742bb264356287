#include "cli/bench/stage.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>

#include "base/inside.h"
#include "base/spin.h"
#include "cli/bench/cores.h"
#include "cli/bench/raw_lines.h"
#include "cli/bench/raw_sockets.h"
#include "cli/bench/sampler.h"
#include "cli/command.h"
#include "cli/interrupt.h"

namespace hawser::cli::bench {
namespace {

constexpr Duration kStageCloseTimeout = std::chrono::seconds(2);
constexpr Duration kLastWords = std::chrono::milliseconds(300);  // for a dying child to say why
constexpr std::uint32_t kBounces = 2000;                         // in one probe
constexpr int kProbes = 3;                                       // noise only adds, so the shortest counts

}  // namespace

Json to_json(const std::vector<BackendSpec>& backends) {
  Json json = Json::array();
  for (const BackendSpec& spec : backends) json.push_back({{"name", spec.name}, {"params", spec.params}});
  return json;
}

std::vector<BackendSpec> backends_from(const Json& json) {
  std::vector<BackendSpec> backends;
  for (const Json& spec : json) backends.push_back({spec.value("name", ""), spec.value("params", Params())});
  return backends;
}

Result<AgentOptions> bench_agent_options(const std::string& config, const std::vector<BackendSpec>& backends,
                                         std::string name, bool driven) {
  HAWSER_TRY_ASSIGN(LoadedConfig loaded, configuration(config));
  AgentOptions options = std::move(loaded.options);
  options.name = std::move(name);
  options.directory.reset();  // The two exchange their cards over the control line.
  options.driven = driven;
  if (!backends.empty()) options.backends = backends;
  return options;
}

Result<std::unique_ptr<Stage>> Stage::open(const StageSpec& spec, const StageSetup& setup) {
  std::unique_ptr<Stage> stage(new Stage(spec, setup));
  HAWSER_TRY(stage->start());
  HAWSER_TRY(stage->introduce());
  return stage;
}

Status Stage::start() {
  unpin();  // The child inherits what this process may use.
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return base::errno_status("the line to the second process", errno);
  }
  control_.emplace(base::Fd(ends[0]));
  base::Fd theirs(ends[1]);
  HAWSER_TRY_ASSIGN(Board board, Board::create(setup_.arena_bytes));
  board_.emplace(std::move(board));
  HAWSER_TRY_ASSIGN(Child child, Child::start("bench", "target", theirs));
  theirs.reset();  // Only the child has it now, so its death closes the line.
  child_.emplace(std::move(child));
  return Status();
}

Status Stage::introduce() {
  const auto cores = bench_cores();
  const bool pinned = !spec_.driven && cores[1] >= 0;
  HAWSER_TRY_ASSIGN(AgentOptions options, bench_agent_options(setup_.config, spec_.backends, "bench-0", spec_.driven));
  HAWSER_TRY_ASSIGN(agent_, Agent::open(std::move(options)));
  if (spec_.driven) {
    HAWSER_TRY_ASSIGN(Driver driver, Driver::start());
    driver_.emplace(std::move(driver));
    HAWSER_TRY(driver_->attach(agent_));
  }
  if (pinned) pin_to(cores[0]);
  HAWSER_TRY_ASSIGN(const std::string card, agent_.card());
  Json open = control_message("open");
  open["board_fd"] = board_->fd();
  open["arena_bytes"] = setup_.arena_bytes;
  open["config"] = setup_.config;
  open["backends"] = bench::to_json(spec_.target_backends.empty() ? spec_.backends : spec_.target_backends);
  open["driven"] = spec_.driven;
  open["core"] = pinned ? cores[1] : -1;
  open["card"] = to_hex(card);
  HAWSER_TRY_ASSIGN(const Json answer, ask(open));
  HAWSER_TRY_ASSIGN(const std::string theirs, from_hex(answer.value("card", "")));
  HAWSER_TRY_ASSIGN(peer_, agent_.add_peer(std::string_view(theirs)));
  // Connecting needs both sides' progress.
  Status connected;
  HAWSER_TRY(during({{"mode", "serve"}}, [&] {
               connected = peer_.connect(std::chrono::seconds(10));
               return connected;
             }).status());
  return connected;
}

Stage::~Stage() {
  if (control_ && child_ && child_->running().ok()) {
    (void)control_->send(control_message("quit"), kStageCloseTimeout);
    const Instant deadline = Clock::steady().now() + 2 * kStageCloseTimeout;
    // Its agent says goodbye to ours, which must be there to listen.
    while (child_->running().ok() && Clock::steady().now() < deadline) {
      if (core_of(agent_)) agent_.wait(std::chrono::milliseconds(5));
    }
  }
  if (core_of(agent_)) {
    if (driver_) (void)driver_->detach(agent_);
    (void)agent_.close(kStageCloseTimeout);
  }
  unpin();
}

Control::Idle Stage::idle() {
  return [this] {
    if (core_of(agent_)) agent_.poll();
    return alive();
  };
}

Status Stage::alive() {
  HAWSER_TRY(interrupt_status());
  const Status running = child_->running();
  if (running.ok()) return running;
  // Its last words say more than its end.
  const Status words = control_->next(kLastWords, {}).status();
  return words.ok() || words.code() == Code::kDisconnected ? running : running.because(words);
}

Result<Json> Stage::ask(const Json& command) {
  HAWSER_TRY(control_->send(command, setup_.patience));
  return control_->receive("done", setup_.patience, idle());
}

Result<Json> Stage::during(Json mode, const std::function<Status()>& body) {
  mode["kind"] = "phase";
  mode["number"] = ++phases_;
  HAWSER_TRY(ask(mode).status());
  const Status status = body();
  board_->page().over.store(phases_, std::memory_order_release);
  Result<Json> answer = control_->receive("ended", setup_.patience, idle());
  if (!status.ok()) {
    const Status running = child_->running();
    return running.ok() ? status : running.because(status);
  }
  return answer;
}

Result<double> Stage::measure(Json mode, const std::function<Result<double>()>& body) {
  double figure = 0;
  HAWSER_TRY(during(std::move(mode), [&]() -> Status {
               HAWSER_TRY_ASSIGN(figure, body());
               return Status();
             }).status());
  return figure;
}

Result<RemoteMemory> Stage::remote_memory(const std::string& name, std::uint64_t size, MemoryKind kind) {
  Json command = control_message("memory");
  command["name"] = name;
  command["size"] = size;
  command["foreign"] = kind == MemoryKind::kForeign;
  HAWSER_TRY_ASSIGN(const Json answer, ask(command));
  HAWSER_TRY_ASSIGN(const std::string card, from_hex(answer.value("card", "")));
  HAWSER_TRY_ASSIGN(peer_, agent_.add_peer(std::string_view(card)));
  return RemoteMemory{name, answer.value("address", std::uint64_t{0}), size};
}

Status Stage::forget_memory(const std::string& name) {
  Json command = control_message("forget");
  command["name"] = name;
  return ask(command).status();
}

std::int64_t Stage::core_round_trip_ns() {
  const auto cores = bench_cores();
  if (cores[1] < 0) return 0;
  std::int64_t best = 0;
  if (spec_.driven) pin_to(cores[0]);
  const auto bounced = during({{"mode", "bounce"}, {"core", cores[1]}}, [&]() -> Status {
    for (int i = 0; i < kProbes; ++i) {
      const std::int64_t start = now_ns();
      HAWSER_TRY(bounce_lines(board_->page(), kBounces));
      const std::int64_t ns = (now_ns() - start) / kBounces;
      best = best == 0 ? ns : std::min(best, ns);
    }
    return Status();
  });
  if (spec_.driven) unpin();
  return bounced ? best : -1;
}

Result<std::vector<int>> Stage::raw_sockets(std::size_t count) {
  if (sockets_.empty()) {
    HAWSER_TRY_ASSIGN(RawListener listener, RawListener::open());
    Json command = control_message("raw_sockets");
    command["port"] = listener.port();
    command["count"] = kRawSocketsMax;
    HAWSER_TRY(ask(command).status());
    for (std::size_t i = 0; i < kRawSocketsMax; ++i) {
      HAWSER_TRY_ASSIGN(base::Fd socket, listener.accept());
      sockets_.push_back(std::move(socket));
    }
  }
  std::vector<int> fds;
  for (std::size_t i = 0; i < std::min(count, sockets_.size()); ++i) fds.push_back(sockets_[i].get());
  return fds;
}

Status finish(Agent& agent, const Transfer& transfer, Duration patience) {
  std::int64_t deadline = 0;
  for (std::uint32_t polls = 1; !transfer.done(); ++polls) {
    if (agent.poll() == 0) base::cpu_relax();
    if (polls % 1024 != 0) continue;
    if (deadline == 0) deadline = now_ns() + patience.count();
    if (now_ns() > deadline) return Status(Code::kTimedOut, "a transfer did not end, although its deadline passed");
    HAWSER_TRY(interrupt_status());
  }
  return transfer.status();
}

Status await_notification(Agent& agent, Notification& out, Duration patience) {
  std::int64_t deadline = 0;
  for (std::uint32_t polls = 1; agent.take_notifications({&out, 1}) == 0; ++polls) {
    agent.poll();
    if (polls % 1024 != 0) continue;
    if (deadline == 0) deadline = now_ns() + patience.count();
    if (now_ns() > deadline) return Status(Code::kTimedOut, "no notification came from the second process");
    HAWSER_TRY(interrupt_status());
  }
  return Status();
}

}  // namespace hawser::cli::bench
