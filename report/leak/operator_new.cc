#include "report/leak/operator_new.h"

#include <string_view>

#include "absl/strings/match.h"
#include "format/trace_format.h"
#include "report/base/path.h"
#include "symbolizer/symbolizer_process.h"

namespace memtrace::report {
namespace {

// operator new(unsigned long, ...), operator new[](unsigned long, ...)
constexpr std::string_view kNewNames[] = {"_Znwm", "_Znam"};

}  // namespace

std::vector<leak::CodeRange> FindOperatorNew(const std::vector<ModuleRecord>& modules,
                                             symbolizer::SymbolizerProcess* symbolizer) {
  std::vector<leak::CodeRange> ranges;
  for (const ModuleRecord& record : modules) {
    const ModuleInfo& module = record.info;
    const absl::string_view name = FileNameOf(module.path);
    if (!absl::StartsWith(name, "libstdc++") && !absl::StartsWith(name, "libc++")) continue;
    const bool permanent = (module.flags & format::kModulePermanent) != 0;
    for (const symbolizer::NamedRange& range :
         symbolizer->FindNamedFunctions({module.path, module.build_id}, kNewNames)) {
      ranges.push_back({permanent ? format::kPermanentInstance : module.id.value,
                        module.bias + range.begin, module.bias + range.end});
    }
  }
  return ranges;
}

}  // namespace memtrace::report
