// CallTargets: which function a call instruction names, by the address behind it.
//
// A stack says where a call came from. What was called it says only if that function is on the
// stack, and one that ends in a jump to another is not: `operator delete(void*)` jumps to free().
// The instruction in front of the return address tells it:
//
//   e8 disp32         call function, or its stub (plt_names.h)
//   ff 15 disp32      call *word(%rip): a word of the GOT that has a relocation
//
// Instructions have no fixed length, so bytes that look like this may be others'. Only a target
// that is the first byte of a function or of a stub, or such a word, is believed. Calls through
// registers and memory name nothing. Where a linker has folded an allocating or freeing operator
// with another function of the same code, nobody can tell which was meant, and nothing is found.
// x86-64 only; elsewhere nothing is found.

#ifndef MEMTRACE_SYMBOLIZER_CALL_TARGETS_H_
#define MEMTRACE_SYMBOLIZER_CALL_TARGETS_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "symbolizer/elf_file.h"
#include "symbolizer/plt_names.h"
#include "symbolizer/symbol_table.h"

namespace memtrace::symbolizer {

class CallTargets {
 public:
  // All must outlive this. `module` is the module itself: separate debug files have no code.
  CallTargets(const ElfFile& module, const SymbolTable& symbols, const PltNames& plt);

  // The symbol of the function that was called, as it is written, mangled or not; empty: not known.
  std::string Find(uint64_t return_address) const;

 private:
  // May the function with this name be another operator of the module's own, of which the
  // linker has kept no name?
  bool IsUnsure(std::string_view name) const;

  std::vector<ElfSection> code_;
  std::vector<std::string_view> unsure_;  // what their names begin with
  const SymbolTable& symbols_;
  const PltNames& plt_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_CALL_TARGETS_H_
