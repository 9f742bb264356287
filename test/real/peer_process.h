#pragma once

// PeerProcess: an agent in a process of its own (peer_main.cc), told what to do by lines over a pipe.
//
// Each call waits for the answer with a deadline; a process that does not answer fails the test, never hangs it. The
// process is killed when its PeerProcess goes.
//
// Thread rule: one thread.

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include <hawser/agent.h>

#include "base/fd.h"

namespace hawser::real {

/// A text of which a peer started with places=N takes N, and what each takes up in its inbox.
inline const std::string kPlace(4936, 'p');
inline constexpr std::uint32_t kPlaceCost = 5000;

inline constexpr Duration kPatience = std::chrono::seconds(30);

class PeerProcess {
 public:
  /// Starts the program and opens its agent: "open NAME KEY=VALUE..." of peer_main.cc.
  static PeerProcess start(const std::string& open);
  PeerProcess(PeerProcess&& other) noexcept;
  PeerProcess& operator=(PeerProcess&& other) noexcept;
  ~PeerProcess();

  pid_t pid() const { return pid_; }
  /// Sends a line and gives the answer without its "ok"; throws when it is an error, or none comes.
  std::string ask(const std::string& line, Duration timeout = kPatience);
  /// The same in two parts, to let something happen between.
  void send(const std::string& line);
  std::string answer(Duration timeout = kPatience);

  /// Its card, as bytes.
  std::string card() { return from_hex(ask("card")); }
  /// Loads a card there; gives the incarnation by which other lines name the peer.
  std::string know(std::string_view card) { return ask("know " + to_hex(card)); }

  void signal(int number) const;
  void stop() const;
  void resume() const;
  /// SIGKILL, and waits until it is gone.
  void kill();
  /// Waits until it ended by itself; gives its exit status.
  int wait_end(Duration timeout = kPatience);

  static std::string to_hex(std::string_view bytes);
  static std::string from_hex(std::string_view text);

 private:
  PeerProcess(pid_t pid, base::Fd to, base::Fd from) : pid_(pid), to_(std::move(to)), from_(std::move(from)) {}
  void stop_waiting() noexcept;

  pid_t pid_ = -1;
  base::Fd to_, from_;
  std::string buffer_;
};

}  // namespace hawser::real
