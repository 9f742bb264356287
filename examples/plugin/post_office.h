#pragma once

// The post office: where agents of one process find each other, and the station that each of them has there.
//
// Of an agent others touch its station only. Two locks guard it, each held for one bounded piece of work and never
// together with another one, so they cannot block each other:
//   memory  while somebody copies into or out of the agent's regions, or looks one up;
//   mail    around the letters.
//
// Thread rule: thread-safe. Lifetime: stations are shared; one outlives its agent, closed, while paths lead to it.

#include <hawser/plugin.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mailslot {

struct Station;

/// How much of one path's mail waits in a station. Guarded by that station's `mail`.
struct Room {
  static constexpr std::size_t kLettersMax = 256;
  static constexpr std::size_t kBytesMax = 1 << 20;
  std::size_t letters = 0;
  std::size_t bytes = 0;
};

struct Letter {
  enum class Kind { kHello, kMessage, kGoodbye };
  Kind kind = Kind::kMessage;
  hawser_plugin_id session{};
  std::string bytes{};
  std::shared_ptr<Station> from{};  ///< Of a hello: where answers go.
  std::shared_ptr<Room> room{};     ///< Of a message.
};

struct Station {
  static constexpr std::size_t kLettersMax = 1 << 16;  ///< Hellos beyond it are refused; goodbyes are as many.

  hawser_plugin_agent* agent = nullptr;
  std::string name;
  hawser_plugin_identity identity{};  ///< Its name is ours.

  std::mutex memory;
  bool serves = false;  ///< Guarded by `memory`: `agent` may be asked about its regions.

  std::mutex mail;
  bool accepts = false;  ///< Guarded by `mail`, like all that follows.
  bool sleeps = false;   ///< The bell rings for the next letter.
  int bell = -1;
  std::deque<Letter> letters;

  ~Station() {
    if (bell >= 0) ::close(bell);
  }

  void open() { set_open(true); }
  /// When it returns, nobody copies here and nobody will. Returns the letters that nobody read.
  std::deque<Letter> close() {
    set_open(false);
    const std::lock_guard<std::mutex> lock(mail);
    return std::exchange(letters, {});
  }

  /// False when the station is closed or, but for a goodbye, has no room.
  bool put(Letter letter) {
    const std::lock_guard<std::mutex> lock(mail);
    if (!accepts) return false;
    if (letter.kind == Letter::Kind::kHello && letters.size() >= kLettersMax) return false;
    if (Room* room = letter.room.get()) {
      if (room->letters == Room::kLettersMax || room->bytes + letter.bytes.size() > Room::kBytesMax) return false;
      ++room->letters;
      room->bytes += letter.bytes.size();
    }
    letters.push_back(std::move(letter));
    if (std::exchange(sleeps, false)) ::eventfd_write(bell, 1);
    return true;
  }

  std::vector<Letter> take(std::size_t count_max) {
    const std::lock_guard<std::mutex> lock(mail);
    std::vector<Letter> taken;
    while (taken.size() < count_max && !letters.empty()) {
      Letter& letter = letters.front();
      if (letter.room) {
        --letter.room->letters;
        letter.room->bytes -= letter.bytes.size();
      }
      taken.push_back(std::move(letter));
      letters.pop_front();
    }
    return taken;
  }

  /// False when there is mail.
  bool prepare_sleep() {
    const std::lock_guard<std::mutex> lock(mail);
    if (!letters.empty()) return false;
    eventfd_t rings = 0;
    ::eventfd_read(bell, &rings);
    sleeps = true;
    return true;
  }

 private:
  void set_open(bool is_open) {
    {
      const std::lock_guard<std::mutex> lock(memory);
      serves = is_open;
    }
    const std::lock_guard<std::mutex> lock(mail);
    accepts = is_open;
  }
};

/// All stations of the process, by address.
class Office {
 public:
  /// Never destroyed: agents may close in static destructors.
  static Office& of_this_process() {
    static Office* const office = new Office;
    return *office;
  }

  void enter(const std::string& address, std::shared_ptr<Station> station) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stations_[address] = std::move(station);
  }
  void leave(const std::string& address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    stations_.erase(address);
  }
  /// Null when nobody has this address.
  std::shared_ptr<Station> find(const std::string& address) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = stations_.find(address);
    return found == stations_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Station>> stations_;
};

}  // namespace mailslot
