#pragma once

// QuicMishaps: faults, each aimed at a moment. A seed draws a few pairs of fault and moment; each waits until a
// connection is there, and strikes.
//
// Thread rule: one thread. Lifetime: the run's.

#include <memory>
#include <span>
#include <vector>

#include "quicsim/coverage.h"
#include "quicsim/host.h"

namespace hawser::quicsim {

class QuicMishaps {
 public:
  QuicMishaps(sim::World& world, PacketNet& net, QuicJudge& judge, const Settings& settings,
              std::span<const std::unique_ptr<QuicHost>> hosts);

  /// Looks whether an aim has come into sight. Called often.
  void look();
  const Coverage& coverage() const { return coverage_; }
  std::size_t struck() const { return struck_; }

 private:
  struct Aim {
    Fault fault = Fault::kLoss;
    Moment moment = Moment::kShaking;
  };
  /// A connection at its opener, which every fault begins with.
  struct Target {
    QuicHost* host = nullptr;
    Line* line = nullptr;
  };
  Moment moment_of(const Line& line) const;
  QuicHost* acceptor_of(const Line& line, Line** its) const;
  void strike(const Aim& aim, const Target& target);
  void strike_way(Fault fault, QuicHost& host);
  void strike_end(Fault fault, QuicHost& host, Line& line);
  void replay(const Line& line);
  Duration span(Duration most);

  sim::World& world_;
  PacketNet& net_;
  QuicJudge& judge_;
  const Settings& settings_;
  const std::span<const std::unique_ptr<QuicHost>> hosts_;
  base::Rng rng_;
  Coverage coverage_;
  std::vector<Aim> aims_;
  std::size_t struck_ = 0;
  std::uint16_t moves_ = 0;
};

}  // namespace hawser::quicsim
