#pragma once

// Views: the looks into its peer's regions that one path has given out (Path::view), each with a pin of its own.
//
// Thread rule: confined to the path's lane. Lifetime: the pins lie in the path's link, which outlives end_all(); views
// may outlive all of it.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include <hawser/status.h>

#include "backend/backend.h"
#include "backend/shm/binding.h"
#include "backend/shm/pin.h"

namespace hawser::backend::shm {

class Views {
 public:
  Views() = default;
  ~Views() { end_all(); }
  Views(const Views&) = delete;
  Views& operator=(const Views&) = delete;

  /// Where their pins lie. Never called: the peer does not look at pins of views, so none are given.
  void begin(std::span<Atomics::Word> pins);
  /// See Path::view.
  Result<std::unique_ptr<View>> take(const ShmBinding& region, PinFence fence);
  /// The path ends: all pins are left, and the views are empty from now on.
  void end_all();
  /// "2 of 16", or why there are none; for people.
  std::string text() const;

  struct Pins {
    std::span<Atomics::Word> words;  ///< Empty once all has ended.
    std::array<bool, kViewsMax> taken = {};
    int process = 0;  ///< A forked child has the views, and no link.
  };

 private:
  std::shared_ptr<Pins> pins_;
};

}  // namespace hawser::backend::shm
