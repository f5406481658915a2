#include "report/words/shell_words.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "report/words/escape.h"

namespace memtrace::report::words {

std::string ShellWord(absl::string_view text) {
  constexpr absl::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./-+=:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == text.npos) return std::string(text);
  if (EscapeControls(text) != text) {
    return absl::StrCat(
        "$'", EscapeControls(absl::StrReplaceAll(text, {{"\\", "\\\\"}, {"'", "\\'"}})), "'");
  }
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "'\\''"}}), "'");
}

std::string ShellFile(absl::string_view path) {
  return absl::StartsWith(path, "-") ? ShellWord(absl::StrCat("./", path)) : ShellWord(path);
}

std::string ShellCommand(std::span<const std::string> words) {
  return absl::StrJoin(words, " ", [](std::string* out, const std::string& word) {
    absl::StrAppend(out, ShellWord(word));
  });
}

}  // namespace memtrace::report::words
