#pragma once

// Exposition: the figures of one scrape in Prometheus's text format, version 0.0.4
// (https://prometheus.io/docs/instrumenting/exposition_formats/).
//
// Several sources may add to one family; its samples stand together in the text, as the format asks. Samples of one
// name and the same labels are one series, which a scrape may tell once: their values are summed up.
//
// Thread rule: one thread. Lifetime: copies what it is given.

#include <cstdint>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

namespace hawser::metrics {

struct Label {
  std::string_view name;   ///< [a-zA-Z_][a-zA-Z0-9_]*.
  std::string_view value;  ///< Any text; what is no UTF-8 is shown as \xNN.
};
using Labels = std::span<const Label>;

/// Cumulative counts of one histogram: `count` values were at most `bound`.
struct Bucket {
  double bound = 0;
  std::uint64_t count = 0;
};

class Exposition {
 public:
  /// `name` ends in _total.
  void counter(std::string_view name, std::string_view help, Labels labels, std::uint64_t value);
  void counter(std::string_view name, std::string_view help, std::initializer_list<Label> labels, std::uint64_t value) {
    counter(name, help, Labels(labels.begin(), labels.size()), value);
  }
  void gauge(std::string_view name, std::string_view help, Labels labels, double value);
  void gauge(std::string_view name, std::string_view help, std::initializer_list<Label> labels, double value) {
    gauge(name, help, Labels(labels.begin(), labels.size()), value);
  }
  /// Buckets by rising bound, without the infinite one, which `count` is.
  void histogram(std::string_view name, std::string_view help, Labels labels, std::span<const Bucket> buckets,
                 std::uint64_t count, double sum);

  std::string text() const;
  /// Appends the next piece of the text, of about so many bytes, and forgets what is in it. False: that was the end.
  /// Nothing may be added once it was called.
  bool drain(std::string& out, std::size_t about);

 private:
  /// Whole numbers stay whole: a double has 53 bits of them.
  using Value = std::variant<std::uint64_t, double>;
  struct Sample {
    std::string series;  ///< Name and labels.
    Value value;
  };
  struct Family {
    std::string_view type;
    std::string help;
    std::vector<Sample> samples;
    std::unordered_map<std::string, std::size_t> place;  ///< By series.
    void add(std::string series, Value value);
  };
  Family& family(std::string_view name, std::string_view type, std::string_view help);
  static void add_head(std::string& out, std::string_view name, const Family& family);
  static void add_sample(std::string& out, const Sample& sample);

  std::map<std::string, Family, std::less<>> families_;
  std::size_t drained_ = 0;  ///< Samples of the first family.
};

}  // namespace hawser::metrics
