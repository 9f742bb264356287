#pragma once

// A directory in memory for tests, which answers at once.
//
// Thread rule: one thread.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/directory.h>

namespace hawser::agent {

class TestDirectory : public Directory {
 public:
  std::string_view kind() const override { return "test"; }
  Ticket put(std::string_view key, std::string_view value, const PutOptions&) override {
    DirectoryEntry& entry = values_[std::string(key)];
    entry = {.key = std::string(key), .value = std::string(value), .version = ++versions_};
    return answer({}, {entry});
  }
  Ticket erase(std::string_view key, const EraseOptions& options) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return answer({}, {});
    if (options.if_version && *options.if_version != found->second.version) {
      return answer(Status(Code::kBusy, "another version is there"), {});
    }
    values_.erase(found);
    return answer({}, {});
  }
  Ticket get(std::string_view key) override {
    const auto found = values_.find(key);
    if (found == values_.end()) return answer(Status(Code::kNotFound, "no such key"), {});
    return answer({}, {found->second});
  }
  Ticket list(std::string_view) override { return answer({}, {}); }
  Ticket watch(std::string_view) override { return answer({}, {}); }
  void cancel(Ticket ticket) override { answers_.erase(ticket); }
  bool run_job(Instant, Instant) override { return false; }
  std::optional<DirectoryEvent> poll(Ticket ticket) override {
    const auto found = answers_.find(ticket);
    if (found == answers_.end()) return std::nullopt;
    std::optional<DirectoryEvent> event = std::move(found->second);
    answers_.erase(found);
    return event;
  }
  std::vector<std::string> warnings() const override { return {}; }

 private:
  Ticket answer(Status status, std::vector<DirectoryEntry> entries) {
    const Ticket ticket = ++tickets_;
    answers_[ticket] = {.ticket = ticket, .status = std::move(status), .entries = std::move(entries)};
    return ticket;
  }

  std::map<std::string, DirectoryEntry, std::less<>> values_;
  std::map<Ticket, DirectoryEvent> answers_;
  std::uint64_t versions_ = 0;
  Ticket tickets_ = 0;
};

}  // namespace hawser::agent
