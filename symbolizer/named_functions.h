// FindNamedFunctions: where the functions with certain names lie in a module.
//
// By .symtab of the file and by .dynsym. The file is read by a child process, as
// SymbolizerProcess does and for its reasons; what cannot be read has no functions.

#ifndef MEMTRACE_SYMBOLIZER_NAMED_FUNCTIONS_H_
#define MEMTRACE_SYMBOLIZER_NAMED_FUNCTIONS_H_

#include <compare>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/module_question.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

// Relative to the load bias.
struct NamedRange {
  uint64_t begin = 0, end = 0;
  friend auto operator<=>(const NamedRange&, const NamedRange&) = default;
};

// Functions with a size whose linkage names begin with one of `prefixes`: by address, each once.
// By SymbolizerProcess::FindNamedFunctions().
std::vector<NamedRange> FindNamedFunctions(const AskReader& ask, const Module& module,
                                           std::span<const std::string_view> prefixes);
// The answer of the child to that question.
std::string AnswerNamedFunctions(const Options& options, std::string_view question);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_NAMED_FUNCTIONS_H_
