// EnclosingScopes: function DIEs without a linkage name -> the name with its namespaces,
// classes and parameters.
//
// GCC gives linkage names to functions that other files can see. What is in an unnamed
// namespace, is static, or is a lambda has a bare "operator()" or "Make", which says little
// to a person and is the same for many functions. What is around the DIE says the rest:
// "app::(anonymous namespace)::Pool::Make(int)". DIEs do not point to their parents, so the
// way is found from the unit down; the children of what was passed are kept.
//
// One thread. For DIEs of one module, which outlives it.

#ifndef MEMTRACE_SYMBOLIZER_ENCLOSING_SCOPES_H_
#define MEMTRACE_SYMBOLIZER_ENCLOSING_SCOPES_H_

#include <elfutils/libdw.h>

#include <string>
#include <vector>

#include "absl/container/node_hash_map.h"

namespace memtrace::symbolizer {

class EnclosingScopes {
 public:
  // Empty when the DIE's name is all there is: of C, or of C linkage.
  const std::string& QualifiedName(Dwarf_Die* function);

 private:
  // "app::Pool::" of a DIE in there; at most kMostScopes of them.
  std::string Prefix(Dwarf_Die* die);
  std::string TypeName(Dwarf_Die* die, int depth);
  bool HasParameters(Dwarf_Die* function);
  std::string Parameters(Dwarf_Die* function);
  // Does the unit of `die` say anything of types, and so of parameters?
  bool KnowsTypes(Dwarf_Die* die);
  const std::vector<Dwarf_Die>& Children(Dwarf_Die* die);

  absl::node_hash_map<void*, std::vector<Dwarf_Die>> children_;
  absl::node_hash_map<void*, std::string> names_;  // by the DIE that is declared
};

}  // namespace memtrace::symbolizer

#endif  // MEMTRACE_SYMBOLIZER_ENCLOSING_SCOPES_H_
