#pragma once

// A sysfs made up for a test: PCI devices below host bridges, and RDMA devices on them. For tests only.

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/test_folder.h"

namespace hawser::backend::verbs {

class SysfsTree {
 public:
  std::string root() const { return folder_.path(); }

  void put(const std::string& path, std::string_view text) const {
    const std::filesystem::path at = folder_.path(path);
    std::filesystem::create_directories(at.parent_path());
    std::ofstream(at) << text << '\n';
  }
  void link(const std::string& path, const std::string& to) const {
    const std::filesystem::path at = folder_.path(path);
    std::filesystem::create_directories(at.parent_path());
    std::filesystem::create_symlink(folder_.path(to), at);
  }

  /// `way`: "pci0000:00/0000:00:01.0/0000:01:00.0". The last part is the device; bus/pci/devices links to it.
  void pci(const std::string& way, int numa_node) const {
    const std::string folder = "devices/" + way;
    put(folder + "/numa_node", std::to_string(numa_node));
    link("bus/pci/devices/" + std::filesystem::path(way).filename().string(), folder);
  }
  void pci_link(const std::string& way, std::string_view speed, std::string_view width) const {
    put("devices/" + way + "/max_link_speed", speed);
    put("devices/" + way + "/max_link_width", width);
  }

  /// A device on the PCI device at `way` (which pci() made), with one port.
  void rdma(const std::string& name, const std::string& way, std::string_view rate = "100 Gb/sec (4X EDR)") const {
    link("class/infiniband/" + name + "/device", "devices/" + way);
    put("class/infiniband/" + name + "/node_type", "1: CA");
    port(name, "1", "4: ACTIVE", rate);
  }
  void port(const std::string& name, const std::string& number, std::string_view state,
            std::string_view rate = "100 Gb/sec (4X EDR)") const {
    const std::string folder = "class/infiniband/" + name + "/ports/" + number;
    put(folder + "/state", state);
    put(folder + "/link_layer", "Ethernet");
    put(folder + "/rate", rate);
  }
  void gid(const std::string& name, const std::string& index, std::string_view bytes, std::string_view type,
           std::string_view netdev) const {
    const std::string folder = "class/infiniband/" + name + "/ports/1/";
    put(folder + "gids/" + index, bytes);
    put(folder + "gid_attrs/types/" + index, type);
    put(folder + "gid_attrs/ndevs/" + index, netdev);
  }

 private:
  base::TestFolder folder_;
};

}  // namespace hawser::backend::verbs
