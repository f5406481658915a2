#include "report/names/fingerprint.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "format/checksum.h"
#include "format/imported.h"
#include "report/base/path.h"
#include "report/names/brackets.h"
#include "report/names/frames_filter.h"

namespace memtrace::report {
namespace {

using format::AllocFunction;

bool IsWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "vector<int>&" of "std::vector<int, std::allocator<int> > const&": the last name, without what it
// is in and qualifiers, and without the default ones of std's template arguments; with * and &.
// Compilers and the demangler of names write the rest in many ways.
constexpr int kTypeDepth = 4;  // of template arguments of template arguments

std::string ListIdentity(absl::string_view list, bool template_arguments, int depth);

std::string TypeIdentity(absl::string_view type, int depth = 0) {
  std::vector<std::string> words;
  std::string marks, arguments;
  for (size_t i = 0; i < type.size();) {
    const absl::string_view rest = type.substr(i);
    const char c = type[i];
    if (absl::StartsWith(rest, "(anonymous namespace)::")) {
      i += 23;
    } else if (c == '{' || c == '<') {
      const size_t close = Closing(type, i);
      if (c == '{' || absl::StartsWith(rest.substr(1), "lambda")) {
        words = {"lambda"};
      } else if (close != absl::string_view::npos && depth < kTypeDepth) {
        arguments = ListIdentity(type.substr(i + 1, close - i - 1), true, depth + 1);
      }
      if (close == absl::string_view::npos) break;
      i = close + 1;
    } else if (absl::StartsWith(rest, "$_")) {
      words = {"lambda"};
      i += 2;
      while (i < type.size() && absl::ascii_isdigit(static_cast<unsigned char>(type[i]))) ++i;
    } else if (c == '(') {
      const size_t close = Closing(type, i);
      if (close == absl::string_view::npos) return "function";
      // "(app::Color)1" is a number, else it is a function's type or a scope's parameters.
      if (i == 0 && close + 1 < type.size() &&
          (IsWord(type[close + 1]) || type[close + 1] == '-')) {
        i = close + 1;
      } else if (absl::StartsWith(type.substr(close + 1), "::")) {
        i = close + 1;
      } else {
        return "function";
      }
    } else if (c == '*' || c == '&') {
      marks.push_back(c);
      ++i;
    } else if (c == ':') {
      words.clear();
      arguments.clear();
      ++i;
    } else if (c == '[') {
      break;
    } else if (IsWord(c) || c == '.' || c == '-') {
      const size_t begin = i;
      while (i < type.size() && (IsWord(type[i]) || type[i] == '.' || type[i] == '-')) ++i;
      std::string word(type.substr(begin, i - begin));
      if (absl::ascii_isdigit(static_cast<unsigned char>(word[0])) || word[0] == '-') {
        while (word.size() > 1 && absl::StrContains("uUlL", word.substr(word.size() - 1)))
          word.pop_back();
      }
      static constexpr absl::string_view kNoise[] = {"const", "volatile", "struct", "class",
                                                     "union", "enum", "typename"};
      if (std::find(std::begin(kNoise), std::end(kNoise), word) == std::end(kNoise)) {
        words.push_back(std::move(word));
      }
    } else {
      ++i;
    }
  }
  // "long unsigned int" and "unsigned long" are one.
  if (words.size() > 1) std::erase(words, "int");
  std::sort(words.begin(), words.end());
  std::string name = absl::StrJoin(words, "-");
  for (const absl::string_view shortened : {"string", "istream", "ostream", "iostream"}) {
    if (name == shortened) name = absl::StrCat("basic_", name, "<char>");
  }
  if (!arguments.empty()) absl::StrAppend(&name, "<", arguments, ">");
  return name + marks;
}

std::vector<absl::string_view> SplitList(absl::string_view list) {
  std::vector<absl::string_view> parts;
  size_t begin = 0;
  for (size_t i = 0; i < list.size(); ++i) {
    const char c = list[i];
    if (c == '(' || c == '<' || c == '{' || c == '[') {
      const size_t close = Closing(list, i);
      if (close == absl::string_view::npos) break;
      i = close;
    } else if (c == ',') {
      parts.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  parts.push_back(list.substr(begin));
  return parts;
}

std::string ListIdentity(absl::string_view list, bool template_arguments, int depth) {
  std::vector<std::string> types;
  for (const absl::string_view part : SplitList(list)) {
    std::string type = TypeIdentity(part, depth);
    // Template arguments that a name may leave out because they are the default.
    static constexpr absl::string_view kDefaults[] = {
        "allocator", "char_traits", "less", "hash", "equal_to", "default_delete"};
    if (template_arguments && absl::StrContains(part, "std::") &&
        std::find(std::begin(kDefaults), std::end(kDefaults),
                  absl::string_view(type).substr(0, type.find('<'))) != std::end(kDefaults)) {
      continue;
    }
    types.push_back(std::move(type));
  }
  if (!template_arguments && types.size() == 1 && types[0] == "void") types.clear();
  return absl::StrJoin(types, ",");
}

// Made by compilers, each with names of its own.
absl::string_view MadeUpFunction(absl::string_view name) {
  for (const absl::string_view prefix :
       {"_GLOBAL__sub_", "_GLOBAL__I_", "_GLOBAL__D_", "__static_initialization_and_destruction_",
        "__cxx_global_var_init", "__cxx_global_array_dtor", "__tcf_"}) {
    if (absl::StartsWith(name, prefix)) return "{static initialisation}";
  }
  for (const absl::string_view prefix :
       {"TLS init function for ", "TLS wrapper function for ", "__tls_init",
        "thread-local initialization routine for ", "thread-local wrapper routine for "}) {
    if (absl::StartsWith(name, prefix)) return "{thread-local initialisation}";
  }
  return "";
}

// "operator()", "operator<<", "operator new[]", "operator basic_string" at name[*at].
std::string OperatorIdentity(absl::string_view name, size_t* at) {
  size_t i = *at + 8;  // "operator"
  if (absl::StartsWith(name.substr(i), "()")) {
    *at = i + 2;
    return "operator()";
  }
  const size_t end = std::min(name.find('(', i), name.size());
  absl::string_view what = name.substr(i, end - i);
  *at = end;
  if (!absl::StartsWith(what, " ")) return absl::StrCat("operator", what.substr(0, what.find(' ')));
  if (absl::StartsWith(what, " new") || absl::StartsWith(what, " delete")) {
    return absl::StrCat("operator", what);
  }
  return absl::StrCat("operator ", TypeIdentity(what));
}

absl::string_view FamilyOf(AllocFunction function) {
  switch (function) {
    case AllocFunction::kMalloc:
    case AllocFunction::kCalloc:
    case AllocFunction::kRealloc:
    case AllocFunction::kReallocarray:
      return "malloc";
    case AllocFunction::kPosixMemalign:
    case AllocFunction::kAlignedAlloc:
    case AllocFunction::kMemalign:
    case AllocFunction::kValloc:
    case AllocFunction::kPvalloc:
      return "memalign";  // an aligned operator new is one or another, by library
    case AllocFunction::kPoolAlloc:
    case AllocFunction::kBlockAlloc:
      return "pool";  // told by memtrace.h
  }
  return format::ImportedFunctionName(function) != nullptr ? "kernel" : "unknown";
}

bool IsSystemHeader(absl::string_view file) {
  return absl::StartsWith(file, "/usr/include/") || absl::StartsWith(file, "/usr/lib/");
}

// Without a name the place in the module is all that tells one function from another; of code
// without a module the place is another in each run.
std::string NameOf(const Frame& frame) {
  if (!frame.function.empty()) return FunctionIdentity(frame.function);
  if (frame.module.empty()) return "";
  return absl::StrFormat("%s+0x%x", FileNameOf(frame.module), frame.offset);
}

std::string HashOf(const std::string& text) {
  return absl::StrFormat("%016x", format::Checksum(text.data(), text.size()));
}

}  // namespace

absl::string_view WithoutCloneSuffix(absl::string_view function) {
  function = function.substr(0, function.find(" [clone "));
  for (const absl::string_view suffix : {".part.", ".cold", ".isra.", ".constprop.", ".lto_priv.",
                                         ".llvm.", ".localalias", ".resolver", ".__uniq."}) {
    const size_t at = function.find(suffix);
    if (at != absl::string_view::npos && at > 0) function = function.substr(0, at);
  }
  return function;
}

std::string FunctionIdentity(absl::string_view demangled) {
  absl::string_view name = WithoutCloneSuffix(demangled);
  for (const absl::string_view thunk :
       {"non-virtual thunk to ", "virtual thunk to ", "covariant return thunk to "}) {
    absl::ConsumePrefix(&name, thunk);
  }
  if (const absl::string_view made_up = MadeUpFunction(name); !made_up.empty()) {
    return std::string(made_up);
  }
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const absl::string_view rest = name.substr(i);
    const bool begins = i == 0 || !IsWord(name[i - 1]);
    const char c = name[i];
    if (absl::StartsWith(rest, "(anonymous namespace)")) {
      out += "(anonymous namespace)";
      i += 21;
    } else if (begins && absl::StartsWith(rest, "operator") &&
               (rest.size() == 8 || !IsWord(rest[8]))) {
      out += OperatorIdentity(name, &i);
    } else if (absl::StartsWith(rest, "[abi:")) {
      const size_t close = name.find(']', i);
      i = close == absl::string_view::npos ? name.size() : close + 1;
    } else if (begins && absl::StartsWith(rest, "$_")) {
      out += "{lambda}";
      i += 2;
      while (i < name.size() && absl::ascii_isdigit(static_cast<unsigned char>(name[i]))) ++i;
    } else if (c == '{') {
      const size_t close = Closing(name, i);
      if (!absl::StartsWith(rest, "{default arg")) {
        // A type without a name: of lambdas GCC's debug information says no more.
        out += "{lambda}";
      }
      i = close == absl::string_view::npos ? name.size() : close + 1;
    } else if (c == '<') {
      const size_t close = Closing(name, i);
      if (close == absl::string_view::npos) return absl::StrCat(out, rest);
      if (absl::StartsWith(rest, "<lambda") && (out.empty() || absl::EndsWith(out, ":"))) {
        out += "{lambda}";
      } else {
        const std::string arguments = ListIdentity(name.substr(i + 1, close - i - 1), true, 0);
        if (!arguments.empty()) absl::StrAppend(&out, "<", arguments, ">");
      }
      i = close + 1;
    } else if (c == '(') {
      const size_t close = Closing(name, i);
      if (close == absl::string_view::npos) return absl::StrCat(out, rest);
      absl::string_view behind = name.substr(close + 1);
      for (const absl::string_view qualifier : {" const", " volatile", " &&", " &", " noexcept"}) {
        absl::ConsumePrefix(&behind, qualifier);
      }
      if (absl::StartsWith(behind, "::")) {  // of the function that this one is in
        i = name.size() - behind.size();
      } else if (absl::EndsWith(out, "decltype") || absl::EndsWith(out, "noexcept")) {
        i = close + 1;  // in the return type
      } else {
        absl::StrAppend(&out, "(", ListIdentity(name.substr(i + 1, close - i - 1), false, 0), ")");
        break;
      }
    } else if (c == ' ') {  // that was the return type
      out.clear();
      ++i;
    } else {
      out.push_back(c);
      ++i;
    }
  }
  // The functions that a pointer to a lambda leads to: they call the lambda.
  for (const std::string invoker : {"{lambda}::_FUN(", "{lambda}::__invoke("}) {
    if (const size_t at = out.find(invoker); at != std::string::npos) {
      out.replace(at, invoker.size(), "{lambda}::operator()(");
    }
  }
  // Rust's hash of the crate and its compiler.
  const size_t hash = out.rfind("::h");
  if (hash != std::string::npos && out.size() - hash == 19 &&
      std::all_of(out.begin() + static_cast<std::ptrdiff_t>(hash) + 3, out.end(), [](char c) {
        return absl::ascii_isxdigit(static_cast<unsigned char>(c));
      })) {
    out.resize(hash);
  }
  return out;
}

std::string FingerprintText(absl::Span<const Frame* const> stack, AllocFunction function,
                            bool with_lines) {
  std::vector<std::string> lines;
  // With frames that the report leaves out, as fingerprints of before have them.
  const names::Cut cut =
      stack.empty() ? names::Cut() : names::CutStack(stack, names::Nameless::kFrames);
  const auto add = [&](const Frame& frame) {
    std::string line = absl::StrCat(NameOf(frame), "\t", FileNameOf(frame.file));
    if (with_lines && frame.line != 0) absl::StrAppend(&line, ":", frame.line);
    if (std::find(lines.begin(), lines.end(), line) == lines.end()) lines.push_back(line);
  };
  // By what frames of an interpreter a script came to an extension says nothing of that.
  const bool is_of_extension = !stack.empty() && names::IsOfAnExtension(*stack[cut.caller]);
  const auto is_counted = [&](const Frame& frame) {
    if (is_of_extension && names::IsOfABareProgram(frame)) return false;
    return (frame.role == FrameRole::kProject ||
            (cut.is_in_library && names::IsOfASystemLibrary(frame))) &&
           !IsSystemHeader(frame.file);
  };
  for (size_t i = cut.begin; i < cut.end && lines.size() < kFingerprintFrames; ++i) {
    if (is_counted(*stack[i])) add(*stack[i]);
  }
  if (lines.empty()) {  // nothing of the project: what there is
    for (size_t i = cut.begin; i < cut.end && lines.size() < kFingerprintFrames; ++i) {
      // What has neither name nor module is an address, which says nothing in another run.
      if (!stack[i]->function.empty() || !stack[i]->module.empty()) add(*stack[i]);
    }
  }
  return absl::StrCat(kFingerprintVersion, "\n", FamilyOf(function), "\n",
                      absl::StrJoin(lines, "\n"), "\n");
}

std::string Fingerprint(absl::Span<const Frame* const> stack, AllocFunction function) {
  return HashOf(FingerprintText(stack, function, /*with_lines=*/false));
}

std::string StrictFingerprint(absl::Span<const Frame* const> stack, AllocFunction function) {
  return HashOf(FingerprintText(stack, function, /*with_lines=*/true));
}

}  // namespace memtrace::report
