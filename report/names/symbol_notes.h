// SymbolNotes: which modules have no names, and why, in sentences for the reader of a report.
//
// One thread.

#ifndef MEMTRACE_REPORT_NAMES_SYMBOL_NOTES_H_
#define MEMTRACE_REPORT_NAMES_SYMBOL_NOTES_H_

#include <cstddef>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_set.h"
#include "report/findings/process_info.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::report {

class SymbolNotes {
 public:
  void Add(const ModuleInfo& module, const symbolizer::ModuleResult& result);
  // After all of them.
  void Finish();

  // One sentence per module whose names could not be had, or for all that have none for the same
  // reason; the first kMostTexts.
  const std::vector<std::string>& texts() const { return texts_; }
  // Paths of modules that are gone, or in whose place another build lies: what is named of them is
  // named by an earlier report.
  const std::set<std::string>& replaced() const { return replaced_; }

 private:
  static constexpr size_t kMostTexts = 100;

  void AddText(std::string text);

  std::vector<std::string> texts_;
  std::set<std::string> replaced_;
  absl::flat_hash_set<std::string> noted_;  // what was or would be in texts_
  // The modules that have no names, by the reason, worded for one file and for several.
  std::map<std::pair<std::string, std::string>, std::set<std::string>> unnamed_;
};

}  // namespace memtrace::report

#endif  // MEMTRACE_REPORT_NAMES_SYMBOL_NOTES_H_
