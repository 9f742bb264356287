#include "cli/bench/target.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/inside.h"
#include "base/try.h"
#include "cli/bench/blocks.h"
#include "cli/bench/cores.h"
#include "cli/bench/message_channel.h"
#include "cli/bench/raw_sockets.h"
#include "cli/bench/stage.h"
#include "cli/json_out.h"
#include "cli/status_exit.h"

namespace hawser::cli::bench {
namespace {

constexpr Duration kCommandTimeout = std::chrono::minutes(10);
constexpr Duration kAnswerTimeout = std::chrono::seconds(30);
constexpr Duration kTargetCloseTimeout = std::chrono::seconds(2);

Result<std::span<std::byte>> map_foreign(std::uint64_t size) {
  void* base = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (base == MAP_FAILED) return base::errno_status("memory for the bench's target", errno);
  return std::span<std::byte>(static_cast<std::byte*>(base), size);
}

Json done() { return control_message("done"); }

}  // namespace

TargetProcess::~TargetProcess() {
  more_regions_.clear();
  more_.clear();
  for (auto& [name, memory] : memories_) {
    memory.region = Region();
    if (!memory.own.empty()) munmap(memory.own.data(), memory.own.size());
  }
}

Status TargetProcess::run() {
  while (true) {
    HAWSER_TRY_ASSIGN(const Json command, control_.next(kCommandTimeout, idle()));
    const std::string kind = command.value("kind", "");
    if (kind == "quit") break;
    if (kind == "phase") {
      HAWSER_TRY(control_.send(done(), kAnswerTimeout));
      HAWSER_TRY_ASSIGN(const Json ended, phase(command));
      HAWSER_TRY(control_.send(ended, kAnswerTimeout));
      continue;
    }
    HAWSER_TRY_ASSIGN(const Json answer, obey(command));
    HAWSER_TRY(control_.send(answer, kAnswerTimeout));
  }
  if (driver_) (void)driver_->detach(agent_);
  return core_of(agent_) ? agent_.close(kTargetCloseTimeout) : Status();
}

Result<Json> TargetProcess::obey(const Json& command) {
  const std::string kind = command.value("kind", "");
  if (kind == "open") return open(command);
  if (kind == "memory") return memory(command);
  if (kind == "forget") return forget(command);
  if (kind == "fill") return fill_memory(command);
  if (kind == "sum") return sum_memory(command);
  if (kind == "raw_sockets") return raw_sockets(command);
  if (kind == "more_agents") return more_agents(command);
  if (kind == "pong") return pong(command);
  return Status(Code::kCorrupt, fmt::format("the parent said '{}', which is no command", kind));
}

Control::Idle TargetProcess::idle() {
  return [this] {
    poll_all();
    return Status();
  };
}

void TargetProcess::poll_all() {
  if (core_of(agent_)) agent_.poll();
  for (Agent& agent : more_) agent.poll();
}

Result<Json> TargetProcess::card() const {
  HAWSER_TRY_ASSIGN(const std::string bytes, agent_.card());
  Json answer = done();
  answer["card"] = to_hex(bytes);
  return answer;
}

Result<Json> TargetProcess::open(const Json& command) {
  HAWSER_TRY_ASSIGN(Board board, Board::attach(getppid(), command.value("board_fd", -1),
                                               command.value("arena_bytes", std::uint64_t{0})));
  board_.emplace(std::move(board));
  config_ = command.value("config", "");
  const bool driven = command.value("driven", false);
  HAWSER_TRY_ASSIGN(AgentOptions options,
                    bench_agent_options(config_, backends_from(command.value("backends", Json())), "bench-1", driven));
  HAWSER_TRY_ASSIGN(agent_, Agent::open(std::move(options)));
  if (driven) {
    HAWSER_TRY_ASSIGN(Driver driver, Driver::start());
    driver_.emplace(std::move(driver));
    HAWSER_TRY(driver_->attach(agent_));
  }
  core_ = command.value("core", -1);
  if (core_ >= 0) pin_to(core_);
  HAWSER_TRY_ASSIGN(const std::string theirs, from_hex(command.value("card", "")));
  HAWSER_TRY(agent_.add_peer(std::string_view(theirs)).status());
  HAWSER_TRY(agent_.open_channel(kBenchChannel, kBenchCredit));
  return card();
}

Result<Json> TargetProcess::memory(const Json& command) {
  const std::string name = command.value("name", "");
  const std::uint64_t size = command.value("size", std::uint64_t{0});
  if (memories_.contains(name)) HAWSER_TRY(forget(command).status());
  Memory memory;
  if (command.value("foreign", false)) {
    HAWSER_TRY_ASSIGN(memory.own, map_foreign(size));
    HAWSER_TRY_ASSIGN(memory.region, agent_.add_region({.name = name, .bytes = memory.own}));
  } else {
    HAWSER_TRY_ASSIGN(memory.region, agent_.allocate({.name = name, .size = size}));
  }
  fill(memory.region.bytes(), 1);  // Touches it.
  HAWSER_TRY_ASSIGN(Json answer, card());
  answer["address"] = reinterpret_cast<std::uintptr_t>(memory.region.bytes().data());
  memories_.insert_or_assign(name, std::move(memory));
  return answer;
}

Result<Json> TargetProcess::forget(const Json& command) {
  const auto found = memories_.find(command.value("name", ""));
  if (found == memories_.end()) return Status(Code::kNotFound, "no such memory in the second process");
  HAWSER_TRY(found->second.region.close(kTargetCloseTimeout));
  if (!found->second.own.empty()) munmap(found->second.own.data(), found->second.own.size());
  memories_.erase(found);
  return done();
}

Result<std::span<std::byte>> TargetProcess::bytes_of(const Json& command) const {
  const auto found = memories_.find(command.value("name", ""));
  if (found == memories_.end()) return Status(Code::kNotFound, "no such memory in the second process");
  return found->second.region.bytes();
}

Result<Json> TargetProcess::fill_memory(const Json& command) {
  HAWSER_TRY_ASSIGN(const std::span<std::byte> bytes, bytes_of(command));
  fill(bytes, command.value("seed", std::uint64_t{0}));
  return done();
}

Result<Json> TargetProcess::sum_memory(const Json& command) {
  HAWSER_TRY_ASSIGN(const std::span<std::byte> bytes, bytes_of(command));
  Json answer = done();
  answer["sum"] = sum_of(bytes, block_list_from(command.value("blocks", Json::object())));
  return answer;
}

Result<Json> TargetProcess::raw_sockets(const Json& command) {
  for (std::size_t i = 0; i < command.value("count", std::size_t{0}); ++i) {
    HAWSER_TRY_ASSIGN(base::Fd fd, raw_connect(command.value("port", std::uint16_t{0})));
    sockets_.push_back(std::move(fd));
  }
  return done();
}

// The plan by which this side's word goes back into the parent's memory of the same name.
Result<Json> TargetProcess::pong(const Json& command) {
  HAWSER_TRY_ASSIGN(const std::string card, from_hex(command.value("card", "")));
  HAWSER_TRY_ASSIGN(const Peer peer, agent_.add_peer(std::string_view(card)));
  const auto found = memories_.find("pong");
  if (found == memories_.end()) return Status(Code::kNotFound, "no such memory in the second process");
  const LocalRange from = found->second.region.range(0, 8);
  const RemoteRange to = peer.range("pong", 64, 8);
  HAWSER_TRY_ASSIGN(pong_, agent_.plan_write(peer, {&from, 1}, {&to, 1}));
  std::memcpy(&pong_answered_, found->second.region.bytes().data(), sizeof(pong_answered_));
  return done();
}

// Agents beside the stage's own, each with a small region "word"; their cards. A count of 0 drops them all.
Result<Json> TargetProcess::more_agents(const Json& command) {
  Json answer = done();
  answer["cards"] = Json::array();
  const std::size_t count = command.value("count", std::size_t{0});
  if (count == 0) {
    more_regions_.clear();
    for (Agent& agent : more_) {
      if (driver_) (void)driver_->detach(agent);
    }
    more_.clear();
  }
  for (std::size_t i = 0; i < count; ++i) {
    HAWSER_TRY_ASSIGN(AgentOptions options,
                      bench_agent_options(config_, backends_from(command.value("backends", Json())),
                                          fmt::format("more-{}", i), driver_.has_value()));
    HAWSER_TRY_ASSIGN(Agent agent, Agent::open(std::move(options)));
    HAWSER_TRY_ASSIGN(Region region, agent.allocate({.name = "word", .size = 4096}));
    HAWSER_TRY_ASSIGN(const std::string card, agent.card());
    if (driver_) HAWSER_TRY(driver_->attach(agent));
    answer["cards"].push_back(to_hex(card));
    more_.push_back(std::move(agent));
    more_regions_.push_back(std::move(region));
  }
  return answer;
}

int run_target(base::Fd control_fd) {
  Control control(std::move(control_fd));
  Status status;
  {
    TargetProcess target(control);
    status = target.run();
    if (!status.ok()) {
      Json message = control_message("error");
      message["status"] = cli::to_json(status);
      (void)control.send(message, std::chrono::seconds(1));
    }
  }
  return exit_code(status);
}

}  // namespace hawser::cli::bench
