#include "report/model/module_finder.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "report/base/map_line.h"

namespace memtrace::report {
namespace {

// Modules that were at one place one after the other, for one address.
constexpr size_t kMostInstances = 1024;

// Files that are mapped as code, and from where to where: their first mapping is of their begin.
using Files = std::map<std::string, std::pair<uint64_t, uint64_t>>;

void AddFiles(const std::optional<MapRecord>& map, Files* files) {
  if (!map.has_value()) return;
  std::set<std::string> code;
  Files here;
  ForEachMapLine(map->text, [&](const MapLine& line) {
    const bool is_file = !line.anonymous() && line.name.starts_with('/');
    if (!is_file || line.name.ends_with(" (deleted)")) return;
    std::string name(line.name);
    if (line.permissions[2] == 'x') code.insert(name);
    const auto [at, is_new] = here.try_emplace(std::move(name), line.begin, line.end);
    if (!is_new) at->second.second = line.end;
  });
  for (const std::string& name : code) files->try_emplace(name, here.at(name));
}

}  // namespace

std::vector<ModuleInfo> ModulesOf(const TraceReader& reader) {
  std::vector<ModuleInfo> modules;
  for (const ModuleRecord& record : reader.metadata().modules) {
    ModuleInfo module = record.info;
    module.load_time_ns = reader.clock().ToNs(record.load_ticks);
    if (record.unload_ticks != 0) {
      module.unload_time_ns = std::max<uint64_t>(reader.clock().ToNs(record.unload_ticks), 1);
    }
    modules.push_back(std::move(module));
  }
  return modules;
}

std::vector<ModuleInfo> ModulesAndMappedFiles(const TraceReader& reader) {
  std::vector<ModuleInfo> modules = ModulesOf(reader);
  Files files;
  AddFiles(reader.metadata().map_at_end, &files);
  AddFiles(reader.metadata().map_at_start, &files);
  uint32_t number = 0;
  for (const ModuleInfo& module : modules) {
    number = std::max(number, module.id.value);
    std::erase_if(files, [&module](const auto& file) {
      const auto& [path, range] = file;
      const bool overlaps = range.first < module.end && module.start < range.second;
      // Where one was unloaded another may lie.
      return overlaps && (module.unload_time_ns == 0 || module.path == path);
    });
  }
  for (const auto& [path, range] : files) {
    if (++number >= format::kNoModule) break;
    ModuleInfo module;
    module.id = ModuleId{number};
    module.start = module.bias = range.first;
    module.end = range.second;
    module.path = path;
    modules.push_back(std::move(module));
  }
  return modules;
}

ModuleFinder::ModuleFinder(std::span<const ModuleInfo> modules) {
  for (const ModuleInfo& module : modules) by_start_.push_back(&module);
  std::stable_sort(by_start_.begin(), by_start_.end(),
                   [](const ModuleInfo* a, const ModuleInfo* b) { return a->start < b->start; });
  uint64_t end = 0;
  for (const ModuleInfo* module : by_start_) {
    in_turn_ |= module->start < end;
    end = std::max(end, module->end);
  }
}

const ModuleInfo* ModuleFinder::Find(uint64_t address, uint64_t time_ns) const {
  auto at = std::lower_bound(
      by_start_.begin(), by_start_.end(), address,
      [](const ModuleInfo* module, uint64_t wanted) { return module->start < wanted; });
  const auto until = [](const ModuleInfo& module) {
    return module.unload_time_ns == 0 ? UINT64_MAX : module.unload_time_ns;
  };
  const ModuleInfo* found = nullptr;
  for (size_t i = 0; i < kMostInstances && at != by_start_.begin(); ++i) {
    const ModuleInfo& module = **--at;
    if (address <= module.end && until(module) >= time_ns &&
        (found == nullptr || until(module) < until(*found))) {
      found = &module;
    }
    if (!in_turn_) break;
  }
  return found;
}

}  // namespace memtrace::report
