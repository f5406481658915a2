// Demangle(). See demangle.h.

#include "symbolizer/demangle.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>

namespace memtrace::symbolizer {

bool IsMangled(std::string_view name) { return name.starts_with("_Z") || name.starts_with("_R"); }

std::string Demangle(std::string_view name) {
  // Only _Z: __cxa_demangle would take "i" for a type and answer "int".
  if (!name.starts_with("_Z") || name.size() > kMaxMangledBytes) return std::string(name);
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(std::string(name).c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || text == nullptr || text.get()[0] == '\0') return std::string(name);
  std::string demangled = text.get();
  if (demangled.size() > kMaxDemangledBytes) {
    demangled.resize(kMaxDemangledBytes - 3);
    demangled += "...";
  }
  return demangled;
}

}  // namespace memtrace::symbolizer
