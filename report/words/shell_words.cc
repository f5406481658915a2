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

std::string ShellCommand(std::span<const std::string> words, size_t bytes) {
  constexpr absl::string_view kMark = "\u2026";
  std::string out = ShellCommand(words);
  if (out.size() <= bytes) return out;
  out.clear();
  for (const std::string& whole : words) {
    const absl::string_view blank = out.empty() ? "" : " ";
    const size_t used = out.size() + blank.size();
    const auto fits = [&](size_t more) { return used + more <= bytes; };
    const std::string word = ShellWord(whole);
    if (fits(word.size() + 1 + kMark.size())) {
      absl::StrAppend(&out, blank, word);
      continue;
    }
    absl::string_view part = CutUtf8(whole, bytes);
    while (!part.empty() && !fits(ShellWord(part).size() + kMark.size())) {
      part = CutUtf8(part, part.size() - 1);
    }
    return absl::StrCat(out, blank, part.empty() ? "" : ShellWord(part), kMark);
  }
  return out;
}

}  // namespace memtrace::report::words
