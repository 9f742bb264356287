#pragma once

// Lookout: who looks at memory that others write, of which nothing rings here.
//
// Thread rule: under the lane's lock.

#include <cstddef>

#include <hawser/time.h>

namespace hawser::runtime {

class Lookout {
 public:
  /// In each turn of the lane. Returns how much was new.
  virtual std::size_t look(Instant now) = 0;
  /// Nobody turns the lane until something rings: asks the others to. False: there is something new already.
  virtual bool ask() = 0;

 protected:
  ~Lookout() = default;
};

}  // namespace hawser::runtime
