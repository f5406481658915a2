#include "report/model/reloads.h"

#include <map>
#include <string>
#include <tuple>

#include "format/trace_format.h"
#include "report/trace/event_block.h"
#include "report/trace/event_decoder.h"

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

const uint64_t* Reloads::PathOfFirst(const uint64_t* words, std::vector<uint64_t>* path) const {
  path->assign(words, words + WordsOf(words[0]));
  for (uint64_t& word : std::span(*path).subspan(1)) word = First(word);
  return path->data();
}

}  // namespace memtrace::report
