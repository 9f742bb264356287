#pragma once

// What tests of regions stand on: a lane, the books, and backends that do what the test says.
//
// Thread rule: one thread at a time.

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "agent/grant_book.h"
#include "agent/own_card.h"
#include "agent/region_book.h"
#include "agent/region_closer.h"
#include "agent/region_names.h"
#include "agent/region_registrar.h"
#include "agent/test_backend.h"
#include "agent/test_lane.h"

namespace hawser::agent {

class TestRegions {
 protected:
  explicit TestRegions(std::uint32_t regions_max) : table_(regions_max) {}

  void open(std::string name, const std::shared_ptr<TestBackend>& backend) {
    const auto number = static_cast<std::uint32_t>(backends_.size() + 1);
    const InLaneGuard guard(lane_);
    card_.add_backend(number, name, "there", {});
    backends_.push_back(open_test_backend(std::move(name), number, backend));
  }
  RegionRegistrar make_registrar(RegionRegistrar::Host& host, bool must_all_serve) {
    return RegionRegistrar({.lane = lane_,
                            .log = log_,
                            .agent = name_,
                            .life = life_,
                            .table = table_,
                            .book = book_,
                            .names = names_,
                            .card = card_,
                            .backends = backends_,
                            .host = host,
                            .must_all_serve = must_all_serve});
  }
  RegionCloser::Parts parts_of_closer(RegionCloser::Users& users) {
    return {.lane = lane_,
            .clock = lane_.clock,
            .log = log_,
            .agent = name_,
            .life = life_,
            .table = table_,
            .book = book_,
            .names = names_,
            .card = card_,
            .grants = grants_,
            .backends = backends_,
            .users = users};
  }

  TestLane lane_;
  base::Logger log_;
  const std::string name_ = "a";
  Life life_{name_};
  backend::RegionTable table_;
  RegionBook book_;
  RegionNames names_;
  OwnCard card_;
  GrantBook grants_{4};
  std::vector<OpenBackend> backends_;
  std::size_t wrong_ = 99;  ///< The place of the region that an error is about.
};

/// What a registrar asks of the agent.
class TestRegistrarHost : public RegionRegistrar::Host {
 public:
  virtual ~TestRegistrarHost() = default;
  std::shared_ptr<LocalRegion> make(const RegionRegistrar::Entry& entry, bool has_huge_pages) override {
    return std::make_shared<LocalRegion>(std::shared_ptr<Core>(), entry, has_huge_pages);
  }
  base::Id128 make_key() override { return {7, ++keys}; }

  std::uint64_t keys = 0;
};

}  // namespace hawser::agent
