#include "report/render/short_name.h"

#include "absl/strings/str_replace.h"
#include "report/names/function_name.h"
#include "report/words/escape.h"

namespace memtrace::report::render {

std::string WithoutScopes(absl::string_view bare, size_t width, const Style& style) {
  const std::string name = absl::StrReplaceAll(bare, {{"::<..>", ""}, {"<..>", ""}});
  absl::string_view scoped = name;
  while (words::DisplayWidth(scoped) > width) {
    const size_t scope = scoped.find("::");
    // Where a bracket is left, a "::" may be inside it.
    if (scope == absl::string_view::npos || scoped.find('<') < scope) break;
    scoped.remove_prefix(scope + 2);
  }
  return words::KeepBeginning(scoped, width, style.ellipsis());
}

std::string ShortName(absl::string_view function, size_t width, const Style& style) {
  const std::string whole = style.Name(function);
  if (words::FitsWidth(whole, width)) return whole;
  const std::string plain = style.Name(names::QualifiedName(function));
  if (words::FitsWidth(plain, width)) return plain;
  const std::string bare =
      style.Name(names::WithoutTemplates(names::QualifiedName(function), "<..>"));
  return words::FitsWidth(bare, width) ? bare : WithoutScopes(bare, width, style);
}

}  // namespace memtrace::report::render
