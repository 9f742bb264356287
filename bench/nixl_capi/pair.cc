#include "pair.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

#include "library.h"

namespace nixl_bench {
namespace {

using std::chrono::milliseconds;

/// Opening a backend takes half a second in the original, touching an arena as much; machines are shared.
constexpr std::chrono::seconds kOpenPatience{60};
/// For anything beside the slice itself. Longer than a worker's own patience, so that it is the worker who says what
/// did not end.
constexpr std::chrono::seconds kPatience{2 * kPatienceSeconds};
constexpr int kDyingMs = 1000;
/// After it a worker is killed.
constexpr std::chrono::seconds kQuitPatience{5};
/// Registering 100 000 regions and forgetting them again is done once a slice, whatever it takes.
constexpr std::uint32_t kManyRegions = 10'000;

Variables environment_of(const LibraryEntry& library, const Setting& setting) {
  Variables all;
  if (setting.tcp) {
    // How each of the two libraries is told to use nothing else.
    all = {{"UCX_TLS", "tcp"}, {"UCX_NET_DEVICES", "lo"}, {"HAWSER_BACKENDS", "tcp"}};
  }
  all.insert(all.end(), library.environment.begin(), library.environment.end());
  return all;
}

/// In the child, after fork: nothing but the worker itself.
[[noreturn]] void become_worker(int socket, const Variables& environment) {
  for (const auto& [name, value] : environment) ::setenv(name.c_str(), value.c_str(), 1);
  ::dup2(STDERR_FILENO, STDOUT_FILENO);  // The table stands alone on stdout.
  const int inherited = ::dup(socket);   // Without close-on-exec.
  const std::string number = std::to_string(inherited);
  std::string program = "nixl_capi_bench", mode = "worker", fd = number;
  char* const arguments[] = {program.data(), mode.data(), fd.data(), nullptr};
  ::execv("/proc/self/exe", arguments);
  ::_exit(127);
}

Json about(const char* what, const Measurement& measurement) {
  return {{"do", what}, {"size", measurement.shape.size}, {"count", measurement.shape.count}};
}

}  // namespace

WorkerProcess::WorkerProcess(std::string role, const Variables& environment) : role_(std::move(role)) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    throw Failure(std::string("socketpair: ") + std::strerror(errno));
  }
  channel_ = std::make_unique<Channel>(ends[0]);
  const hawser::base::Fd theirs(ends[1]);
  pid_ = ::fork();
  if (pid_ == 0) become_worker(theirs.get(), environment);
  if (pid_ < 0) throw Failure(std::string("fork: ") + std::strerror(errno));
}

WorkerProcess::~WorkerProcess() {
  quit();
  (void)end();
}

void WorkerProcess::quit() {
  if (pid_ < 0) return;
  try {
    const Deadline deadline(kQuitPatience);
    channel_->send({{"do", "quit"}}, deadline);
    for (;;) (void)channel_->receive(deadline);  // An answer that nobody waits for any more; in the end it is gone.
  } catch (const std::exception&) {
    return;
  }
}

std::string WorkerProcess::end() {
  if (pid_ < 0) return "it is gone";
  int status = 0;
  // One that is ending already keeps its own reason.
  ::kill(pid_, SIGKILL);
  while (::waitpid(pid_, &status, 0) < 0 && errno == EINTR) {
  }
  pid_ = -1;
  if (WIFSIGNALED(status)) return "it died by signal " + std::to_string(WTERMSIG(status));
  return "it ended with status " + std::to_string(WEXITSTATUS(status));
}

void WorkerProcess::tell(const Json& command) {
  try {
    channel_->send(command, Deadline(kPatience));
  } catch (const Failure& error) {
    throw Failure("the " + role_ + " process: " + error.what() + "; " + end());
  }
}

Json WorkerProcess::answer(Deadline deadline) {
  Json got;
  try {
    got = channel_->receive(deadline);
  } catch (const Failure& error) {
    throw Failure("the " + role_ + " process: " + error.what() + "; " + end());
  }
  if (const auto error = got.find("error"); error != got.end()) {
    throw Failure("the " + role_ + " process: " + error->get<std::string>());
  }
  return got;
}

Pair::Pair(const LibraryEntry& library, const Setting& setting, std::uint64_t arena, const std::array<int, 2>& cores)
    : library_(library),
      setting_(setting),
      arena_(arena),
      target_name_("target-" + library.name),
      target_("target", environment_of(library, setting)),
      initiator_("initiator", environment_of(library, setting)) {
  const Json target = open(target_, target_name_, cores[1]);
  const Json initiator = open(initiator_, "initiator-" + library.name, cores[0]);
  target_pid_ = target.at("pid");
  target_base_ = target.at("base");
  if (setting.metadata) return;
  target_.call({{"do", "load"}, {"md", initiator.at("md")}}, Deadline(kPatience));
  led({{"do", "load"}, {"md", target.at("md")}}, kPatience);
}

Json Pair::open(WorkerProcess& worker, const std::string& name, int core) const {
  return worker.call({{"do", "open"},
                      {"library", library_.path},
                      {"name", name},
                      {"thread", setting_.progress_thread},
                      {"arena", arena_},
                      {"touch", !setting_.metadata},
                      {"core", core}},
                     Deadline(kOpenPatience));
}

Json Pair::await_initiator(Deadline deadline) {
  std::array<pollfd, 2> both{{{initiator_.fd(), POLLIN, 0}, {target_.fd(), POLLIN, 0}}};
  while (!deadline.over()) {
    if (::poll(both.data(), both.size(), deadline.left_ms()) < 0 && errno != EINTR) break;
    if (both[1].revents != 0) blame_target();
    if (both[0].revents == 0) continue;
    try {
      return initiator_.answer(deadline);
    } catch (const Failure&) {
      // A target that is dying closes its memory before its socket, and then it is not the initiator's fault.
      if (::poll(&both[1], 1, kDyingMs) > 0) blame_target();
      throw;
    }
  }
  throw Failure("the initiator process: no answer in time");
}

void Pair::blame_target() {
  (void)target_.answer(Deadline(kPatience));  // Throws what is wrong.
  throw Failure("the target process stopped serving");
}

Json Pair::led(const Json& command, milliseconds patience) {
  target_.tell({{"do", "serve"}});
  initiator_.tell(command);
  const Json answer = await_initiator(Deadline(patience));
  target_.call({{"do", "stop"}}, Deadline(kPatience));
  return answer;
}

void Pair::prepare(const Measurement& measurement) {
  if (measurement.kind == Kind::kMetadata) return;
  Json command = about("prepare", measurement);
  command["kind"] = measurement.kind;
  command["write"] = measurement.is_write;
  command["peer"] = target_name_;
  command["base"] = target_base_;
  led(command, kPatience);
}

Timings Pair::slice(const Measurement& measurement, double seconds) {
  if (measurement.kind == Kind::kMetadata) return metadata_slice(measurement.shape.count, seconds);
  const Json answer =
      led({{"do", "run"}, {"seconds", seconds}}, kPatience + milliseconds(static_cast<std::int64_t>(seconds * 1e3)));
  Timings timings;
  for (const auto& [suffix, one] : answer.at("rows").items()) {
    timings[suffix] = {one.at("value"), one.at("p50"), one.at("p99"), one.at("count")};
  }
  return timings;
}

void Pair::verify(const Measurement& measurement) {
  if (measurement.kind == Kind::kMetadata) return;  // Each cycle did.
  const std::uint64_t nonce = ++nonce_;
  const auto target = [&](const char* what) {
    Json command = about(what, measurement);
    command["nonce"] = nonce;
    target_.call(command, Deadline(kPatience));
  };
  if (!measurement.is_write) target("fill");
  led({{"do", "verify"}, {"nonce", nonce}}, kPatience);
  if (measurement.is_write) target("check");
}

void Pair::clear() { initiator_.call({{"do", "clear"}}, Deadline(kPatience)); }

void Pair::metadata_cycle(std::uint32_t count, std::map<std::string, Samples>& samples) {
  const std::uint64_t nonce = ++nonce_;
  const Json made = target_.call({{"do", "register"}, {"count", count}}, Deadline(kPatience));
  const Json used = led({{"do", "use"}, {"md", made.at("md")}, {"base", target_base_}, {"nonce", nonce}}, kPatience);
  const Json word = target_.call({{"do", "peek"}}, Deadline(kPatience));
  const Json gone = target_.call({{"do", "deregister"}}, Deadline(kPatience));
  if (word.at("word") != nonce) throw Failure("the first region was written wrong");
  for (const char* const step : {"register", "getmd"}) samples[step].add(made.at(step));
  for (const char* const step : {"load", "first", "invalidate"}) samples[step].add(used.at(step));
  samples["deregister"].add(gone.at("deregister"));
  samples["blob"].add(static_cast<std::int64_t>(made.at("md").get_binary().size()));
}

Timings Pair::metadata_slice(std::uint32_t count, double seconds) {
  std::map<std::string, Samples> samples;
  const Slice slice(seconds);
  do {
    metadata_cycle(count, samples);
  } while (count < kManyRegions && slice.goes_on(samples["blob"].size()));
  Timings timings;
  for (const auto& [step, all] : samples) timings[step] = all.timing();
  return timings;
}

}  // namespace nixl_bench
