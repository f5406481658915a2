// FunctionNames: function DIEs -> names.
//
// A concrete function or inlined call has no name of its own: it points to an
// abstract instance (DW_AT_abstract_origin), which may point to a declaration
// in a class (DW_AT_specification), each perhaps in another unit, or in the
// supplementary file of dwz. The linkage name found on that way wins, for it
// says the namespace and the parameters. Many calls point to one instance, so
// both the way and the demangling are done once for each.

#ifndef MEMTRACE_SYMBOLIZER_FUNCTION_NAMES_H_
#define MEMTRACE_SYMBOLIZER_FUNCTION_NAMES_H_

#include <elfutils/libdw.h>

#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/container/node_hash_map.h"
#include "symbolizer/enclosing_scopes.h"

namespace memtrace::symbolizer {

class FunctionNames {
 public:
  struct Name {
    std::string function;  // demangled; empty when the DIE is nameless
    std::string linkage_name;
  };

  const Name& Of(Dwarf_Die* die);
  // With what is around it, where there is no linkage name to say so; else empty.
  const std::string& QualifiedName(Dwarf_Die* die) { return scopes_.QualifiedName(die); }

 private:
  struct RawName {
    const char* linkage_name = nullptr;
    const char* name = nullptr;
    friend bool operator==(const RawName&, const RawName&) = default;
    template <typename H>
    friend H AbslHashValue(H h, const RawName& raw) {
      return H::combine(std::move(h), raw.linkage_name, raw.name);
    }
  };

  RawName RawOf(Dwarf_Die* die, int depth);

  EnclosingScopes scopes_;
  absl::flat_hash_map<void*, RawName> raw_;      // by address of a DIE that others point to
  absl::node_hash_map<RawName, Name> names_;     // by the addresses of both strings
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_FUNCTION_NAMES_H_
