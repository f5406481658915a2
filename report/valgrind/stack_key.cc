#include "report/valgrind/stack_key.h"

#include <string_view>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/render/frames_filter.h"
#include "symbolizer/demangle.h"

namespace memtrace::report::valgrind {
namespace {

using render::LossFrame;

// Without <...>, except where that is the name of an operator.
std::string WithoutTemplates(absl::string_view name) {
  static constexpr absl::string_view kOperator = "operator";
  std::string out;
  int depth = 0;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool word = i > 0 && (absl::ascii_isalnum(static_cast<unsigned char>(name[i - 1])) ||
                                name[i - 1] == '_');
    if (depth == 0 && !word && absl::StartsWith(name.substr(i), kOperator)) {
      size_t end = i + kOperator.size();
      while (end < name.size() && absl::string_view("<>=-!()[]").find(name[end]) != name.npos) ++end;
      // "operator<<int>" is operator< of int, or << without an argument list; both tools
      // write it alike.
      absl::StrAppend(&out, name.substr(i, end - i));
      i = end - 1;
      continue;
    }
    if (name[i] == '<') ++depth;
    if (depth == 0) out += name[i];
    if (name[i] == '>' && depth > 0) --depth;
  }
  return out;
}

absl::string_view FileName(absl::string_view path) { return render::FileNameOf(path); }

bool IsOuterEnd(const LossFrame& frame, const std::string& bare) {
  return frame.function == "(below main)" || render::IsStartFunction(frame.function) ||
         render::IsStartFunction(bare);
}

std::string NameOf(const LossFrame& frame) {
  if (!frame.function.empty() && frame.function != "???") return BareFunction(frame.function);
  // The loader's name for a library and that of its file differ behind ".so".
  absl::string_view object = FileName(frame.object);
  if (const size_t version = object.find(".so."); version != object.npos) {
    object = object.substr(0, version + 3);
  }
  return absl::StrCat("in ", object);
}

bool IsMemchecks(const LossFrame& frame) {
  return absl::StrContains(FileName(frame.object), "vgpreload_");
}

}  // namespace

std::string BareFunction(absl::string_view function) {
  std::string demangled;
  if (const std::string_view name(function.data(), function.size()); symbolizer::IsMangled(name)) {
    demangled = symbolizer::Demangle(name);
    function = demangled;
  }
  function = function.substr(0, function.find(" [clone "));
  if (const size_t version = function.find('@'); version != function.npos && version > 0) {
    function = function.substr(0, version);
  }
  for (const absl::string_view suffix :
       {".part.", ".cold", ".isra.", ".constprop.", ".lto_priv.", ".llvm."}) {
    const size_t at = function.find(suffix);
    if (at != function.npos && at > 0) function = function.substr(0, at);
  }
  std::string bare = WithoutTemplates(render::QualifiedName(function));
  for (size_t at; (at = bare.find("[abi:")) != bare.npos;) {
    const size_t end = bare.find(']', at);
    bare.erase(at, end == bare.npos ? bare.npos : end - at + 1);
  }
  if (const size_t scope = bare.rfind("::"); scope != bare.npos) bare.erase(0, scope + 2);
  return bare.empty() ? std::string(function) : bare;
}

bool IsProjectFrame(const LossFrame& frame) {
  if (render::IsSystemModule(frame.object) || frame.object.empty()) return false;
  if (IsMemchecks(frame)) return false;
  if (frame.function.empty()) return true;
  return !render::IsAllocatorFunction(frame.function) && !IsOuterEnd(frame, "");
}

StackWords WordsOf(const render::Loss& loss, MatchStage stage) {
  StackWords out;
  out.cut = loss.cut;
  // The function that allocated, whose file differs; memcheck's posix_memalign calls its memalign.
  size_t first = 1;
  while (first < loss.stack.size() && IsMemchecks(loss.stack[first])) ++first;
  for (size_t i = first; i < loss.stack.size(); ++i) {
    const LossFrame& frame = loss.stack[i];
    const std::string name = NameOf(frame);
    // Valgrind's replacement of operator new calls no malloc; a library's own does.
    const bool allocates = out.words.empty() && absl::StartsWith(name, "operator new");
    const bool ends = IsOuterEnd(frame, name);
    if (ends) {
      out.cut = false;
      break;
    }
    if (!allocates) {
      switch (stage) {
        case MatchStage::kNone:
          break;
        case MatchStage::kLines:
          out.words.push_back(absl::StrCat(name, "\t", FileName(frame.file), "\t", frame.line));
          break;
        case MatchStage::kFunctions:
          out.words.push_back(name);
          break;
        case MatchStage::kProject:
          if (IsProjectFrame(frame)) out.words.push_back(name);
          break;
      }
    }
    if (name == "main") {
      out.cut = false;
      break;
    }
  }
  return out;
}

}  // namespace memtrace::report::valgrind
