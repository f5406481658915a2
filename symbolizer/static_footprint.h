// StaticFootprint: what a module takes before it runs: text, data, bss, by compilation unit
// and symbol.
//
// The bytes are those of the sections that are loaded, as `size` adds them up: text is what is
// not writable (code, constants, unwind tables), data is writable and in the file, bss is not
// in the file. Each byte counts once: for the innermost symbol that covers it, and the unit
// whose ranges or variables do. What no symbol covers has its section's name, "[.eh_frame]".
//
// Units come from DWARF, of the module or its debug file; where there is none, from the file
// symbols of .symtab, which tell the file of local symbols only. The file is read by a child
// process: it may be anything.

#ifndef MEMTRACE_SYMBOLIZER_STATIC_FOOTPRINT_H_
#define MEMTRACE_SYMBOLIZER_STATIC_FOOTPRINT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/module_question.h"
#include "symbolizer/symbolizer.h"

namespace memtrace::symbolizer {

struct FootprintBytes {
  uint64_t text = 0, data = 0, bss = 0;

  void Add(const FootprintBytes& more) {
    text += more.text;
    data += more.data;
    bss += more.bss;
  }
  uint64_t total() const { return text + data + bss; }
  friend bool operator==(const FootprintBytes&, const FootprintBytes&) = default;
};

struct FootprintItem {
  std::string unit;  // the source file of the compilation unit; empty: not known
  std::string name;  // demangled symbol, or the section in brackets
  FootprintBytes bytes;
};

struct StaticFootprint {
  ModuleState state = ModuleState::kNotFound;
  std::string message;  // why, for a person, where there is nothing
  std::string missed;   // as ModuleResult's
  FootprintBytes total;               // of the sections
  std::vector<FootprintItem> items;   // add up to that
};

// By SymbolizerProcess::FindFootprint().
StaticFootprint FindFootprint(const AskReader& ask, const Module& module);
// The answer of the child to that question.
std::string AnswerFootprint(const Options& options, std::string_view question);

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_STATIC_FOOTPRINT_H_
