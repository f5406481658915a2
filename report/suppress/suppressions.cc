#include "report/suppress/suppressions.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "report/base/path.h"
#include "report/names/fingerprint.h"
#include "report/names/frames_filter.h"
#include "report/names/function_name.h"
#include "report/suppress/runtime_suppressions.h"
#include "report/suppress/text_file.h"

namespace memtrace::report::suppress {
namespace {

constexpr size_t kMostCallers = 24;  // Valgrind's VG_MAX_SUPP_CALLERS

// The kinds of memcheck besides Leak and Free; some have a line more, which is not looked at.
constexpr absl::string_view kOtherKinds[] = {
    "Param",   "User",    "CoreMem", "Addr1",   "Addr2",      "Addr4",       "Addr8",
    "Addr16",  "Addr32",  "Jump",    "Overlap",    "Mempool",     "Cond",
    "Value0",  "Value1",  "Value2",  "Value4",  "Value8",     "Value16",     "Value32",
    "BadSize", "BadAlign", "FishyValue", "ReallocZero", "UnsafeZeroSize", "SizeMismatch",
    "AlignMismatch",
};

// The lines of a text with their numbers; blanks around them, empty ones and comments are gone.
class Lines {
 public:
  Lines(absl::string_view text, std::string file) : rest_(text), file_(std::move(file)) {}

  bool Next(absl::string_view* line) {
    while (!rest_.empty()) {
      const size_t end = std::min(rest_.find('\n'), rest_.size());
      *line = absl::StripAsciiWhitespace(rest_.substr(0, end));
      rest_.remove_prefix(std::min(end + 1, rest_.size()));
      ++number_;
      if (!line->empty() && line->front() != '#') return true;
    }
    return false;
  }
  uint32_t number() const { return number_; }
  absl::Status Error(absl::string_view what) const {
    return absl::InvalidArgumentError(absl::StrCat(file_, ":", number_, ": ", what));
  }

 private:
  absl::string_view rest_;
  const std::string file_;
  uint32_t number_ = 0;
};

bool IsMemcheck(absl::string_view tools) {
  for (const absl::string_view tool : absl::StrSplit(tools, ',')) {
    if (tool == "Memcheck") return true;
  }
  return false;
}

// "f.constprop.0" is Valgrind's name, from the symbol table, for a copy of f that the compiler
// made: the debug information calls it f. So are parts of coroutines, and "f.2" of Ada.
absl::string_view OriginalOf(absl::string_view name) {
  name = WithoutCloneSuffix(name);
  for (const absl::string_view suffix : {".resume", ".destroy", ".actor"}) {
    absl::ConsumeSuffix(&name, suffix);
  }
  const size_t dot = name.rfind('.');
  if (dot != name.npos && dot > 0 && dot + 1 < name.size() &&
      name.find_first_not_of("0123456789", dot + 1) == name.npos) {
    name = name.substr(0, dot);
  }
  return name;
}

// Whether the * at `at` of a function's name is a character of a C++ type, as debug information
// writes it, and no wildcard: "int*", "void (*)(int)", "int S::*".
bool IsPointer(absl::string_view text, size_t at) {
  const auto is_of_name = [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_';
  };
  const absl::string_view before = absl::StripTrailingAsciiWhitespace(text.substr(0, at));
  const char next = at + 1 < text.size() ? text[at + 1] : '\0';
  if (before.empty() || !absl::StrContains(">,)*&[ ", absl::string_view(&next, 1))) return false;
  if (before.back() == '(') return next == ')' || next == '*' || next == '&';
  if (!absl::EndsWith(before, "::")) {
    return is_of_name(before.back()) || absl::StrContains(">)*]", before.substr(before.size() - 1));
  }
  if (next == ')') return true;
  size_t scope = before.size();
  while (scope > 0 && (is_of_name(before[scope - 1]) || before[scope - 1] == ':')) --scope;
  if (scope == 0 || before[scope - 1] != ' ') return false;
  // Behind the type of the member.
  const absl::string_view type = absl::StripTrailingAsciiWhitespace(before.substr(0, scope));
  return !type.empty() && !absl::EndsWith(type, "const") && !absl::EndsWith(type, "volatile") &&
         (is_of_name(type.back()) || absl::StrContains(">)*&", type.substr(type.size() - 1)));
}

// Whether nothing in a function's name is meant as a wildcard.
bool IsPlainName(absl::string_view text) {
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '?') return false;
    if (text[i] != '*' || absl::EndsWith(text.substr(0, i), "operator")) continue;
    if (!IsPointer(text, i)) return false;
  }
  return true;
}

absl::StatusOr<FramePattern> ParseFrame(absl::string_view text, const Lines& lines) {
  FramePattern frame;
  if (text == "...") {
    frame.what = FramePattern::What::kAnyFrames;
    return frame;
  }
  if (absl::ConsumePrefix(&text, "fun:")) {
    frame.what = FramePattern::What::kFunction;
  } else if (absl::ConsumePrefix(&text, "obj:")) {
    frame.what = FramePattern::What::kObject;
  } else if (absl::ConsumePrefix(&text, "src:")) {
    frame.what = FramePattern::What::kSource;
    const size_t colon = text.rfind(':');
    if (colon != text.npos && absl::SimpleAtoi(text.substr(colon + 1), &frame.line)) {
      text = text.substr(0, colon);
    }
  } else {
    return lines.Error(absl::StrCat("\"", text, "\" is no frame: fun:, obj:, src: or ..."));
  }
  if (text.empty()) return lines.Error("a frame without a name");
  frame.text = std::string(text);
  if (frame.what == FramePattern::What::kFunction && OriginalOf(text) != text) {
    frame.original = std::string(OriginalOf(text));
  }
  if (frame.what == FramePattern::What::kFunction && absl::StrContains(text, '<') &&
      IsPlainName(text)) {
    frame.bare = names::WithoutTemplates(text);
    frame.pointers = static_cast<size_t>(absl::c_count(text, '*'));
  }
  return frame;
}

// "foo@@GLIBC_2.34" is how Valgrind names a versioned symbol of a library with symbols.
absl::string_view WithoutVersion(absl::string_view name) { return name.substr(0, name.find('@')); }

bool FrameMatches(const FramePattern& pattern, const MemcheckFrame& frame) {
  switch (pattern.what) {
    case FramePattern::What::kAnyFrames:
      return true;
    case FramePattern::What::kObject:
      return WildcardMatches(pattern.text, frame.module) ||
             (!frame.real_module.empty() && WildcardMatches(pattern.text, frame.real_module));
    case FramePattern::What::kSource:
      if (frame.file.empty() || (pattern.line != 0 && pattern.line != frame.line)) return false;
      return WildcardMatches(pattern.text, frame.file) ||
             WildcardMatches(pattern.text, FileNameOf(frame.file));
    case FramePattern::What::kFunction:
      break;
  }
  if (frame.below_main && WildcardMatches(pattern.text, "(below main)")) return true;
  const absl::string_view plain = WithoutVersion(pattern.text);
  for (const std::string& function : frame.functions) {
    if (WildcardMatches(pattern.text, function)) return true;
    if (!plain.empty() && plain.size() != pattern.text.size() &&
        WildcardMatches(plain, WithoutVersion(function))) {
      return true;
    }
    if (!pattern.original.empty() && WildcardMatches(pattern.original, function)) return true;
  }
  if (!frame.inlined || pattern.bare.empty() || pattern.bare != frame.bare) return false;
  // "make<Set*>" may be meant for "make<SetOfInt>" too, and is not for "make<Map>".
  return pattern.pointers == 0 ||
         absl::c_any_of(frame.functions, [&pattern](const std::string& function) {
           const absl::string_view name = names::QualifiedName(function);
           return static_cast<size_t>(absl::c_count(name, '*')) >= pattern.pointers;
         });
}

// The patterns match the beginning of the frames from `begin` on. Like a wildcard match whose
// letters are frames: what a "..." took is given back to the last one only. How many frames from
// the innermost on were looked at; 0: they do not match.
size_t FramesMatched(const std::vector<FramePattern>& patterns,
                     const std::vector<MemcheckFrame>& frames, size_t begin) {
  size_t pattern = 0, frame = begin;
  size_t after_any = SIZE_MAX, any_took_to = 0;
  while (pattern < patterns.size()) {
    if (patterns[pattern].what == FramePattern::What::kAnyFrames) {
      after_any = ++pattern;
      any_took_to = frame;
    } else if (frame < frames.size() && FrameMatches(patterns[pattern], frames[frame])) {
      ++pattern;
      ++frame;
    } else if (after_any != SIZE_MAX && any_took_to < frames.size()) {
      pattern = after_any;
      frame = ++any_took_to;
    } else {
      return 0;
    }
  }
  return frame;
}

// Whether other code than the runtime's runs in these frames: dlopen() and thread-local storage run
// the constructors of plugins, a signal runs the program's handler, and the blocks that these
// allocate are theirs. `end` frames matched a suppression that is built in. A frame of the module
// of the last one is the runtime's, which a static program has in it.
bool RunsOthersCode(const std::vector<MemcheckFrame>& frames, size_t begin, size_t end) {
  const std::string& runtime = frames[end - 1].module;
  for (size_t i = begin + 1; i + 1 < end; ++i) {
    const MemcheckFrame& frame = frames[i];
    if (frame.module != runtime && frame.module != "???" && !names::IsSystemModule(frame.module)) {
      return true;
    }
    const auto runs_others = [](const std::string& function) {
      return names::RunsConstructors(function) || function == "__restore_rt";
    };
    if (std::any_of(frame.functions.begin(), frame.functions.end(), runs_others)) return true;
  }
  return false;
}

bool LsanMatches(const std::string& pattern, const MemcheckStack& stack) {
  // What has no name matches nothing there.
  const auto matches = [&pattern](const std::string& name) {
    return name != "???" && TemplateMatches(pattern, name);
  };
  for (size_t i = stack.also_begins; i < stack.frames.size(); ++i) {
    const MemcheckFrame& frame = stack.frames[i];
    for (const std::string& function : frame.functions) {
      if (matches(function)) return true;
    }
    if (matches(frame.file)) return true;
    // The allocator's own file is memcheck's there: nothing LeakSanitizer would see.
    if (i > stack.also_begins && matches(frame.module)) return true;
  }
  return false;
}

}  // namespace

bool WildcardMatches(absl::string_view pattern, absl::string_view text, bool only_stars) {
  size_t p = 0, t = 0, after_star = SIZE_MAX, star_took_to = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      after_star = ++p;
      star_took_to = t;
    } else if (p < pattern.size() &&
               (pattern[p] == text[t] || (pattern[p] == '?' && !only_stars))) {
      ++p;
      ++t;
    } else if (after_star != SIZE_MAX) {
      p = after_star;
      t = ++star_took_to;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool TemplateMatches(absl::string_view pattern, absl::string_view text) {
  if (text.empty()) return false;
  std::string anchored;
  if (!absl::ConsumePrefix(&pattern, "^")) anchored = "*";
  const size_t end = pattern.find('$');
  absl::StrAppend(&anchored, pattern.substr(0, end), end == pattern.npos ? "*" : "");
  return WildcardMatches(anchored, text, /*only_stars=*/true);
}

void Suppressions::AddBuiltIn() {
  const size_t before = all_.size();
  Add(RuntimeSuppressions(), "built in").IgnoreError();  // a test reads them
  for (size_t i = before; i < all_.size(); ++i) {
    all_[i].file.clear();
    all_[i].built_in = true;
  }
}

absl::Status Suppressions::AddFile(const std::string& path) {
  const auto text = ReadTextFile(path);
  if (!text.ok()) return text.status();
  return Add(*text, path);
}

absl::Status Suppressions::Add(absl::string_view text, const std::string& file) {
  Lines lines(text, file);
  absl::string_view first;
  if (!lines.Next(&first)) return absl::OkStatus();  // nothing but comments
  if (first == "{") return AddValgrind(text, file);
  if (absl::StartsWith(first, "leak:")) return AddLsan(text, file);
  return lines.Error(absl::StrCat("neither Valgrind's suppressions, which begin with {, nor "
                                  "LeakSanitizer's, which begin with leak:"));
}

absl::Status Suppressions::AddValgrind(absl::string_view text, const std::string& file) {
  Lines lines(text, file);
  absl::string_view line;
  while (lines.Next(&line)) {
    if (line != "{") return lines.Error("expected { on a line of its own");
    Suppression one;
    one.file = file;
    one.line = lines.number();
    const std::string unfinished = absl::StrCat("the suppression of line ", one.line, " has no }");
    if (!lines.Next(&line)) return lines.Error(unfinished);
    if (line == "}") return lines.Error("a suppression without a name");
    one.name = std::string(line);
    if (!lines.Next(&line)) return lines.Error(unfinished);
    const size_t colon = line.find(':');
    if (colon == line.npos) {
      return lines.Error(absl::StrCat("\"", line, "\" is not TOOL:KIND, such as Memcheck:Leak"));
    }
    bool counts = false;  // of another tool or kind only the end matters
    if (IsMemcheck(line.substr(0, colon))) {
      const absl::string_view kind = line.substr(colon + 1);
      one.of_frees = kind == "Free";
      counts = kind == "Leak" || one.of_frees;
      if (!counts && std::find(std::begin(kOtherKinds), std::end(kOtherKinds), kind) ==
                          std::end(kOtherKinds)) {
        return lines.Error(absl::StrCat("memcheck knows no kind \"", kind, "\""));
      }
    }
    bool any_frame = false;
    for (bool first = true;; first = false) {
      if (!lines.Next(&line)) return lines.Error(unfinished);
      if (line == "}") break;
      if (line == "{") return lines.Error(unfinished);
      if (!counts) continue;
      if (first && !one.of_frees && absl::ConsumePrefix(&line, "match-leak-kinds:")) {
        const auto kinds = ParseKinds(line);
        if (!kinds.ok()) return lines.Error(kinds.status().message());
        one.kinds = *kinds;
        continue;
      }
      if (absl::StartsWith(line, "match-leak-kinds:")) {
        return lines.Error(one.of_frees
                               ? "match-leak-kinds: is of Memcheck:Leak, not of Memcheck:Free"
                               : "match-leak-kinds: stands once, between Memcheck:Leak and the "
                                 "frames");
      }
      auto frame = ParseFrame(line, lines);
      if (!frame.ok()) return frame.status();
      any_frame |= frame->what != FramePattern::What::kAnyFrames;
      one.frames.push_back(*std::move(frame));
      if (one.frames.size() > kMostCallers) {
        return lines.Error(absl::StrCat("more than ", kMostCallers, " frames"));
      }
    }
    if (!counts) continue;
    if (!any_frame) return lines.Error("a suppression without a frame that has a name");
    all_.push_back(std::move(one));
  }
  return absl::OkStatus();
}

absl::Status Suppressions::AddLsan(absl::string_view text, const std::string& file) {
  Lines lines(text, file);
  absl::string_view line;
  while (lines.Next(&line)) {
    if (!absl::ConsumePrefix(&line, "leak:")) {
      return lines.Error(absl::StrCat("\"", line, "\" is not leak:PATTERN"));
    }
    if (line.empty()) return lines.Error("a pattern that is empty would suppress everything");
    Suppression one;
    one.name = std::string(line);
    one.file = file;
    one.line = lines.number();
    all_.push_back(std::move(one));
  }
  return absl::OkStatus();
}

void Suppressions::ForgetMatches() {
  for (Suppression& one : all_) one.records = one.blocks = one.bytes = 0;
}

Suppression* Suppressions::Match(LeakKind kind, const MemcheckStack& stack) {
  for (Suppression& one : all_) {
    if (one.of_frees) continue;
    const bool of_kind = kind == LeakKind::kUnfreed ? !one.kinds.empty() : one.kinds.Has(kind);
    if (!of_kind) continue;
    if (one.frames.empty()) {
      if (LsanMatches(one.name, stack)) return &one;
      continue;
    }
    for (size_t begin = 0; begin <= stack.also_begins; ++begin) {
      const size_t end = FramesMatched(one.frames, stack.frames, begin);
      if (end == 0 || (one.built_in && RunsOthersCode(stack.frames, begin, end))) continue;
      return &one;
    }
  }
  return nullptr;
}

Suppression* Suppressions::MatchFree(const MemcheckStack& stack) {
  for (Suppression& one : all_) {
    if (one.of_frees && FramesMatched(one.frames, stack.frames, 0) != 0) return &one;
  }
  return nullptr;
}

}  // namespace memtrace::report::suppress
