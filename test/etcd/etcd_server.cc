#include "etcd_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/fd.h"

namespace hawser::etcd_test {
namespace {

constexpr const char* kProgram = "/usr/bin/etcd";

/// A port that nobody listens on now, below those that the kernel gives to outgoing connections: it stays free while
/// its server is down. Another test may take it before etcd does: then etcd is started elsewhere.
std::uint16_t free_port() {
  constexpr int kFirst = 20000, kCount = 12000;
  static int next = static_cast<int>((static_cast<unsigned>(::getpid()) * 7919u) % kCount);
  for (int tries = 0; tries < kCount; ++tries) {
    next = (next + 1) % kCount;
    const base::Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(kFirst + next));
    if (::bind(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0)
      return ntohs(address.sin_port);
  }
  ADD_FAILURE() << "no free port";
  return 0;
}

}  // namespace

void nap(Duration time) { std::this_thread::sleep_for(time); }

bool has_etcd() { return ::access(kProgram, X_OK) == 0; }

EtcdServer::EtcdServer(Options options) : options_(std::move(options)) {
  token_ = folder_.path();
  client_port_ = free_port();
  peer_port_ = free_port();
  initial_cluster_ = options_.name + "=" + peer_url();
}

EtcdServer::~EtcdServer() { kill(); }

std::vector<std::unique_ptr<EtcdServer>> EtcdServer::cluster(std::size_t count) {
  std::vector<std::unique_ptr<EtcdServer>> members;
  std::string all;
  for (std::size_t i = 0; i < count; ++i) {
    // Elections must not begin only because the machine is busy.
    members.push_back(std::make_unique<EtcdServer>(
        Options{.name = "m" + std::to_string(i),
                .arguments = {"--heartbeat-interval=250", "--election-timeout=2500", "--initial-cluster-state=new"}}));
    all.append(all.empty() ? "" : ",").append(members.back()->initial_cluster_);
  }
  for (auto& member : members) {
    member->initial_cluster_ = all;
    member->token_ = members.front()->token_;
  }
  return members;
}

std::vector<std::string> EtcdServer::command() const {
  std::vector<std::string> words = {kProgram,
                                    "--name=" + options_.name,
                                    "--data-dir=" + folder_.path("data"),
                                    "--listen-client-urls=" + options_.scheme + "://" + endpoint(),
                                    "--advertise-client-urls=" + url(),
                                    "--listen-peer-urls=" + peer_url(),
                                    "--initial-advertise-peer-urls=" + peer_url(),
                                    "--initial-cluster=" + initial_cluster_,
                                    "--initial-cluster-token=" + token_,
                                    "--logger=zap",
                                    "--log-level=warn"};
  words.insert(words.end(), options_.arguments.begin(), options_.arguments.end());
  return words;
}

void EtcdServer::start(bool is_new) {
  kill();
  if (is_new) std::filesystem::remove_all(folder_.path("data"));
  std::vector<std::string> words = command();
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const std::string log = folder_.path("log");
  const pid_t parent = ::getpid();
  pid_ = ::fork();
  if (pid_ != 0) return;
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (::getppid() != parent) ::_exit(1);
  const int out = ::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0600);
  ::dup2(out, 1);
  ::dup2(out, 2);
  ::execv(kProgram, arguments.data());
  ::_exit(127);
}

bool EtcdServer::is_running() { return pid_ > 0 && ::waitpid(pid_, nullptr, WNOHANG) == 0; }

void EtcdServer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

void EtcdServer::stop() {
  ::kill(pid_, SIGSTOP);
  int status = 0;
  while (::waitpid(pid_, &status, WUNTRACED) == pid_ && !WIFSTOPPED(status)) continue;
}

void EtcdServer::resume() { ::kill(pid_, SIGCONT); }

bool EtcdServer::await_ready(const EtcdOptions& options) {
  EtcdOptions mine = options;
  mine.endpoints = {url()};
  mine.timeout = 5s;
  const auto directory = hawser::etcd(mine).value();
  for (const Instant end = now() + kPatience; now() < end;) {
    const DirectoryEvent event = hawser::etcd_test::await(*directory, directory->get("hawser-test-is-it-there"));
    if (event.status.code() == Code::kNotFound) return true;
    if (is_running()) continue;
    if (options_.arguments.empty()) {  // Its port was taken by another; a cluster's ports are agreed on.
      client_port_ = free_port();
      peer_port_ = free_port();
      initial_cluster_ = options_.name + "=" + peer_url();
      std::filesystem::remove_all(folder_.path("data"));
    }
    start();
    return await_ready(options);
  }
  ADD_FAILURE() << "etcd does not serve: " << log_tail();
  return false;
}

std::string EtcdServer::log_tail() const {
  std::ifstream in(folder_.path("log"));
  std::stringstream text;
  text << in.rdbuf();
  const std::string all = text.str();
  return all.substr(all.size() - std::min<std::size_t>(all.size(), 2000));
}

DirectoryEvent await(Directory& directory, Ticket ticket, Duration patience) {
  for (const Instant end = now() + patience; now() < end;) {
    if (auto event = directory.poll(ticket)) return *std::move(event);
    (void)directory.run_job(now(), end);
  }
  ADD_FAILURE() << "no answer";
  return {.ticket = ticket, .status = Status(Code::kTimedOut, "no answer"), .entries = {}};
}

Status put(Directory& directory, std::string_view key, std::string_view value, PutOptions options) {
  return await(directory, directory.put(key, value, options)).status;
}

std::string get(Directory& directory, std::string_view key) {
  const DirectoryEvent event = await(directory, directory.get(key));
  if (!event.status.ok()) return "(" + std::string(to_string(event.status.code())) + ")";
  return event.entries.at(0).value;
}

void Picture::look() {
  while (const auto event = directory_.poll(ticket_)) {
    if (!event->status.ok()) error_ = event->status;
    if (event->kind == DirectoryEvent::Kind::kAnswer) entries_.clear();
    has_answer_ = has_answer_ || event->status.ok();
    for (const DirectoryEntry& entry : event->entries) {
      std::erase_if(entries_, [&](const auto& old) { return old.first == entry.key; });
      if (event->kind != DirectoryEvent::Kind::kErased) entries_.emplace_back(entry.key, entry.value);
    }
  }
}

std::string Picture::text() const {
  if (!has_answer_) return "none";
  auto sorted = entries_;
  std::sort(sorted.begin(), sorted.end());
  std::string text;
  for (const auto& [key, value] : sorted) text.append(text.empty() ? "" : " ").append(key).append("=").append(value);
  return text;
}

bool Picture::await(const std::string& expected, Duration patience) {
  const bool is_so = eventually(
      [&] {
        look();
        return text() == expected;
      },
      patience);
  EXPECT_EQ(text(), expected);
  return is_so;
}

}  // namespace hawser::etcd_test
