#include "report/render/short_name.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "report/names/brackets.h"
#include "report/names/function_name.h"
#include "report/words/escape.h"

namespace memtrace::report::render {

namespace {

bool IsOfPath(char c) {
  return absl::ascii_isalnum(static_cast<unsigned char>(c)) || absl::StrContains("_.~%-", c);
}

// The bytes of "outer::" in "outer::Of<a::B>::f", and of "net/" in "net/http.(*Conn).Do", the path
// of a package of Go; 0: there is no scope, or a bracket is left, in which a "::" may be.
size_t OuterScopeBytes(absl::string_view name) {
  // A conversion: the scopes are of the type.
  if (absl::StartsWith(name, "operator ") && !absl::StrContains(name, '(')) return 0;
  bool is_path = true;
  for (size_t i = 0; i < name.size(); ++i) {
    const absl::string_view rest = name.substr(i);
    if (absl::StartsWith(rest, "::")) return i + 2;
    if (name[i] == '/' && i > 0 && is_path && absl::StrContains(rest, '.') &&
        !absl::EndsWith(name.substr(0, i), "operator")) {
      return i + 1;
    }
    is_path = is_path && IsOfPath(name[i]);
    if (absl::string_view("<({").find(name[i]) == absl::string_view::npos) continue;
    i = Closing(name, i);
    if (i == absl::string_view::npos) return 0;
  }
  return 0;
}

}  // namespace

std::string WithoutScopes(absl::string_view bare, size_t width, const Style& style) {
  const std::string name = absl::StrReplaceAll(bare, {{"::<..>", ""}, {"<..>", ""}, {"[..]", ""}});
  absl::string_view scoped = name;
  while (words::DisplayWidth(scoped) > width) {
    const size_t scope = OuterScopeBytes(scoped);
    if (scope == 0) break;
    scoped.remove_prefix(scope);
  }
  return words::KeepBeginning(scoped, width, style.ellipsis());
}

std::string ShortName(absl::string_view function, size_t width, const Style& style) {
  const std::string whole = style.Name(function);
  if (words::FitsWidth(whole, width)) return whole;
  const std::string plain = style.Name(names::QualifiedName(function));
  if (words::FitsWidth(plain, width)) return plain;
  const std::string bare = style.Name(names::ShortenedName(function));
  return words::FitsWidth(bare, width) ? bare : WithoutScopes(bare, width, style);
}

}  // namespace memtrace::report::render
