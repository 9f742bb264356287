#pragma once

// The hello of a stranger: whole and well formed, of an agent that does not exist. Simulated and real strangers say it.
//
// Thread rule: a pure function of the dice.

#include "base/rng.h"
#include "wire/hello.h"

namespace hawser::simulation {

inline wire::Hello stranger_hello(base::Rng& rng, wire::Admission admission) {
  const auto random_id = [&rng] { return base::Id128{.hi = rng.u64(), .lo = rng.u64()}; };
  wire::Hello hello;
  hello.streams = 1;
  hello.incarnation = random_id();
  hello.session = random_id();
  hello.token = random_id();
  hello.nonce = random_id();
  hello.admission = admission;
  hello.name = "nobody";
  return hello;
}

}  // namespace hawser::simulation
