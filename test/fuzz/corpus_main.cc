// Runs a fuzz target over the files of a corpus without libFuzzer, so that every build checks what fuzzing once found.
//
// usage: fuzz_<name> FILE-OR-FOLDER...
// Each file is an input; of one that is called *.hex each line is, in hexadecimal (tools/fuzz_corpus.py).
// Exit status: 0 when each file went through, 1 when there was none or one could not be read.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> files_under(const fs::path& path) {
  std::vector<fs::path> files;
  if (!fs::is_directory(path)) return {path};
  for (const auto& entry : fs::recursive_directory_iterator(path)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

// An exact heap copy, so that AddressSanitizer sees a read past the end.
void run(const std::vector<std::uint8_t>& input) { LLVMFuzzerTestOneInput(input.data(), input.size()); }

std::optional<std::vector<std::uint8_t>> parse(const std::string& line) {
  std::vector<std::uint8_t> bytes(line.size() / 2);
  if (line.size() % 2 != 0) return std::nullopt;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const char* const at = line.data() + 2 * i;
    const auto [end, error] = std::from_chars(at, at + 2, bytes[i], 16);
    if (error != std::errc() || end != at + 2) return std::nullopt;
  }
  return bytes;
}

/// The number of its inputs; 0: it has none, or cannot be read.
std::size_t run_lines(const fs::path& path) {
  std::ifstream in(path);
  std::size_t count = 0;
  for (std::string line; std::getline(in, line); ++count) {
    const auto input = parse(line);
    if (!input) {
      std::fprintf(stderr, "%s:%zu: this is no hexadecimal input\n", path.c_str(), count + 1);
      return 0;
    }
    run(*input);
  }
  return count;
}

std::size_t run_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) {
    std::fprintf(stderr, "cannot read %s\n", path.c_str());
    return 0;
  }
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  run({bytes.begin(), bytes.end()});
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  std::size_t count = 0;
  for (int i = 1; i < argc; ++i) {
    for (const fs::path& path : files_under(argv[i])) {
      const std::size_t its = path.extension() == ".hex" ? run_lines(path) : run_file(path);
      if (its == 0) return 1;
      count += its;
    }
  }
  std::printf("%zu inputs\n", count);
  return count == 0 ? 1 : 0;
}
