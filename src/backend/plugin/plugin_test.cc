#include "backend/plugin/plugin.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/plugin/plugin_fake.h"

namespace hawser::backend {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Status why(FakePlugin&) { return plugin_factory("x.so", "fake", FakePlugin::entry).error(); }

TEST(Plugin, TablesAreChecked) {
  FakePlugin fake;
  EXPECT_TRUE(why(fake).ok());
  const hawser_plugin_table good = fake.table;

  fake.table.abi = 7;
  EXPECT_EQ(why(fake).code(), Code::kUnsupported);
  EXPECT_THAT(why(fake).to_string(), HasSubstr("plug-in x.so: it has ABI 7, this hawser loads ABI 0"));
  fake.table = good;
  fake.table.size -= 8;
  EXPECT_EQ(why(fake).code(), Code::kInvalid);
  EXPECT_THAT(why(fake).to_string(), HasSubstr("its table has 48 bytes, not 56"));
  fake.table = good;
  fake.table.path = nullptr;
  EXPECT_THAT(why(fake).to_string(), HasSubstr("it has no table 'path'"));
  fake.table = good;
  fake.table.name = fake_text("Fake");
  EXPECT_THAT(why(fake).to_string(), HasSubstr("it calls itself '?', not 'fake' as its file does"));
  fake.table.name = {nullptr, 5};
  EXPECT_EQ(why(fake).code(), Code::kInvalid);
  fake.table = good;

  fake.port_api.size -= 8;
  EXPECT_THAT(why(fake).to_string(), HasSubstr("its table 'port' has 88 bytes, not 96"));
  fake.port_api.size += 8;
  fake.path_api.describe = nullptr;
  EXPECT_THAT(why(fake).to_string(), HasSubstr("function 'path.describe' is null"));
  fake.path_api = fake::path_api();
  fake.backend_api.open = nullptr;
  EXPECT_THAT(why(fake).to_string(), HasSubstr("function 'backend.open' is null"));
  fake.backend_api = fake::backend_api();
  fake.entry_code = HAWSER_PLUGIN_UNSUPPORTED;
  EXPECT_THAT(why(fake).to_string(), HasSubstr("it refuses this hawser"));
}

TEST(Plugin, ATableThatWasNotFilledIsNoTable) {
  const Result<Factory> made = plugin_factory(
      "x.so", "fake", [](const hawser_plugin_host*, hawser_plugin_table*) -> std::uint32_t { return 0; });
  EXPECT_EQ(made.error().code(), Code::kUnsupported);
}

TEST(Plugin, BackendTellsWhatThePluginTells) {
  FakePlugin fake;
  FakeAgent agent;
  const Factory factory = plugin_factory("x.so", "fake", FakePlugin::entry).value();
  EXPECT_EQ(factory.name, "fake");
  EXPECT_EQ(factory.default_rank, 3);
  std::unique_ptr<Backend> backend = factory.open(agent.context(), {{"LANES", "4"}, {"b", ""}}).value();
  EXPECT_THAT(fake.params, ElementsAre(Pair("b", ""), Pair("lanes", "4")));
  EXPECT_EQ(backend->traits().name, "fake");
  EXPECT_TRUE(backend->traits().direct);
  EXPECT_FALSE(backend->traits().lossless);
  EXPECT_EQ(backend->traits().chunk_bytes_max, 1000U);
  EXPECT_EQ(backend->address(), "at home");
  EXPECT_EQ(backend->readable_address(), "home");
  EXPECT_TRUE(backend->reachable("anywhere").ok());
  EXPECT_EQ(backend->take_params(), (Params{{"lanes", "4"}}));
  EXPECT_THAT(backend->warnings(), ElementsAre("one", "two"));
  backend->disown_after_fork();
  backend.reset();
  EXPECT_THAT(fake.calls, ElementsAre("disown", "backend.close"));
}

TEST(Plugin, ReasonsComeAcross) {
  FakePlugin fake;
  FakeAgent agent;
  std::unique_ptr<Backend> backend =
      plugin_factory("x.so", "fake", FakePlugin::entry)->open(agent.context(), {}).value();
  fake.code = HAWSER_PLUGIN_DENIED;
  std::strcpy(fake.reason.message, "not you");  // tidy: allow(strcpy) a literal that fits
  std::strcpy(fake.reason.advice, "ask");       // tidy: allow(strcpy) a literal that fits
  fake.reason.scope = HAWSER_PLUGIN_SCOPE_PEER;
  fake.reason.buffer = HAWSER_PLUGIN_BUFFER_UNTOUCHED;
  const Status denied = backend->reachable("x");
  EXPECT_EQ(denied.code(), Code::kDenied);
  EXPECT_EQ(denied.message(), "not you");
  EXPECT_EQ(denied.advice(), "ask");
  EXPECT_EQ(denied.scope(), Scope::kPeer);
  EXPECT_EQ(denied.buffer(), BufferState::kUntouched);
  // Numbers that mean nothing, and texts without an end.
  fake.code = 77;
  EXPECT_EQ(backend->reachable("x").code(), Code::kFailed);
  EXPECT_THAT(backend->reachable("x").to_string(), HasSubstr("plug-in fake (x.so) gave the unknown code 77"));
  fake.code = HAWSER_PLUGIN_BUSY;
  fake.reason.scope = fake.reason.buffer = 99;
  std::memset(fake.reason.message, 'x', sizeof(fake.reason.message));
  EXPECT_EQ(backend->reachable("x").message(), std::string(sizeof(fake.reason.message), 'x'));
  fake.reason = {};
  EXPECT_EQ(backend->reachable("x").message(), "plug-in fake gave no reason");
}

TEST(Plugin, WhatMakesNoSenseFails) {
  FakePlugin fake;
  FakeAgent agent;
  const Factory factory = plugin_factory("x.so", "fake", FakePlugin::entry).value();
  fake.traits.bytes_per_ns = 0;
  EXPECT_THAT(factory.open(agent.context(), {}).error().to_string(), HasSubstr("traits that make no sense"));
  EXPECT_THAT(fake.calls, ElementsAre("backend.close"));
  fake.traits.bytes_per_ns = 1;
  fake.null_handles = true;
  EXPECT_THAT(factory.open(agent.context(), {}).error().to_string(), HasSubstr("open gave a null handle"));
  fake.null_handles = false;
  std::unique_ptr<Backend> backend = factory.open(agent.context(), {}).value();
  fake.null_handles = true;
  EXPECT_THAT(backend->open_port().error().to_string(), HasSubstr("open_port gave a null handle"));
  fake.extra_size = HAWSER_PLUGIN_ADDRESS_MAX - 1;
  EXPECT_EQ(backend->add_region({})->size(), fake.extra_size);
  fake.extra_size = HAWSER_PLUGIN_ADDRESS_MAX;
  EXPECT_EQ(backend->add_region({}).error().code(), Code::kFailed);
  EXPECT_EQ(fake.calls.back(), "remove_region");
}

TEST(Plugin, HostServes) {
  FakePlugin fake;
  FakeAgent agent;
  std::unique_ptr<Backend> backend =
      plugin_factory("x.so", "fake", FakePlugin::entry)->open(agent.context(), {}).value();
  std::vector<std::byte> memory(100);
  RegionEntry entry;
  entry.key = {3, 4};
  entry.base = memory.data();
  entry.size = memory.size();
  entry.rights = Rights::kRead;
  const auto added = agent.regions.add(entry).value();
  const auto& host = *fake.host;
  hawser_plugin_region region{};
  hawser_plugin_reason reason{};
  const auto find = [&](hawser_plugin_id key, std::uint32_t rights) {
    return host.region_find(fake.agent, added->index, added->generation, key, rights, &region, &reason);
  };
  EXPECT_EQ(find({3, 4}, HAWSER_PLUGIN_RIGHT_READ), std::uint32_t{HAWSER_PLUGIN_OK});
  EXPECT_EQ(region.base, memory.data());
  EXPECT_EQ(region.memory_fd, -1);
  EXPECT_EQ(find({3, 4}, HAWSER_PLUGIN_RIGHT_WRITE), std::uint32_t{HAWSER_PLUGIN_DENIED});
  EXPECT_EQ(find({3, 5}, HAWSER_PLUGIN_RIGHT_READ), std::uint32_t{HAWSER_PLUGIN_DENIED});
  EXPECT_NE(reason.message[0], '\0');
  EXPECT_EQ(find({3, 4}, 8), std::uint32_t{HAWSER_PLUGIN_INVALID});
  EXPECT_EQ(host.region_is_open(fake.agent, added->index, added->generation), 1);
  agent.regions.close(added->index, added->generation);
  EXPECT_EQ(host.region_is_open(fake.agent, added->index, added->generation), 0);
  EXPECT_GT(host.now_ns(fake.agent), 0);
  unsigned char random[40] = {};
  host.random(random, sizeof(random));
  EXPECT_NE(std::memcmp(random, random + 16, 16), 0);
  EXPECT_EQ(host.log_enabled(fake.agent, HAWSER_PLUGIN_LOG_DEBUG), 0);
  host.log(fake.agent, HAWSER_PLUGIN_LOG_DEBUG, "no", 2);
  host.log(fake.agent, HAWSER_PLUGIN_LOG_INFO, "yes", 3);
  EXPECT_THAT(agent.lines, ElementsAre("a: backend fake: yes"));
}

TEST(Plugin, FilesThatAreNoneAreNamed) {
  EXPECT_EQ(load_plugin("/tmp/fake.so").error().code(), Code::kInvalid);
  EXPECT_EQ(load_plugin("libhawser_backend_A.so").error().code(), Code::kInvalid);
  const Status missing = load_plugin("/nowhere/libhawser_backend_x.so").error();
  EXPECT_EQ(missing.code(), Code::kNotFound);
  EXPECT_THAT(missing.to_string(), HasSubstr("plug-in /nowhere/libhawser_backend_x.so could not be loaded"));
  EXPECT_THAT(missing.to_string(), HasSubstr("No such file"));
  const std::vector<std::string> folders = {"/nowhere"};
  const FoundPlugins found = find_plugins(folders);
  EXPECT_TRUE(found.factories.empty());
  EXPECT_THAT(found.warnings, ElementsAre("plug-in folder /nowhere cannot be read: No such file or directory"));
}

}  // namespace
}  // namespace hawser::backend
