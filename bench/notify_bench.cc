// Round trips of a write of 8 bytes with a notification: two processes, each with an agent, answer each other.
//
// usage: notify_bench ROUNDS BACKEND [HERE THERE] [name=value ...]
//   HERE, THERE: the parameter `devices` of either process ("-": none); the rest are parameters of both.
// Prints the median, the 90th and the 99th percentile in us. In a machine with two RDMA devices (tools/rdma-vm):
//   notify_bench 1000 verbs rxe0 rxe1 immediates=0

#include <hawser/hawser.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include "must.h"

namespace {

using Time = std::chrono::steady_clock;
constexpr std::uint64_t kBytes = 8;
constexpr int kWarmUp = 50;

struct Arguments {
  int rounds = 0;
  hawser::BackendSpec here, there;
};

void put(int fd, const std::string& text) {
  const std::uint64_t size = text.size();
  if (::write(fd, &size, sizeof(size)) < 0 || ::write(fd, text.data(), size) < 0) std::exit(1);
}

std::string take(int fd) {
  std::uint64_t size = 0;
  if (::recv(fd, &size, sizeof(size), MSG_WAITALL) != sizeof(size)) std::exit(1);
  std::string text(size, '\0');
  if (::recv(fd, text.data(), size, MSG_WAITALL) != static_cast<ssize_t>(size)) std::exit(1);
  return text;
}

/// One end: writes into the other's memory, and waits for the other's write.
class End {
 public:
  End(const std::string& name, const hawser::BackendSpec& backend, int socket)
      : agent_(must(hawser::Agent::open({.name = name, .backends = {backend}}))),
        region_(must(agent_.allocate({.name = "memory", .size = 2 * kBytes}))) {
    put(socket, must(agent_.card()));
    peer_ = must(agent_.add_peer(take(socket)));
    const hawser::LocalRange from = region_.range(0, kBytes);
    const hawser::RemoteRange to = peer_.range("memory", kBytes, kBytes);
    plan_ = must(agent_.plan_write(peer_, {&from, 1}, {&to, 1}));
  }
  void write() { last_ = must(plan_.submit({.notify = "done"})); }
  void wait() {
    while (!agent_.take_notification()) {
      if (agent_.poll() == 0) agent_.wait(std::chrono::milliseconds(20));
    }
    if (!last_) return;
    if (const hawser::Status status = last_->wait(); !status.ok()) hawser::abort_on(status);
  }
  /// Makes progress until the other says that it has all.
  void finish(int socket) {
    char first = 0;
    while (::recv(socket, &first, 1, MSG_PEEK | MSG_DONTWAIT) < 0) agent_.wait(std::chrono::milliseconds(1));
  }

 private:
  hawser::Agent agent_;
  hawser::Region region_;
  hawser::Peer peer_;
  hawser::Plan plan_;
  std::optional<hawser::Transfer> last_;
};

void answer(const Arguments& args, int socket) {
  End end("answers", args.there, socket);
  for (int i = 0; i < args.rounds + kWarmUp; ++i) {
    end.wait();
    end.write();
  }
  end.finish(socket);
}

void ask(const Arguments& args, int socket) {
  End end("asks", args.here, socket);
  std::vector<double> us;
  for (int i = 0; i < args.rounds + kWarmUp; ++i) {
    const Time::time_point begin = Time::now();
    end.write();
    end.wait();
    if (i >= kWarmUp) us.push_back(std::chrono::duration<double, std::micro>(Time::now() - begin).count());
  }
  put(socket, "done");
  std::ranges::sort(us);
  const auto at = [&](double share) {
    return us[static_cast<std::size_t>(share * static_cast<double>(us.size() - 1))];
  };
  std::printf("%.1f %.1f %.1f\n", at(0.5), at(0.9), at(0.99));
}

Arguments parse(int argc, char** argv) {
  Arguments args;
  args.rounds = std::atoi(argv[1]);
  args.here.name = args.there.name = argv[2];
  for (int i = 3; i < argc; ++i) {
    const char* equal = std::strchr(argv[i], '=');
    if (equal != nullptr) {
      const std::string name(argv[i], static_cast<std::size_t>(equal - argv[i]));
      args.here.params[name] = args.there.params[name] = equal + 1;
    } else if (std::strcmp(argv[i], "-") != 0) {
      (i == 3 ? args.here : args.there).params["devices"] = argv[i];
    }
  }
  return args;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3 || std::atoi(argv[1]) <= 0) {
    std::fprintf(stderr, "usage: notify_bench ROUNDS BACKEND [HERE THERE] [name=value ...]\n");
    return 2;
  }
  const Arguments args = parse(argc, argv);
  int sockets[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) != 0) return 1;
  const pid_t child = ::fork();
  if (child == 0) {
    answer(args, sockets[1]);
    return 0;
  }
  ask(args, sockets[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return status;
}
