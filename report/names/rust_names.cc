#include "report/names/rust_names.h"

#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "report/names/brackets.h"
#include "symbolizer/demangle.h"

namespace memtrace::report::names {
namespace {

// "alloc::vec::Vec<T>::push": of a crate of Rust's own. C++ has namespaces of these names, too.
bool BeginsInRustsCrates(absl::string_view name) {
  for (const absl::string_view crate : {"alloc::", "core::", "std::", "hashbrown::", "__rustc::"}) {
    if (absl::StartsWith(name, crate)) return true;
  }
  return false;
}

// Traits that no program can name: what has them is the library's, whatever the type.
bool IsInternalTrait(absl::string_view trait) {
  for (const absl::string_view path :
       {"alloc::slice::", "alloc::vec::", "alloc::str::", "alloc::rc::", "alloc::sync::",
        "alloc::boxed::", "core::array::", "core::iter::adapters::", "core::slice::",
        "core::tuple::"}) {
    if (absl::StartsWith(trait, path)) return true;
  }
  return false;
}

// Whether the file is of Rust's own library: under the name that rustc has for it, among rustup's
// sources, of the crates that come with them, or among a distribution's sources.
bool IsRustsSource(absl::string_view file) {
  static constexpr absl::string_view kRustc = "/rustc/";
  if (absl::StartsWith(file, kRustc)) {
    const size_t hash_end = file.find('/', kRustc.size());
    return hash_end != file.npos && absl::StartsWith(file.substr(hash_end), "/library/");
  }
  for (const absl::string_view place :
       {"/rustlib/src/rust/library/", "/rust/deps/", "/library/alloc/src/", "/library/core/src/",
        "/library/std/src/"}) {
    if (absl::StrContains(file, place)) return true;
  }
  return false;
}

// "<alloc::vec::Vec<T> as app::Grow>" -> type and trait; no trait: of the type itself.
std::pair<absl::string_view, absl::string_view> TypeAndTrait(absl::string_view name) {
  const size_t close = Closing(name, 0);
  absl::string_view inside = name.substr(1, close == name.npos ? name.npos : close - 1);
  for (size_t i = 0; i < inside.size(); ++i) {
    if (absl::StartsWith(inside.substr(i), " as "))
      return {inside.substr(0, i), inside.substr(i + 4)};
    if (absl::string_view("<([{").find(inside[i]) == inside.npos) continue;
    i = Closing(inside, i);
    if (i == inside.npos) break;
  }
  return {inside, ""};
}

// A slice, a pointer, a tuple, u8, or a parameter: no type that a crate has. Only Rust's library
// gives these functions of their own, and its own traits.
bool IsBuiltIn(absl::string_view type) {
  if (type.empty() || absl::string_view("[(*").find(type[0]) != type.npos) return true;
  size_t word = 0;
  while (word < type.size() &&
         (absl::ascii_isalnum(static_cast<unsigned char>(type[word])) || type[word] == '_')) {
    ++word;
  }
  return !absl::StartsWith(type.substr(word), "::");
}

}  // namespace

bool IsRustLibraryFunction(const Frame& frame) {
  if (!symbolizer::IsRust(frame.linkage_name) && !absl::EndsWith(frame.file, ".rs")) return false;
  if (IsRustsSource(frame.file)) return true;
  const absl::string_view name = frame.function;
  if (!absl::StartsWith(name, "<")) return BeginsInRustsCrates(name);
  auto [type, trait] = TypeAndTrait(name);
  // A trait of the program's is implemented by the program, for whatever type.
  if (!trait.empty() && !BeginsInRustsCrates(trait)) return false;
  while (absl::ConsumePrefix(&type, "&") || absl::ConsumePrefix(&type, "mut ") ||
         absl::ConsumePrefix(&type, "dyn ")) {
  }
  return BeginsInRustsCrates(type) || IsBuiltIn(type) || IsInternalTrait(trait);
}

}  // namespace memtrace::report::names
