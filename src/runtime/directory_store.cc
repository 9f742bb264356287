#include "runtime/directory_store.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "agent/inner.h"

namespace hawser::runtime {
namespace {

constexpr Duration kLookAgain = std::chrono::milliseconds(10);
constexpr Duration kPutPatience = std::chrono::seconds(30);

void pause(const Agent& agent, Instant until) {
  static_cast<void>(agent::inner::wait_until(
      agent, [] { return false; }, until));
}

/// The answer, or kTimedOut.
Result<DirectoryEvent> ask(Directory& directory, const Agent& agent, Ticket ticket, Instant deadline) {
  const auto rest = [&] { pause(agent, std::min(deadline, agent::inner::now(agent) + std::chrono::milliseconds(1))); };
  std::optional<DirectoryEvent> answer = agent::inner::ask(directory, ticket, deadline, rest);
  if (!answer) return Status(Code::kTimedOut, "the directory does not answer");
  if (!answer->status.ok()) return answer->status;
  return std::move(*answer);
}

}  // namespace

WorldStore store_in(std::shared_ptr<Directory> directory, const Agent& agent) {
  const auto set = [directory, &agent](const std::string& key, const std::string& value) {
    const Instant deadline = Clock::steady().now() + kPutPatience;
    return ask(*directory, agent, directory->put(key, value, {}), deadline).status();
  };
  const auto get = [directory, &agent](const std::string& key, Duration timeout) -> Result<std::string> {
    const Instant deadline = Clock::steady().now() + timeout;
    for (;;) {
      Result<DirectoryEvent> answer = ask(*directory, agent, directory->get(key), deadline);
      if (answer && !answer->entries.empty()) return std::move(answer->entries[0].value);
      const bool is_absent = answer.has_value() || answer.error().code() == Code::kNotFound;
      if (!is_absent) return answer.error();
      if (Clock::steady().now() >= deadline) return Status(Code::kTimedOut, "nobody has put '" + key + "' there");
      pause(agent, agent::inner::now(agent) + kLookAgain);
    }
  };
  return {.set = set, .get = get};
}

}  // namespace hawser::runtime
