#include "cli/demo_decode.h"

#include <fmt/format.h>
#include <unistd.h>

#include <map>
#include <numeric>

#include "base/rng.h"
#include "base/try.h"
#include "cli/demo_control.h"
#include "cli/demo_kv.h"
#include "cli/demo_record.h"
#include "cli/demo_setup.h"
#include "cli/json_out.h"
#include "cli/status_exit.h"

namespace hawser::cli {
namespace {

constexpr Duration kSetupTimeout = std::chrono::seconds(30);
constexpr Duration kCommandTimeout = std::chrono::minutes(10);  // the parent fills and sums between two commands
constexpr Duration kLook = std::chrono::milliseconds(20);       // how often a pass looks at the control line
constexpr Duration kDecodeCloseTimeout = std::chrono::seconds(2);
constexpr std::size_t kFaultsTold = 4;  // layers whose block sums are sent for a closer look

class Decode {
 public:
  explicit Decode(Control& control) : control_(control) {}

  Status run();

 private:
  Status set_up();
  Status obey(const Json& command);
  Status begin_wave(const Json& command);
  Status receive_pass(const Json& command);
  Status take_records(std::uint32_t pass, std::map<std::uint32_t, bool>& waiting);
  Status acknowledge(const Peer& peer, const Ack& ack);
  Status verify();
  Json faults_of(std::uint32_t request, const Record& record) const;
  Control::Idle idle() {
    return [this] {
      agent_.poll();
      return Status();
    };
  }

  Control& control_;
  DemoSetup setup_;
  Agent agent_;
  std::optional<KvCache> cache_;
  std::map<std::uint32_t, std::vector<std::uint32_t>> tables_;  // by request, of this wave
  std::map<std::uint32_t, Record> records_;                     // by request, of this pass
  std::uint32_t wave_ = 0;
  std::uint32_t pass_ = 0;
};

Status Decode::run() {
  HAWSER_TRY(set_up());
  while (true) {
    HAWSER_TRY_ASSIGN(const Json command, control_.next(kCommandTimeout, idle()));
    if (command.value("kind", "") == "quit") break;
    HAWSER_TRY(obey(command));
  }
  HAWSER_TRY(cache_->close(kDecodeCloseTimeout));
  cache_.reset();
  return agent_.close(kDecodeCloseTimeout);
}

Status Decode::set_up() {
  HAWSER_TRY_ASSIGN(const Json json, control_.receive("setup", kSetupTimeout, {}));
  HAWSER_TRY_ASSIGN(setup_, setup_from(json));
  HAWSER_TRY_ASSIGN(AgentOptions options, agent_options(setup_, "decode-0"));
  HAWSER_TRY_ASSIGN(agent_, Agent::open(std::move(options)));
  HAWSER_TRY_ASSIGN(cache_, KvCache::allocate(agent_, setup_.shape, Rights::kWrite));
  HAWSER_TRY_ASSIGN(const std::string card, agent_.card());
  Json answer = control_message("card");
  answer["card"] = to_hex(card);
  HAWSER_TRY(control_.send(answer, setup_.timeout));

  HAWSER_TRY_ASSIGN(const Json peer, control_.receive("peer", kSetupTimeout, idle()));
  HAWSER_TRY_ASSIGN(const std::string bytes, from_hex(peer.value("card", "")));
  return agent_.add_peer(std::string_view(bytes)).status();
}

Status Decode::obey(const Json& command) {
  const std::string kind = command.value("kind", "");
  if (kind == "wave") return begin_wave(command);
  if (kind == "pass") return receive_pass(command);
  if (kind == "verify") return verify();
  return Status(Code::kCorrupt, fmt::format("the parent said '{}', which is no command", kind));
}

// Gives each request blocks of a freshly shuffled free list, and tells which.
Status Decode::begin_wave(const Json& command) {
  std::vector<std::uint32_t> free(setup_.shape.blocks);
  std::iota(free.begin(), free.end(), 0u);
  base::Rng(setup_.seed + 2 * ++wave_).shuffle(free);
  tables_.clear();
  Json answer = control_message("tables");
  for (const Json& request : command.value("requests", Json::array())) {
    const auto count = request.value("blocks", std::size_t{0});
    if (count > free.size()) return Status(Code::kCorrupt, "the wave needs more blocks than there are");
    auto& table = tables_[request.value("id", 0u)];
    table.assign(free.end() - static_cast<std::ptrdiff_t>(count), free.end());
    free.resize(free.size() - count);
    answer["tables"].push_back(table);
  }
  return control_.send(answer, setup_.timeout);
}

Status Decode::receive_pass(const Json& command) {
  pass_ = command.value("pass", 0u);
  records_.clear();
  cache_->wipe(static_cast<std::byte>(0xA0 + pass_ % 16));
  std::map<std::uint32_t, bool> waiting;
  for (const auto& [request, table] : tables_) waiting[request] = true;
  HAWSER_TRY(control_.send(control_message("ready"), setup_.timeout));

  const Instant deadline = Clock::steady().now() + setup_.timeout;
  Instant look = Clock::steady().now() + kLook;
  while (!waiting.empty()) {
    HAWSER_TRY(take_records(pass_, waiting));
    if (waiting.empty()) break;
    agent_.wait(kLook);
    const Instant now = Clock::steady().now();
    if (now < look) continue;
    look = now + kLook;
    if (control_.pending()) break;  // The parent has seen enough, or is gone: `run` will see which.
    if (now > deadline) {
      return Status(Code::kTimedOut, fmt::format("{} requests did not arrive within {} s", waiting.size(),
                                                 setup_.timeout.count() / 1000000000));
    }
  }
  return Status();
}

Status Decode::take_records(std::uint32_t pass, std::map<std::uint32_t, bool>& waiting) {
  while (auto notification = agent_.take_notification()) {
    auto record = decode_record(notification->text);
    if (!record || record->pass != pass || waiting.erase(record->request) == 0) {
      return Status(Code::kCorrupt, fmt::format("an unexpected notification of {} bytes from {}",
                                                notification->text.size(), notification->peer.name()));
    }
    const std::uint32_t request = record->request;
    HAWSER_TRY(acknowledge(notification->peer, {pass, request}));
    records_[request] = *std::move(record);
  }
  return Status();
}

Status Decode::acknowledge(const Peer& peer, const Ack& ack) {
  const std::string text = encode(ack);
  const Instant deadline = Clock::steady().now() + setup_.timeout;
  while (true) {
    const Status status = peer.notify(text);
    if (status.code() != Code::kBusy || Clock::steady().now() > deadline) return status;
    agent_.poll();  // Room comes as the peer takes what it has.
  }
}

// Compares the memory's sums with those that the prefill side made of its own.
Status Decode::verify() {
  const Instant start = Clock::steady().now();
  Json answer = control_message("verified");
  answer["good"] = 0;
  answer["faults"] = Json::array();
  std::uint32_t good = 0;
  for (const auto& [request, table] : tables_) {
    const auto record = records_.find(request);
    Json faults = Json::array();
    if (record == records_.end() || record->second.blocks != table) {
      faults.push_back({{"request", request}, {"missing", true}});
    } else {
      faults = faults_of(request, record->second);
    }
    good += faults.empty() ? 1 : 0;
    for (const Json& fault : faults) {
      if (answer["faults"].size() < kFaultsTold) answer["faults"].push_back(fault);
    }
    agent_.poll();
  }
  answer["good"] = good;
  answer["ns"] = (Clock::steady().now() - start).count();
  return control_.send(answer, setup_.timeout);
}

Json Decode::faults_of(std::uint32_t request, const Record& record) const {
  Json faults = Json::array();
  for (std::uint32_t layer = 0; layer < setup_.shape.layers; ++layer) {
    const auto sums = cache_->block_sums(layer, record.blocks);
    const bool same = layer < record.layer_sums.size() && fold_sums(sums) == record.layer_sums[layer];
    if (!same) faults.push_back({{"request", request}, {"layer", layer}, {"sums", sums}});
  }
  return faults;
}

}  // namespace

int run_decode(Control control) {
  const Status status = Decode(control).run();
  if (status.ok()) return kExitOk;
  Json message = control_message("error");
  message["status"] = to_json(status);
  // When the parent is gone there is nobody left to tell.
  if (!control.send(message, std::chrono::seconds(1)).ok()) {
    fmt::print(stderr, "hawser demo (decode, pid {}): {}\n", getpid(), status.to_string());
  }
  return exit_code(status);
}

}  // namespace hawser::cli
