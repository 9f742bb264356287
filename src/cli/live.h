#pragma once

// Asking agents of this host what they do now, by the status sockets of their processes (agent/status_answers.h). A
// page tells where its agent's socket is.
//
// Thread rule: pure functions, but for `ask` and `ask_live`, which block: a process that says nothing for a second is
// given up.

#include <map>
#include <span>
#include <string>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>
#include <nlohmann/json.hpp>

#include "cli/top_view.h"

namespace hawser::cli {

inline constexpr Duration kLivePatience = std::chrono::seconds(1);
inline constexpr std::size_t kReplyMax = std::size_t{256} << 20;

struct Question {
  std::string socket;
  std::string request;
};
struct Reply {
  Status status;     ///< Good: the process ended its answer.
  std::string text;  ///< The bytes that came.
};
/// Asks all at once. Errors: kTimedOut (no byte for `patience`), kCancelled (Ctrl-C), and those of connecting.
std::vector<Reply> ask(std::span<const Question> questions, Duration patience = kLivePatience);

/// Where the process of this agent can be asked. Errors: kUnsupported, where its page names no socket.
Result<std::string> socket_of(const AgentLook& agent);
std::string incarnation_of(const AgentLook& agent);

/// An answer to `describe`: what each agent does, by its incarnation, as a status page has it.
struct Described {
  std::map<std::string, nlohmann::json> agents;
  std::map<std::string, std::string> busy;  ///< Incarnations whose lane somebody holds, and their names.
  bool is_whole = false;
};
Described parse_described(const std::string& text);

/// Asks for each agent what it does now. Where its process says nothing the page stays, and `not_live` says why.
Look ask_live(Look pages);
/// A line for each agent that did not answer, with the age of its page.
std::string not_live_text(const Look& look, Instant at);

}  // namespace hawser::cli
