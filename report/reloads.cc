#include "report/reloads.h"

#include <map>
#include <string>
#include <tuple>

#include "format/trace_format.h"

namespace memtrace::report {

Reloads::Reloads(std::span<const ModuleRecord> modules) {
  std::map<std::tuple<std::string, std::string, uint64_t>, const ModuleInfo*> first;
  for (const ModuleRecord& record : modules) {
    const ModuleInfo& module = record.info;
    const uint32_t instance = module.id.value;
    if (instance == format::kPermanentInstance || instance >= format::kNoModule ||
        module.build_id.empty()) {
      continue;
    }
    const auto [at, is_first] =
        first.try_emplace({module.path, module.build_id, module.end - module.start}, &module);
    if (is_first || at->second->id == module.id) continue;  // a record may come again
    if (by_instance_.size() <= instance) by_instance_.resize(instance + 1);
    by_instance_[instance] = {at->second->id.value, at->second->bias - module.bias};
  }
}

}  // namespace memtrace::report
