// The directories of this library under the common suite.

#include "base/test_folder.h"
#include "directory/file_directory.h"
#include "directory_suite.h"

namespace hawser::conformance {
namespace {

class VirtualTime : public DirectoryWorld {
 public:
  Instant now() const override { return now_; }
  void advance(Duration by) override { now_ = now_ + by; }

 private:
  Instant now_ = Instant::from_ns(1'000'000'000'000);
};

class InprocWorld final : public VirtualTime {
 public:
  std::shared_ptr<Directory> open() override { return inproc_directory("conformance"); }
};

class FileWorld final : public VirtualTime {
 public:
  std::shared_ptr<Directory> open() override {
    return directory::open_file_directory(
               {.path = folder_.path("cards"), .wall_ns = [this] { return static_cast<std::uint64_t>(now().ns()); }})
        .value();
  }

 private:
  const base::TestFolder folder_{"hawser-directory"};
};

const DirectoryFactory kFactories[] = {{"inproc", [] { return std::make_unique<InprocWorld>(); }},
                                       {"file", [] { return std::make_unique<FileWorld>(); }}};

INSTANTIATE_TEST_SUITE_P(Directories, DirectorySuite, testing::ValuesIn(kFactories),
                         [](const auto& factory) { return factory.param.name; });

}  // namespace
}  // namespace hawser::conformance
