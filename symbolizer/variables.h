// FindVariables: the variables of a module that offsets lie in, by its symbols.
//
// From .symtab of the module or of its debug file, or from .dynsym, which has the exported ones
// alone. A symbol without a size names no place but its first byte, and so nothing here.
//
// The files are read by a child process, as SymbolizerProcess does and for its reasons.

#ifndef MEMTRACE_SYMBOLIZER_VARIABLES_H_
#define MEMTRACE_SYMBOLIZER_VARIABLES_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/module_question.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

struct VariableQuery {
  // Relative to the load bias; of a thread-local one to the begin of the module's block.
  uint64_t offset = 0;
  bool is_thread_local = false;
};

struct Variable {
  std::string name;    // demangled; empty: there is none
  uint64_t start = 0;  // offset of its first byte
};

struct VariablesResult {
  std::string message;  // why names may be missing, for a person; empty when all is well
  std::vector<Variable> variables;  // an answer for each query
};

// By SymbolizerProcess::FindVariables().
VariablesResult FindVariables(const AskReader& ask, const Module& module,
                              std::span<const VariableQuery> queries);
// The answer of the child to that question.
std::string AnswerVariables(const Options& options, std::string_view question);

// That answer: any bytes are decoded or refused.
std::string EncodeVariables(const VariablesResult& result);
bool DecodeVariables(std::string_view bytes, size_t queries, VariablesResult* result);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_VARIABLES_H_
