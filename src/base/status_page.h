#pragma once

// StatusPage: a text that one process publishes in a mapped file and others of its user read at any time, also while
// the publisher is stuck or stopped, and after it died. Beside the text it tells when the publisher was last at work.
//
// There are two places for the text. The publisher writes the one that is not shown, then shows it; a reader copies
// what is shown and looks whether it still is. So neither waits for the other, and a publisher that dies in the middle
// leaves the text before.
//
// The header alone is mapped; the text goes by system calls. base/left_file.h tells who lives, and how long a page
// stays that its process left behind.
//
// Thread rule: `publish` by one thread at a time; `worked` and `sleeps` by any. Lifetime: destroying removes the file.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <hawser/status.h>
#include <hawser/time.h>

#include "base/left_file.h"

namespace hawser::base {

class StatusPage {
 public:
  static constexpr std::size_t kTextMax = 64 * 1024;
  struct Header;

  /// `folder`/`name`.status, mode 0600. Removes pages in the folder that nobody will look at any more.
  static Result<StatusPage> create(const std::string& folder, std::string_view name);
  /// kInvalid: it is longer than kTextMax. kBusy or what the kernel said: there is no room, and the text before stays.
  Status publish(std::string_view text);
  /// One store each.
  void worked(Instant now);
  void sleeps(bool asleep);
  /// Nobody finds it from now on. The object may be used on.
  void withdraw() { file_.withdraw(); }
  /// In a forked child: the file is the parent's. Only system calls.
  void disown_after_fork() { file_.disown_after_fork(); }
  const std::string& path() const { return file_.path(); }

 private:
  StatusPage(Header* header, LeftFile file) : header_(header), file_(std::move(file)) {}

  Header* header_;  ///< In the file's memory.
  LeftFile file_;
};

struct StatusReading {
  std::uint32_t process = 0;  ///< As the publisher's own namespace numbers it.
  bool is_alive = false;
  bool is_stopped = false;  ///< By a signal. False where it runs in another PID namespace.
  bool is_asleep = false;   ///< It waits in the kernel for something to do.
  Instant worked_at;        ///< By the host's monotonic clock.
  std::string text;         ///< Empty: nothing was published yet.
};
/// kCorrupt: that is no page of this user, or one of another version. kBusy: it changed at each of many tries.
Result<StatusReading> read_status_page(const std::string& path);
/// The paths of all pages in a folder, in order. None where the folder is not there.
std::vector<std::string> list_status_pages(const std::string& folder);

}  // namespace hawser::base
