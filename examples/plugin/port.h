#pragma once

// The port and its paths: what the host's handles point to.
//
// The initiator copies by itself, under the target station's `memory` lock, after it asked the target's host whether
// the region is still open. So a chunk that is done is visible at the target, and a closed region is quiet as soon as
// that lock can be had.
//
// Thread rule: confined to the host's lane. Lifetime: paths belong to their port.

#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "post_office.h"

namespace mailslot {

/// An event and what it points to.
struct Event {
  hawser_plugin_event event{};
  hawser_plugin_reason reason{};
  std::string bytes{};
};

struct Job {
  hawser_plugin_path* path = nullptr;
  hawser_plugin_chunk chunk{};
  std::size_t piece = 0;
  std::uint64_t offset = 0;  ///< In that piece.
  std::uint64_t done = 0;    ///< Bytes in all.
};

struct Why {
  std::uint32_t code = HAWSER_PLUGIN_OK;
  std::uint32_t scope = HAWSER_PLUGIN_SCOPE_REQUEST;
  const char* text = "";
};

void set_reason(hawser_plugin_reason* reason, std::uint32_t scope, const std::string& message);

}  // namespace mailslot

struct hawser_plugin_binding {
  hawser_plugin_region region;
};

struct hawser_plugin_path {
  hawser_plugin_port* port = nullptr;
  std::shared_ptr<mailslot::Station> peer;  ///< Null when nobody was there.
  hawser_plugin_id session{};
  std::uint32_t state = HAWSER_PLUGIN_DOWN;
  std::uint32_t job_count = 0;
  std::shared_ptr<mailslot::Room> room = std::make_shared<mailslot::Room>();
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<hawser_plugin_binding>> bindings;
  hawser_plugin_counters counters{};
};

struct hawser_plugin_port {
  static constexpr std::uint64_t kAtOnceMax = 64 * 1024;  ///< Bytes copied inside of one submit.
  static constexpr std::size_t kLettersAtOnce = 64;

  hawser_plugin_port(const hawser_plugin_host& its_host, std::string its_address,
                     std::shared_ptr<mailslot::Station> its_station, std::uint32_t queue)
      : host(its_host), address(std::move(its_address)), station(std::move(its_station)), queue_max(queue) {}

  hawser_plugin_path* open_path(const hawser_plugin_path_target& target);
  void release_path(hawser_plugin_path* path);
  std::size_t turn(const hawser_plugin_budget& budget);
  std::size_t poll(hawser_plugin_event* out, std::size_t capacity);
  bool prepare_sleep();
  void close();
  bool idle() const { return is_closing && events.empty(); }

  std::uint32_t bind(hawser_plugin_path& path, const hawser_plugin_remote_region& region, hawser_plugin_binding** out,
                     hawser_plugin_reason* reason);
  hawser_plugin_submitted submit(hawser_plugin_path& path, const hawser_plugin_chunk* chunks, std::size_t count);
  bool send(hawser_plugin_path& path, hawser_plugin_text head, hawser_plugin_text body);
  void cancel(hawser_plugin_path& path, std::uint64_t transfer);

  const hawser_plugin_host& host;
  const std::string address;
  const std::shared_ptr<mailslot::Station> station;  ///< Our own.

 private:
  hawser_plugin_path& add_path(std::shared_ptr<mailslot::Station> peer, hawser_plugin_id session);
  void take_letter(mailslot::Letter& letter);
  void end_path(hawser_plugin_path& path, const mailslot::Why& why);
  mailslot::Job* first_job();
  /// Copies up to `limit` bytes; false when it could not go on. `why` is filled when it never will.
  bool copy(mailslot::Job& job, std::uint64_t limit, mailslot::Why* why);
  void end_job(const mailslot::Job& job, const mailslot::Why& why);
  template <typename Which>
  void end_jobs(Which which, const mailslot::Why& why);
  mailslot::Event& push(std::uint32_t kind, hawser_plugin_path& path, const mailslot::Why& why = {});

  const std::uint32_t queue_max;  ///< Chunks in flight, per path.
  bool is_closing = false;
  std::vector<std::unique_ptr<hawser_plugin_path>> paths;
  std::array<std::deque<mailslot::Job>, 3> jobs;  ///< By priority.
  std::deque<mailslot::Event> events;
  std::vector<mailslot::Event> given;  ///< What the last poll gave: stays until the next call of it.
};
