#include "report/findings/process_info.h"

#include "absl/strings/escaping.h"

namespace memtrace::report {

std::string ProcessBuildId(const ProcessInfo& process, const std::vector<ModuleInfo>& modules) {
  if (!process.build_id.empty()) return process.build_id;
  for (const ModuleInfo& module : modules) {
    if (module.flags & format::kModuleExecutable) return absl::BytesToHexString(module.build_id);
  }
  return "";
}

}  // namespace memtrace::report
