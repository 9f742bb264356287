#include "cli/live.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>
#include <utility>

#include "base/fd.h"
#include "base/user_socket.h"
#include "cli/interrupt.h"
#include "cli/page_fields.h"
#include "cli/units.h"

namespace hawser::cli {
namespace {

/// Beyond, one question asks for all agents of a process.
constexpr std::size_t kOneByOneMax = 4;
constexpr Duration kCallAgain = std::chrono::milliseconds(10);  ///< Where too many callers wait.
constexpr Duration kLookForCtrlC = std::chrono::milliseconds(100);

/// One question under way.
class Call {
 public:
  Call(const Question& question, Duration patience, Instant now)
      : question_(question), patience_(patience), began_(now), moved_(now) {
    connect(now);
  }

  bool is_done() const { return is_done_; }
  Reply take() { return std::move(reply_); }
  Instant due() const { return std::min(socket_ ? Instant::max() : again_, moved_ + patience_); }
  pollfd wanted() const {
    const short events = unsent().empty() ? POLLIN : POLLOUT;
    return {.fd = socket_.get(), .events = events, .revents = 0};
  }
  void advance(bool has_news, Instant now) {
    if (!socket_) {
      if (now >= again_) connect(now);
    } else if (has_news) {
      unsent().empty() ? receive(now) : send(now);
    }
    if (!is_done_ && now >= moved_ + patience_) {
      fail(Status(Code::kTimedOut, fmt::format("its process did not answer within {}", short_duration(patience_))));
    }
  }
  void fail(Status why) {
    reply_.status = std::move(why);
    is_done_ = true;
  }

 private:
  std::string_view unsent() const { return std::string_view(line_).substr(sent_); }
  void connect(Instant now) {
    Result<base::Fd> connected = base::connect_to_user_socket(question_.socket);
    if (connected) {
      socket_ = std::move(*connected);
    } else if (connected.error().code() == Code::kBusy) {
      again_ = now + kCallAgain;
    } else {
      fail(connected.error());
    }
  }
  void send(Instant now) {
    const ssize_t sent = ::send(socket_.get(), unsent().data(), unsent().size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) return fail(base::errno_status("asking its process", errno));
    if (sent <= 0) return;
    sent_ += static_cast<std::size_t>(sent);
    moved_ = now;
  }
  void receive(Instant now) {
    std::array<char, 65536> bytes;
    const ssize_t got = ::recv(socket_.get(), bytes.data(), bytes.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return end(now);
    moved_ = now;
    reply_.text.append(bytes.data(), static_cast<std::size_t>(got));
    if (reply_.text.size() > kReplyMax) fail(Status(Code::kFailed, "its answer is longer than 256 MiB"));
  }

  /// A desk that has too many callers may hang up on one before it answers anything.
  void end(Instant now) {
    is_done_ = !reply_.text.empty() || now >= began_ + patience_;
    if (is_done_) return;
    socket_.reset();
    sent_ = 0;
    again_ = now + kCallAgain;
  }

  const Question& question_;
  const std::string line_ = question_.request + "\n";
  const Duration patience_;
  const Instant began_;
  Instant moved_;                   ///< When something was sent or came last.
  Instant again_ = Instant::min();  ///< When to connect again.
  base::Fd socket_;
  std::size_t sent_ = 0;
  bool is_done_ = false;
  Reply reply_;
};

void advance_all(std::vector<Call>& calls) {
  std::vector<pollfd> wanted;
  std::vector<Call*> open;
  Instant now = Clock::steady().now();
  Instant due = now + kLookForCtrlC;
  for (Call& call : calls) {
    if (call.is_done()) continue;
    open.push_back(&call);
    wanted.push_back(call.wanted());
    due = std::min(due, call.due());
  }
  const auto wait = std::chrono::ceil<std::chrono::milliseconds>(std::max(due - now, Duration::zero()));
  (void)::poll(wanted.data(), wanted.size(), static_cast<int>(wait.count()));
  now = Clock::steady().now();
  for (std::size_t i = 0; i < open.size(); ++i) open[i]->advance(wanted[i].revents != 0, now);
}

/// Which agents of one process are asked for, by their places in a Look.
using Process = std::vector<std::size_t>;

std::vector<Question> questions_for(const std::map<std::string, Process>& processes, const Look& look) {
  std::vector<Question> questions;
  for (const auto& [socket, agents] : processes) {
    if (agents.size() > kOneByOneMax) {
      questions.push_back({socket, "describe"});
      continue;
    }
    for (const std::size_t at : agents) questions.push_back({socket, "describe " + incarnation_of(look[at])});
  }
  return questions;
}

/// All answers of one process.
struct Heard {
  Described described;
  Status failure;

  void add(const Reply& reply) {
    Described more = parse_described(reply.text);
    if (!reply.status.ok()) {
      failure = reply.status;
    } else if (!more.is_whole) {
      failure = Status(Code::kDisconnected, "its process ended the answer before its end");
    }
    described.agents.merge(more.agents);
    described.busy.merge(more.busy);
  }
};

std::string why_not(const Heard& heard, const std::string& incarnation) {
  if (heard.described.busy.contains(incarnation)) {
    return "a thread of its process has held the agent for 500 ms: it is stuck, or under heavy load";
  }
  return heard.failure.ok() ? "its process has no such agent any more" : heard.failure.to_string();
}

}  // namespace

std::vector<Reply> ask(std::span<const Question> questions, Duration patience) {
  std::vector<Call> calls;
  calls.reserve(questions.size());
  for (const Question& question : questions) calls.emplace_back(question, patience, Clock::steady().now());
  while (std::ranges::any_of(calls, [](const Call& call) { return !call.is_done(); })) {
    advance_all(calls);
    if (!interrupted()) continue;
    for (Call& call : calls) {
      if (!call.is_done()) call.fail(interrupt_status());
    }
  }
  std::vector<Reply> replies;
  for (Call& call : calls) replies.push_back(call.take());
  return replies;
}

Result<std::string> socket_of(const AgentLook& agent) {
  const std::string name = text(agent.status, "socket");
  // A name alone: whatever a page says, only its own folder is looked into.
  if (name.empty() || name.find('/') != std::string::npos) {
    return Status(Code::kUnsupported, "its page names no status socket")
        .with_advice("open the agent with status_socket = true (HAWSER_STATUS_SOCKET)");
  }
  return agent.page.substr(0, agent.page.rfind('/') + 1) + name;
}

std::string incarnation_of(const AgentLook& agent) { return text(agent.status, "incarnation"); }

Described parse_described(const std::string& text) {
  Described all;
  Fields* current = nullptr;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    Fields line = Fields::parse(text.begin() + static_cast<std::ptrdiff_t>(at),
                                text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    if (!line.is_object()) continue;
    if (line.contains("agent") && line["agent"].is_object()) {
      const std::string incarnation = cli::text(line["agent"], "incarnation");
      current = &(all.agents[incarnation] = std::move(line["agent"]));
      (*current)["peers"] = Fields::array();
      (*current)["waiting"] = Fields::array();
    } else if (line.contains("peer") && current != nullptr) {
      (*current)["peers"].push_back(std::move(line["peer"]));
    } else if (line.contains("waiting") && current != nullptr) {
      (*current)["waiting"].push_back(std::move(line["waiting"]));
    } else if (line.contains("busy") && line["busy"].is_object()) {
      all.busy[cli::text(line["busy"], "incarnation")] = cli::text(line["busy"], "agent");
    } else if (line.contains("end")) {
      all.is_whole = true;
    }
  }
  return all;
}

Look ask_live(Look pages) {
  std::map<std::string, Process> processes;
  for (std::size_t i = 0; i < pages.size(); ++i) {
    pages[i].is_live = false;
    if (!pages[i].reading.is_alive) {
      pages[i].not_live = "its process died";
    } else if (const Result<std::string> socket = socket_of(pages[i]); socket) {
      processes[*socket].push_back(i);
    } else {
      pages[i].not_live = socket.error().to_string();
    }
  }
  const std::vector<Question> questions = questions_for(processes, pages);
  const std::vector<Reply> replies = ask(questions);
  std::map<std::string, Heard> heard;
  for (std::size_t i = 0; i < questions.size(); ++i) heard[questions[i].socket].add(replies[i]);
  for (const auto& [socket, agents] : processes) {
    Heard& its = heard[socket];
    for (const std::size_t at : agents) {
      const auto found = its.described.agents.find(incarnation_of(pages[at]));
      const bool is_told = found != its.described.agents.end() && !its.described.busy.contains(found->first);
      if (is_told && its.failure.ok()) {
        pages[at].status = std::move(found->second);
        pages[at].is_live = true;
      } else {
        pages[at].not_live = why_not(its, incarnation_of(pages[at]));
      }
    }
  }
  return pages;
}

std::string not_live_text(const Look& look, Instant at) {
  std::string all;
  for (const AgentLook& agent : look) {
    if (agent.not_live.empty()) continue;
    const auto told = instant(agent.status, "at_ns");
    all += fmt::format("{} (process {}) is not told of live: {}. Shown is its page{}\n", text(agent.status, "agent"),
                       agent.reading.process, agent.not_live,
                       told ? ", " + short_duration(std::max(at - *told, Duration::zero())) + " old" : "");
  }
  return all;
}

}  // namespace hawser::cli
