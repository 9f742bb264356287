// How long a value takes from its put until another handle's watch shows it, beside etcd's own put and watch.
//
//   etcd_visible ENDPOINT [count] [bytes]
//
// Both ways take turns in the same run: `raw` is a put and a watch through the JSON gateway with nothing beside them,
// `hawser` two directories. Prints p50, p99 and the worst in microseconds. It writes below bench-visible/.

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include <hawser/directory.h>

#include "directory/etcd/http.h"
#include "directory/etcd/message.h"

namespace {

using namespace hawser;
using namespace hawser::directory::etcd;
using namespace std::chrono_literals;

constexpr Duration kPatience = 30s;

Instant now() { return Clock::steady().now(); }

[[noreturn]] void fail(const std::string& what) {
  std::fprintf(stderr, "etcd_visible: %s\n", what.c_str());
  std::exit(1);
}

/// The gateway without anything of ours beside the transport.
class Raw {
 public:
  explicit Raw(const std::string& endpoint)
      : url_("http://" + endpoint), put_(HttpClient::open({}).value()), watch_(HttpClient::open({}).value()) {
    const std::string body = encode_watch("bench-visible/raw", 0, 1);
    if (!watch_->open_stream({url_ + "/v3/watch", body, ""}).ok() || !watch_->next_line(now() + kPatience)) {
      fail("no watch at " + endpoint);
    }
    thread_ = std::thread([this] {
      while (!watch_->is_stopped()) {
        if (watch_->next_line(now() + 1s)) seen_.fetch_add(1, std::memory_order_release);
      }
    });
  }
  ~Raw() {
    watch_->stop();
    thread_.join();
  }
  Duration once(const std::string& value) {
    const int before = seen_.load(std::memory_order_acquire);
    const Instant from = now();
    const PutRequest request{.key = "bench-visible/raw", .value = value};
    const auto reply = put_->post({url_ + "/v3/kv/txn", encode_put(request), ""}, from + kPatience);
    if (!reply || reply->status != 200) fail("a raw put failed");
    while (seen_.load(std::memory_order_acquire) == before) {
      if (now() > from + kPatience) fail("a raw put was never seen");
      std::this_thread::yield();
    }
    return now() - from;
  }

 private:
  const std::string url_;
  std::unique_ptr<HttpClient> put_, watch_;
  std::atomic<int> seen_{0};
  std::thread thread_;
};

class Ours {
 public:
  explicit Ours(const std::string& endpoint)
      : put_(etcd({.endpoints = {endpoint}, .prefix = "bench-visible/"}).value()),
        watch_(etcd({.endpoints = {endpoint}, .prefix = "bench-visible/"}).value()),
        ticket_(watch_->watch("hawser")) {
    (void)wait(*watch_, ticket_);
  }
  Duration once(const std::string& value) {
    const Instant from = now();
    const Ticket put = put_->put("hawser", value, {});
    (void)wait(*watch_, ticket_);
    const Duration time = now() - from;
    if (!wait(*put_, put).status.ok()) fail("a put failed");
    return time;
  }

 private:
  static DirectoryEvent wait(Directory& directory, Ticket ticket) {
    for (const Instant end = now() + kPatience; now() < end; (void)directory.run_job(now(), end)) {
      if (auto event = directory.poll(ticket)) return *std::move(event);
    }
    fail("no answer of the directory");
  }

  std::shared_ptr<Directory> put_, watch_;
  Ticket ticket_;
};

void print(const char* name, std::vector<Duration> times) {
  std::sort(times.begin(), times.end());
  const auto at = [&](double share) {
    const auto place = static_cast<std::size_t>(share * static_cast<double>(times.size() - 1));
    return static_cast<double>(times[place].count()) / 1e3;
  };
  std::printf("%-8s %10.0f %10.0f %10.0f\n", name, at(0.5), at(0.99), at(1.0));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 2) fail("usage: etcd_visible ENDPOINT [count] [bytes]");
  const int count = argc > 2 ? std::max(1, std::atoi(argv[2])) : 1000;
  const std::string padding(static_cast<std::size_t>(argc > 3 ? std::max(0, std::atoi(argv[3])) : 1024), 'x');
  Raw raw(argv[1]);
  Ours ours(argv[1]);
  std::vector<Duration> raw_times, our_times;
  for (int i = -10; i < count; ++i) {
    const std::string value = std::to_string(i) + padding;
    const Duration raw_time = raw.once(value), our_time = ours.once(value);
    if (i < 0) continue;  // Connections are made, caches are warm.
    raw_times.push_back(raw_time);
    our_times.push_back(our_time);
  }
  std::printf("put to visible, %d puts of %zu bytes, microseconds\n%-8s %10s %10s %10s\n", count, padding.size(), "way",
              "p50", "p99", "worst");
  print("raw", raw_times);
  print("hawser", our_times);
  return 0;
}
