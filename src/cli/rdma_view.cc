#include "cli/rdma_view.h"

#include <fmt/format.h>

#include <cstdint>

#include "cli/table.h"

namespace hawser::cli {
namespace {

namespace verbs = backend::verbs;

std::string speed_text(std::uint64_t mbit_per_s) {
  if (mbit_per_s == 0 || mbit_per_s == UINT64_MAX) return "unknown";
  return fmt::format("{:g} Gbit/s", static_cast<double>(mbit_per_s) / 1000);
}

std::string port_name(const verbs::DeviceInfo& device, const verbs::PortInfo& port) {
  return fmt::format("{}:{}", device.name, port.number);
}

std::string chosen_gid(const verbs::PortInfo& port, const std::vector<verbs::GidScore>& table) {
  if (port.link_layer == verbs::LinkLayer::kInfiniBand) return fmt::format("LID {}", port.lid);
  if (table.empty() || !table.front().usable) return "none";
  const verbs::Gid& gid = table.front().gid;
  return fmt::format("{}: {} ({})", gid.index, gid.text(), to_string(gid.type));
}

std::string open_text(const verbs::SurveyedDevice& device, std::size_t port) {
  if (!device.open.ok()) return std::string(device.open.message());
  return device.usable[port].ok() ? "yes" : std::string(device.usable[port].message());
}

std::string place_text(const verbs::DeviceInfo& device) {
  if (device.pci) return device.pci->address().to_string();
  return device.netdevs.empty() ? "-" : device.netdevs.front();
}

std::string with_prefix(const verbs::Gid& gid) {
  return gid.prefix_bits > 0 ? fmt::format("{}/{}", gid.text(), gid.prefix_bits) : gid.text();
}

Json gid_json(const verbs::GidScore& score) {
  return {{"index", score.gid.index},
          {"text", score.gid.text()},
          {"type", to_string(score.gid.type)},
          {"prefix_bits", score.gid.prefix_bits},
          {"netdev", score.gid.netdev},
          {"score", score.score},
          {"usable", score.usable},
          {"reason", score.reason}};
}

Json port_json(const verbs::SurveyedDevice& device, std::size_t i) {
  const verbs::PortInfo& port = device.info.ports[i];
  Json json = {{"port", port.number},
               {"state", to_string(port.state)},
               {"link_layer", to_string(port.link_layer)},
               {"mbit_per_s", port.mbit_per_s},
               {"active_mtu", port.active_mtu},
               {"lid", port.lid},
               {"sm_lid", port.sm_lid},
               {"netdev", port.netdev},
               {"usable", device.usable[i].ok()},
               {"error", to_json(device.usable[i])}};
  json["gids"] = Json::array();
  for (const verbs::GidScore& score : device.gids[i]) json["gids"].push_back(gid_json(score));
  json["counters"] = Json::object();
  for (const auto& [name, value] : port.counters) json["counters"][name] = value;
  return json;
}

Json device_json(const verbs::SurveyedDevice& device) {
  const verbs::DeviceInfo& info = device.info;
  Json json = {{"name", info.name},           {"driver", info.driver},         {"transport", to_string(info.transport)},
               {"node_guid", info.node_guid}, {"firmware", info.firmware},     {"uverbs", info.uverbs},
               {"netdevs", info.netdevs},     {"pci_vendor", info.pci_vendor}, {"pci_device", info.pci_device}};
  json["pci"] = info.pci ? Json(info.pci->address().to_string()) : Json();
  json["numa"] = info.numa_node >= 0 ? Json(info.numa_node) : Json();
  json["open"] = device.open.ok();
  json["error"] = to_json(device.open);
  json["ports"] = Json::array();
  for (std::size_t i = 0; i < info.ports.size(); ++i) json["ports"].push_back(port_json(device, i));
  return json;
}

}  // namespace

std::vector<verbs::DeviceInfo> infos_of(const verbs::Survey& survey) {
  std::vector<verbs::DeviceInfo> infos;
  for (const verbs::SurveyedDevice& device : survey.devices) infos.push_back(device.info);
  return infos;
}

std::string rdma_counters_text(const verbs::Survey& survey) {
  Table table({{"rdma port"}, {"counter of the kernel"}, {"value", Align::kRight}});
  for (const verbs::SurveyedDevice& device : survey.devices) {
    for (const verbs::PortInfo& port : device.info.ports) {
      for (const auto& [name, value] : port.counters) {
        if (value > 0) table.add({port_name(device.info, port), name, std::to_string(value)});
      }
    }
  }
  return table.empty() ? "" : table.to_string();
}

std::string rdma_ports_text(const verbs::Survey& survey) {
  Table table({{"rdma port"},
               {"driver"},
               {"at"},
               {"numa", Align::kRight},
               {"state"},
               {"link"},
               {"speed", Align::kRight},
               {"mtu", Align::kRight},
               {"GID in use"},
               {"usable"}});
  for (const verbs::SurveyedDevice& device : survey.devices) {
    const verbs::DeviceInfo& info = device.info;
    for (std::size_t i = 0; i < info.ports.size(); ++i) {
      const verbs::PortInfo& port = info.ports[i];
      table.add({port_name(info, port), info.driver, place_text(info),
                 info.numa_node >= 0 ? std::to_string(info.numa_node) : "-", to_string(port.state),
                 to_string(port.link_layer), speed_text(port.mbit_per_s),
                 port.active_mtu > 0 ? std::to_string(port.active_mtu) : "-", chosen_gid(port, device.gids[i]),
                 open_text(device, i)});
    }
  }
  return table.empty() ? "" : table.to_string();
}

std::string rdma_gids_text(const verbs::Survey& survey) {
  Table table(
      {{"rdma port"}, {"gid", Align::kRight}, {"address"}, {"interface"}, {"score", Align::kRight}, {"reason"}});
  for (const verbs::SurveyedDevice& device : survey.devices) {
    for (std::size_t i = 0; i < device.gids.size(); ++i) {
      for (const verbs::GidScore& score : device.gids[i]) {
        table.add({port_name(device.info, device.info.ports[i]), std::to_string(score.gid.index),
                   with_prefix(score.gid), score.gid.netdev, std::to_string(score.score), score.reason});
      }
    }
  }
  return table.empty() ? "" : table.to_string();
}

std::string rdma_rails_text(const std::vector<verbs::PlacePorts>& places) {
  Table table({{"memory of"}, {"rank", Align::kRight}, {"rdma port"}, {"path"}, {"narrowest", Align::kRight}});
  for (const verbs::PlacePorts& place : places) {
    for (const verbs::LocalPort& port : place.ports) {
      table.add({place.place, std::to_string(port.rank), port_name(*port.device, *port.port),
                 to_string(port.path.path_class), speed_text(port.path.mbit_per_s)});
    }
  }
  return table.empty() ? "" : table.to_string();
}

Json rdma_json(const verbs::Survey& survey) {
  Json json = {{"library", survey.library}, {"library_error", to_json(survey.library_error)}};
  json["devices"] = Json::array();
  for (const verbs::SurveyedDevice& device : survey.devices) json["devices"].push_back(device_json(device));
  return json;
}

Json rails_json(const std::vector<verbs::PlacePorts>& places) {
  Json json = Json::array();
  for (const verbs::PlacePorts& place : places) {
    Json ports = Json::array();
    for (const verbs::LocalPort& port : place.ports) {
      ports.push_back({{"device", port.device->name},
                       {"port", port.port->number},
                       {"rank", port.rank},
                       {"path", to_string(port.path.path_class)},
                       {"mbit_per_s", port.path.mbit_per_s == UINT64_MAX ? Json() : Json(port.path.mbit_per_s)}});
    }
    json.push_back({{"place", place.place}, {"ports", std::move(ports)}});
  }
  return json;
}

}  // namespace hawser::cli
