// The conformance suite over the backends that this library brings.

#include <fstream>
#include <utility>

#include "agent/open.h"
#include "agent_suite.h"

#ifdef HAWSER_WITH_SHM
#include "backend/shm/factory.h"
#endif
#ifdef HAWSER_WITH_TCP
#include "backend/tcp/factory.h"
#endif
#ifdef HAWSER_WITH_QUIC
#include "backend/quic/factory.h"
#endif
#ifdef HAWSER_WITH_FILE
#include "backend/file/factory.h"
#endif
#ifdef HAWSER_WITH_VERBS
#include "backend/verbs/factory.h"
#endif
#ifdef HAWSER_WITH_VERBS_MOCK
#include "backend/verbs/mock/mock_backend.h"
#include "base/mutex.h"
#endif
#ifdef HAWSER_WITH_LOOPBACK
#include "backend/loopback/factory.h"
#endif
#ifdef HAWSER_WITH_SIM
#include "sim_environment.h"
#endif

namespace hawser::conformance {
namespace {

std::vector<backend::Factory> factories() {
  std::vector<backend::Factory> all;
#ifdef HAWSER_WITH_LOOPBACK
  all.push_back(backend::loopback_factory());
#endif
#ifdef HAWSER_WITH_SHM
  all.push_back(backend::shm_factory());
#endif
#ifdef HAWSER_WITH_TCP
  all.push_back(backend::tcp_factory());
#endif
#ifdef HAWSER_WITH_QUIC
  all.push_back(backend::quic_factory());
#endif
#ifdef HAWSER_WITH_VERBS
  all.push_back(backend::verbs_factory());
#endif
#ifdef HAWSER_WITH_FILE
  all.push_back(backend::file_factory());
#endif
  return all;
}

using OpenAgent = std::function<Result<Agent>(AgentOptions)>;

/// Over `backend`, polled and driven. `opener` makes what opens the agents of one test; `devices` are RealOptions'.
[[maybe_unused]] void add_real(std::vector<Setting>& all, const Setting& setting,
                               const std::function<OpenAgent()>& opener, const std::vector<std::string>& devices) {
  for (const bool driven : {false, true}) {
    Setting one = setting;
    one.name += driven ? "_driven" : "_polled";
    one.polled = !driven;
    one.make = [backend = setting.backend, files = setting.files, driven, opener,
                devices]() -> Result<std::unique_ptr<Environment>> {
      RealOptions options{.backends = {backend}, .driven = driven, .devices = devices};
      if (files) options.backends.push_back(file());
      options.open_agent = opener();
      return make_real_environment(std::move(options));
    };
    all.push_back(std::move(one));
  }
}
[[maybe_unused]] void add_real(std::vector<Setting>& all, const Setting& setting,
                               const std::vector<std::string>& devices = {}) {
  const auto opener = [] { return [](AgentOptions its) { return agent::open_with(std::move(its), factories()); }; };
  add_real(all, setting, opener, devices);
}

#ifdef HAWSER_WITH_TCP
std::function<OpenAgent()> opener_at(Security level) {
  return [level] {
    return [level](AgentOptions its) {
      its.security = level;
      return agent::open_with(std::move(its), factories());
    };
  };
}
#endif

#ifdef HAWSER_WITH_VERBS_MOCK
/// RDMA devices in memory, which all agents of a test have.
struct MemoryDevices {
  base::Mutex mutex;
  backend::verbs::MockFabric fabric{{"mock0", "mock1"}};
};
OpenAgent open_over_memory() {
  return [devices = std::make_shared<MemoryDevices>()](AgentOptions its) {
    backend::Factory over =
        backend::verbs::mock_backend(devices->fabric, backend::verbs::locked_verbs(devices->fabric, devices->mutex));
    return agent::open_with(std::move(its), {backend::loopback_factory(), std::move(over)});
  };
}
#endif

#ifdef HAWSER_WITH_SIM
void add_sim(std::vector<Setting>& all, std::string name, sim::Mode mode) {
  Setting setting{.name = std::move(name), .backend = {"sim", {}}, .allocated = false, .is_virtual = true};
  setting.polled = true;
  if (mode == sim::Mode::kStream) {
    setting.skips = {
        {"MemoryStaysFlatOverJoinsAndLeaves", "the simulated network remembers every address there ever was"},
        {"MemoryStaysFlatOverRegionsThatComeAndGo", "the simulated world keeps its events in the same heap"}};
  }
  setting.make = [mode]() -> Result<std::unique_ptr<Environment>> { return make_sim_environment(mode); };
  all.push_back(std::move(setting));
}
#endif

#ifdef HAWSER_WITH_FILE
std::map<std::string, std::string> skips_of_files() {
  std::map<std::string, std::string> skips = {
      {"ABackendAddedLaterServesWhatIsThere", "files need the backend file from the beginning"}};
  for (const char* const test : {"BothSidesInitiateAtOnce", "SignalsChainTransfers", "ThreeAgentsMeetInARing"}) {
    skips[test] = "a file is the far side of a plan only";
  }
  for (const char* const test :
       {"AtomicsFindAndChangeWords", "AtomicsOnAClosedRegionAreRefused", "AtomicsThatAreGivenUpLeaveNothingBehind",
        "AtomicsToALostPeerEnd", "FetchAddsBesideTheOwnersOwnSumExactly", "WrongAtomicWordsAreNamed"}) {
    skips[test] = "words are memory, and the setting tcp has these";
  }
  return skips;
}
#endif

#ifdef HAWSER_WITH_VERBS
/// On the devices of tools/rdma-vm. Where both agents have both, each rail leads from a device to itself and no byte is
/// on the cable between the two. They are where each agent has one of its own.
void add_verbs(std::vector<Setting>& all) {
  Setting setting{.name = "verbs", .backend = verbs(), .allocated = false};
  setting.skips = {{"AMillionRanges", "an emulated device takes minutes for a million packets"}};
  add_real(all, setting);
  setting.name = "verbs_cable";
  add_real(all, setting, {"rxe0", "rxe1"});
  setting.name = "verbs_one";
  setting.backend = verbs({{"devices", "rxe0"}});
  add_real(all, setting);
}
#endif

std::vector<Setting> settings() {
  std::vector<Setting> all;
#ifdef HAWSER_WITH_SHM
  add_real(all, {.name = "shm_allocated", .backend = shm(), .allocated = true});
  add_real(all, {.name = "shm_foreign", .backend = shm(), .allocated = false});
#endif
#ifdef HAWSER_WITH_TCP
  add_real(all, {.name = "tcp", .backend = tcp(), .allocated = false});
  add_real(all, {.name = "tcp_tls", .backend = tcp(), .allocated = false}, opener_at(Security::kEncrypt), {});
  add_real(all, {.name = "tcp_authenticate", .backend = tcp(), .allocated = false}, opener_at(Security::kAuthenticate),
           {});
  add_real(all, {.name = "tcp_none", .backend = tcp(), .allocated = false}, opener_at(Security::kNone), {});
#ifdef HAWSER_WITH_FILE
  add_real(all, {.name = "tcp_files", .backend = tcp(), .allocated = false, .files = true, .skips = skips_of_files()});
#endif
#endif
#ifdef HAWSER_WITH_QUIC
  add_real(all, {.name = "quic", .backend = {"quic", {}}, .allocated = false});
#endif
#ifdef HAWSER_WITH_VERBS
  add_verbs(all);
#endif
#ifdef HAWSER_WITH_VERBS_MOCK
  add_real(all, {.name = "verbs_memory", .backend = verbs(), .allocated = false}, open_over_memory, {});
#endif
#ifdef HAWSER_WITH_LOOPBACK
  add_real(all, {.name = "loopback", .backend = loopback(), .self = true, .allocated = false});
#endif
#ifdef HAWSER_WITH_SIM
  add_sim(all, "sim_mapped", sim::Mode::kMapped);
  add_sim(all, "sim_stream", sim::Mode::kStream);
#endif
  return all;
}

INSTANTIATE_TEST_SUITE_P(Builtin, Conformance, testing::ValuesIn(settings()), name_of);

#ifdef HAWSER_WITH_VERBS
/// That the settings of verbs run where their names say.
class Cable : public Conformance {
 protected:
  static std::uint64_t sent() {
    std::uint64_t bytes = 0;
    for (const char* const end : {"veth0", "veth1"}) {
      std::uint64_t its = 0;
      std::ifstream(std::string("/sys/class/net/") + end + "/statistics/tx_bytes") >> its;
      bytes += its;
    }
    return bytes;
  }
};

TEST_P(Cable, BytesAreOnItWhereEachAgentHasADeviceOfItsOwn) {
  constexpr std::size_t kSize = 4 << 20;
  open_pair();
  Area source = add(a(), "source", kSize), target = add(b(), "target", kSize);
  const Peer peer = meet();
  const std::uint64_t before = sent();
  must(run(must(a().plan_write(peer, {{source.range(0, kSize)}}, {{peer.range("target", 0, kSize)}}))));
  if (GetParam().name.starts_with("verbs_cable")) {
    EXPECT_GE(sent() - before, kSize);
  } else {
    EXPECT_LT(sent() - before, kSize / 4);
  }
}

std::vector<Setting> settings_of_verbs() {
  std::vector<Setting> all;
  add_verbs(all);
  return all;
}
INSTANTIATE_TEST_SUITE_P(Builtin, Cable, testing::ValuesIn(settings_of_verbs()), name_of);
#endif

}  // namespace
}  // namespace hawser::conformance
