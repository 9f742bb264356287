#pragma once

// FakePlugin: a plug-in within the test's program, which answers what the test tells it to.
//
// Thread rule: one test at a time. Lifetime: the test's; `FakePlugin::current` is the one that answers.

#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "backend/plugin/plugin.h"
#include "backend/plugin/plugin_host.h"

// What the handles of the fake point to.
struct hawser_plugin_backend {};
struct hawser_plugin_port {};
struct hawser_plugin_path {};
struct hawser_plugin_binding {};

namespace hawser::backend {

inline hawser_plugin_text fake_text(std::string_view text) { return {text.data(), text.size()}; }
inline void fake_put(const hawser_plugin_sink* sink, std::string_view text) {
  sink->put(sink->to, text.data(), text.size());
}

struct FakePlugin {
  static inline FakePlugin* current = nullptr;

  FakePlugin();
  ~FakePlugin() { current = nullptr; }

  static std::uint32_t entry(const hawser_plugin_host* host, hawser_plugin_table* out) {
    current->host = host;
    *out = current->table;
    return current->entry_code;
  }

  const hawser_plugin_host* host = nullptr;
  hawser_plugin_agent* agent = nullptr;
  hawser_plugin_backend_api backend_api{};
  hawser_plugin_port_api port_api{};
  hawser_plugin_path_api path_api{};
  hawser_plugin_table table{};
  std::uint32_t entry_code = HAWSER_PLUGIN_OK;

  std::vector<std::string> calls;  ///< Of what ends something.
  std::vector<std::pair<std::string, std::string>> params;
  std::uint32_t code = HAWSER_PLUGIN_OK;  ///< Of all calls that can fail.
  hawser_plugin_reason reason{};
  hawser_plugin_traits traits{};
  std::size_t extra_size = 0;
  bool null_handles = false;
  hawser_plugin_backend backend;
  hawser_plugin_port port;
  hawser_plugin_path paths[4];
  hawser_plugin_binding binding;
  std::size_t next_path = 0;
  std::deque<hawser_plugin_event> events;
  std::size_t poll_lies = 0;  ///< Added to what poll gave.
  hawser_plugin_submitted submitted{};
  std::vector<hawser_plugin_chunk> chunks;
  std::string sent;
  bool quiet = true;
  std::int64_t next_deadline = 5;
};

namespace fake {

inline FakePlugin& it() { return *FakePlugin::current; }
inline std::uint32_t answer(hawser_plugin_reason* reason) {
  if (it().code != HAWSER_PLUGIN_OK) *reason = it().reason;
  return it().code;
}

inline hawser_plugin_backend_api backend_api() {
  using B = hawser_plugin_backend*;
  using S = const hawser_plugin_sink*;
  return {
      .size = sizeof(hawser_plugin_backend_api),
      .open =
          [](hawser_plugin_agent* agent, const hawser_plugin_context* context, B* out, hawser_plugin_reason* reason) {
            it().agent = agent;
            for (std::size_t i = 0; i < context->param_count; ++i) {
              const hawser_plugin_param& param = context->params[i];
              it().params.emplace_back(std::string(param.key.data, param.key.size),
                                       std::string(param.value.data, param.value.size));
            }
            *out = it().null_handles ? nullptr : &it().backend;
            return answer(reason);
          },
      .close = [](B) { it().calls.push_back("backend.close"); },
      .traits = [](B, hawser_plugin_traits* out) { *out = it().traits; },
      .address = [](B, S out) { fake_put(out, "at "), fake_put(out, "home"); },
      .readable_address = [](B, S out) { fake_put(out, "home"); },
      .reachable = [](B, hawser_plugin_text, hawser_plugin_reason* reason) { return answer(reason); },
      .add_region =
          [](B, const hawser_plugin_region*, S extra, hawser_plugin_reason* reason) {
            fake_put(extra, std::string(it().extra_size, 'x'));
            return answer(reason);
          },
      .remove_region = [](B, const hawser_plugin_region*) { it().calls.push_back("remove_region"); },
      .open_port =
          [](B, hawser_plugin_port** out, hawser_plugin_reason* reason) {
            *out = it().null_handles ? nullptr : &it().port;
            return answer(reason);
          },
      .params = [](B, S out) { fake_put(out, "lanes"), fake_put(out, "4"), fake_put(out, "odd"); },
      .warnings = [](B, S out) { fake_put(out, "one"), fake_put(out, "two"); },
      .disown_after_fork = [](B) { it().calls.push_back("disown"); },
  };
}

inline hawser_plugin_port_api port_api() {
  using P = hawser_plugin_port*;
  return {
      .size = sizeof(hawser_plugin_port_api),
      .close = [](P) { it().calls.push_back("port.close"); },
      .open_path =
          [](P, const hawser_plugin_path_target*, std::int64_t, hawser_plugin_path** out,
             hawser_plugin_reason* reason) {
            *out = it().null_handles ? nullptr : &it().paths[it().next_path++];
            return answer(reason);
          },
      .release_path = [](P, hawser_plugin_path*) { it().calls.push_back("release_path"); },
      .turn = [](P, std::int64_t, const hawser_plugin_budget*) { return it().events.size(); },
      .poll =
          [](P, hawser_plugin_event* out, std::size_t capacity) {
            std::size_t count = 0;
            for (; count < capacity && !it().events.empty(); ++count) {
              out[count] = it().events.front();
              it().events.pop_front();
            }
            return count + it().poll_lies;
          },
      .next_deadline = [](P) { return it().next_deadline; },
      .wait_fd = [](P) { return -1; },
      .prepare_sleep = [](P) { return 1; },
      .region_quiet =
          [](P, std::uint32_t, std::uint32_t, const hawser_plugin_sink* holder) {
            if (!it().quiet) fake_put(holder, "a copy");
            return it().quiet ? 1 : 0;
          },
      .begin_close = [](P, std::int64_t) { it().calls.push_back("begin_close"); },
      .idle = [](P) { return 1; },
  };
}

inline hawser_plugin_path_api path_api() {
  using P = hawser_plugin_path*;
  return {
      .size = sizeof(hawser_plugin_path_api),
      .state = [](P) { return std::uint32_t{HAWSER_PLUGIN_UP}; },
      .bind =
          [](P, const hawser_plugin_remote_region*, hawser_plugin_binding** out, hawser_plugin_reason* reason) {
            *out = it().null_handles ? nullptr : &it().binding;
            it().calls.push_back("bind");
            return answer(reason);
          },
      .unbind = [](P, std::uint32_t, std::uint32_t) { it().calls.push_back("unbind"); },
      .submit =
          [](P, const hawser_plugin_chunk* chunks, std::size_t count, std::int64_t) {
            it().chunks.insert(it().chunks.end(), chunks, chunks + count);
            return it().submitted;
          },
      .send =
          [](P, std::uint32_t, hawser_plugin_text head, hawser_plugin_text body) {
            it().sent = std::string(head.data, head.size) + std::string(body.data, body.size);
            return 1;
          },
      .cancel = [](P, std::uint64_t transfer) { it().calls.push_back("cancel " + std::to_string(transfer)); },
      .counters = [](P, hawser_plugin_counters* out) { out->chunks = 7; },
      .describe = [](P, const hawser_plugin_sink* out) { fake_put(out, "a fake"); },
  };
}

}  // namespace fake

inline FakePlugin::FakePlugin()
    : backend_api(fake::backend_api()), port_api(fake::port_api()), path_api(fake::path_api()) {
  current = this;
  table = {.size = sizeof(table),
           .abi = HAWSER_PLUGIN_ABI,
           .default_rank = 3,
           .name = fake_text("fake"),
           .backend = &backend_api,
           .port = &port_api,
           .path = &path_api};
  traits = {.flags = HAWSER_PLUGIN_DIRECT,
            .chunk_pieces_max = 16,
            .chunk_bytes_max = 1000,
            .inline_bytes_max = 10,
            .quiesce_max_ns = 1,
            .latency_ns = 1,
            .bytes_per_ns = 1,
            .piece_ns = 1};
}

/// An agent's part: identity, regions, log lines.
struct FakeAgent {
  FakeAgent() {
    identity.name = "a";
    identity.incarnation = {1, 2};
  }
  Context context() { return {identity, regions, log, base::Rng(1), Security::kDefault, {}, {}, Clock::steady()}; }

  Identity identity;
  RegionTable regions{16};
  std::vector<std::string> lines;
  base::Logger log{LogOptions{.level = LogLevel::kInfo,
                              .sink = [this](LogLevel, std::string_view line) { lines.emplace_back(line); }}};
};

}  // namespace hawser::backend
