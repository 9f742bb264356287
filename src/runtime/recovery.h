#pragma once

// Recovery: decides what a world does by itself once one of its ranks has failed, and keeps what came of it. Its world
// does it.
//
// A world recovers once: what fails in the new world is that world's to recover from. While an agreement of this rank
// is under way nothing begins. One that ends without a new world is tried again.
//
// Thread rule: under the lane's lock, but for `is_over`.

#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include <hawser/world.h>

namespace hawser::runtime {

class WorldCore;

/// The policy by its name: manual, automatic, abort.
std::string_view to_string(RecoveryPolicy policy);

class Recovery {
 public:
  enum class Step : std::uint8_t { kNothing, kShrink, kAbort };
  struct Made {
    std::shared_ptr<WorldCore> world;
    std::vector<std::uint32_t> failed;
  };

  /// `policy` is one of the enumeration's.
  void set_policy(RecoveryPolicy policy) { policy_ = policy; }
  RecoveryPolicy policy() const { return policy_; }

  /// A rank has failed. Says what is to be done now.
  Step note_failure();
  /// The program's agreement begins. kBusy: the world recovers by itself, and does it now, or has done it.
  Status note_call(std::string_view call, std::string_view world);
  /// The agreement that was under way, the program's or that of Step::kShrink, is over.
  Step note_call_over();
  /// The world has been shrunk, or never will be. The first outcome stands.
  void end(Made made);
  void end(const Status& why);

  /// Any thread.
  bool is_over() const { return is_over_.load(std::memory_order_acquire); }
  /// Once it is over. It gives the world once.
  Result<Made> take(std::string_view world);
  /// A world that nobody has taken.
  std::shared_ptr<WorldCore> give_up() { return std::move(made_.world); }

 private:
  Step next();

  RecoveryPolicy policy_ = RecoveryPolicy::kManual;
  bool has_failed_ = false, is_calling_ = false, is_taken_ = false;
  std::atomic<bool> is_over_{false};
  Status status_;
  Made made_;
};

}  // namespace hawser::runtime
