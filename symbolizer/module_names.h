// Names that a module defines or asks others for. For questions about a whole module ("does
// it bring a malloc of its own?") that no single address answers.

#ifndef MEMTRACE_SYMBOLIZER_MODULE_NAMES_H_
#define MEMTRACE_SYMBOLIZER_MODULE_NAMES_H_

#include <chrono>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/ask_child.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

struct NameUse {
  bool exported = false;  // defined, for other modules as well
  bool hidden = false;    // defined, for this module alone
  bool wanted = false;    // not defined: taken from another module
  bool by_name = false;   // defined, and used by its name: it may be another module's that it gets
};

struct ModuleNames {
  ModuleState state = ModuleState::kNotFound;  // uses are of kSymbolsOnly and kDebugInfo
  bool symbolic = false;       // it binds what it defines itself (-Bsymbolic)
  bool symbol_table = false;   // .symtab: without it hidden names are not known
  std::vector<NameUse> uses;   // of each name asked, in that order
  std::vector<bool> contains;  // of each text asked: it stands in the read-only data
};

// `texts` are looked for only in a module without a symbol table. The file is read by a child
// process, which `ask` has answer: it may be anything. Where that fails the state is kUnreadable.
using AskForNames = std::function<ChildAnswer(std::string_view question,
                                              std::chrono::milliseconds time, size_t most_bytes)>;
ModuleNames FindNames(const AskForNames& ask, const Module& module, const std::string& sysroot,
                      std::span<const std::string_view> names,
                      std::span<const std::string_view> texts);
// The answer of the child to that question.
std::string AnswerNames(std::string_view question);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_MODULE_NAMES_H_
