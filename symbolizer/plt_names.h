// PltNames: the stubs through which a module calls other modules, "name@plt".
//
// Stubs have no symbols. Each jumps through a word of the GOT, and the dynamic
// relocation of that word names the function; so the jump is decoded, and its
// target looked up among the relocations. This holds for .plt, .plt.sec and
// .plt.got alike, in whatever order the linker laid them out:
//
//   [endbr64] [bnd] jmp *disp32(%rip)      GOT word = end of the jump + disp32
//   endbr64; push $n; [bnd] jmp .plt[0]    lazy half of a .plt/.plt.sec pair:
//                                          n-th relocation of .rela.plt
//
// x86-64 only; on other machines the table stays empty.

#ifndef MEMTRACE_SYMBOLIZER_PLT_NAMES_H_
#define MEMTRACE_SYMBOLIZER_PLT_NAMES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "symbolizer/address_map.h"
#include "symbolizer/elf_file.h"
#include "symbolizer/symbol_table.h"

namespace memtrace::symbolizer {

class PltNames {
 public:
  // `module` is the module itself: separate debug files have no code. `symbols`
  // names the targets of IFUNC stubs, which relocate to an address.
  void Build(const ElfFile& module, const SymbolTable& symbols);
  // The name before "@plt"; null when the address is in no known stub.
  const std::string* Find(uint64_t address) const;
  // The function whose address the loader writes into this word of the GOT; null: none.
  const std::string* FindGotWord(uint64_t address) const;

 private:
  AddressMap<uint32_t> stubs_;  // index into names_
  std::vector<std::string> names_;
  absl::flat_hash_map<uint64_t, std::string> by_got_word_;
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_PLT_NAMES_H_
