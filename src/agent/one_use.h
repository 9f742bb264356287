#pragma once

// OneUse: a grant for one transfer, as its holder's lane sees it.
//
// Thread rule: confined to the lane; destroyed by any thread.

namespace hawser::agent {

class OneUse {
 public:
  virtual ~OneUse() = default;
  bool has_begun() const { return has_begun_; }
  /// A transfer has it from now on.
  virtual void begin() { has_begun_ = true; }
  /// That transfer is final.
  virtual void end() = 0;

 protected:
  /// `has_begun`: another handle of the same grant was used here before.
  explicit OneUse(bool has_begun) : has_begun_(has_begun) {}

 private:
  bool has_begun_;
};

}  // namespace hawser::agent
