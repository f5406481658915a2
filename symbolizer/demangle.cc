// Demangle(). See demangle.h.

#include "symbolizer/demangle.h"

#include <cxxabi.h>

#include <algorithm>
#include <cctype>
#include <csetjmp>
#include <cstdlib>
#include <memory>

#ifdef MEMTRACE_HAVE_LIBIBERTY
#define HAVE_DECL_BASENAME 1  // else its declaration contradicts <cstring>'s
#include <libiberty/demangle.h>
#endif

namespace memtrace::symbolizer {
namespace {

// Rust's older mangling is C++'s with a hash at the end: _ZN5alloc5alloc17h0123456789abcdefE.
bool EndsInRustsHash(std::string_view name) {
  constexpr size_t kHash = 20;  // 17h, 16 digits, E
  if (!name.starts_with("_ZN") || name.size() <= kHash || !name.ends_with("E")) return false;
  const std::string_view hash = name.substr(name.size() - kHash, kHash - 1);
  return hash.starts_with("17h") && std::ranges::all_of(hash.substr(3), [](char c) {
           return std::isxdigit(static_cast<unsigned char>(c)) != 0;
         });
}

// LLVM adds ".llvm." and a number to the local functions that it makes known to other units (ThinLTO,
// and Rust's own units), and a number to those that there are twice.
std::string_view WithoutLlvmSuffix(std::string_view name) {
  if (!name.starts_with("_ZN")) return name.substr(0, name.find(".llvm."));
  const size_t end = name.rfind("E.");
  if (EndsInRustsHash(name) || end == name.npos) return name;
  return name.substr(0, end + 1);
}

bool IsOldRust(std::string_view name) { return EndsInRustsHash(WithoutLlvmSuffix(name)); }

#ifdef MEMTRACE_HAVE_LIBIBERTY
struct Output {
  std::string text;
  std::jmp_buf full;
};

void TakePart(const char* part, size_t size, void* opaque) {
  auto& output = *static_cast<Output*>(opaque);
  output.text.append(part, size);
  if (output.text.size() > kMaxNameBytes) std::longjmp(output.full, 1);
}

// A name of a few hundred bytes may say that it repeats a part of it 2^100 times. There is no other
// way out of the library than by its stack, on which nothing waits to be taken down.
bool DemangleRust(const std::string& name, std::string* text) {
  const auto output = std::make_unique<Output>();
  bool is_rust = true;
  if (setjmp(output->full) == 0) {
    is_rust = rust_demangle_callback(name.c_str(), DMGL_NO_OPTS, TakePart, output.get()) != 0;
  }
  if (is_rust) *text = std::move(output->text);
  return is_rust;
}

bool DemangleD(const std::string& name, std::string* text) {
  const std::unique_ptr<char, void (*)(void*)> found(dlang_demangle(name.c_str(), DMGL_NO_OPTS),
                                                     std::free);
  if (found == nullptr) return false;
  *text = found.get();
  return true;
}
#else
bool DemangleRust(const std::string&, std::string*) { return false; }
bool DemangleD(const std::string&, std::string*) { return false; }
#endif

bool DemangleCpp(const std::string& name, std::string* text) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> found(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), std::free);
  if (status != 0 || found == nullptr) return false;
  *text = found.get();
  return true;
}

// _D4main3fooFiZPv and the main() that D's start code calls; not _DYNAMIC.
bool IsD(std::string_view name) {
  return name == "_Dmain" || (name.size() > 2 && name.starts_with("_D") &&
                              std::isdigit(static_cast<unsigned char>(name[2])));
}

}  // namespace

bool IsMangled(std::string_view name) {
  return name.starts_with("_Z") || name.starts_with("_R") || IsD(name);
}

bool IsRust(std::string_view name) { return name.starts_with("_R") || IsOldRust(name); }

std::string Demangle(std::string_view name) {
  // __cxa_demangle would take "i" for a type and answer "int".
  if (!IsMangled(name) || name.size() > kMaxMangledBytes) return std::string(name);
  const std::string mangled(name);
  std::string demangled;
  const bool known =
      (IsRust(name) && DemangleRust(std::string(WithoutLlvmSuffix(name)), &demangled)) ||
      (IsD(name) ? DemangleD(mangled, &demangled)
                 : !name.starts_with("_R") && DemangleCpp(mangled, &demangled));
  if (!known || demangled.empty()) return mangled;
  CutName(&demangled);
  return demangled;
}

void CutName(std::string* name) {
  if (name->size() <= kMaxNameBytes) return;
  size_t kept = kMaxNameBytes - 3;
  // Not in the midst of a character: behind the first byte of one come 10xxxxxx, three at most.
  for (int i = 0; i < 3 && (static_cast<unsigned char>((*name)[kept]) & 0xc0) == 0x80; ++i) --kept;
  name->resize(kept);
  *name += "...";
}

}  // namespace memtrace::symbolizer
