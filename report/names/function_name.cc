#include "report/names/function_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/names/brackets.h"

namespace memtrace::report::names {
namespace {

constexpr absl::string_view kOperator = "operator";
constexpr absl::string_view kAnonymous = "(anonymous namespace)";

bool IsOfWord(char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; }

// "operator<<", "operator new", and no "operators".
bool BeginsWithOperator(absl::string_view text) {
  return absl::StartsWith(text, kOperator) && text.size() > kOperator.size() &&
         !IsOfWord(text[kOperator.size()]);
}

// The bytes of "operator<<", "operator std::string", "operator()": it has brackets and spaces of
// its own, and ends at its parameters or, where those were left out, at what is in it.
size_t OperatorBytes(absl::string_view text) {
  const size_t call =
      kOperator.size() + (absl::StartsWith(text.substr(kOperator.size()), "()") ? 2 : 0);
  if (call > kOperator.size() && absl::StartsWith(text.substr(call), "::")) return call;
  return std::min(text.find('(', call), text.size());
}

// The bytes of "operator<<" in "operator<< <int>". "operator<<int>" is operator< of int, or <<
// without an argument list; all tools write it alike.
size_t OperatorSymbolBytes(absl::string_view text) {
  size_t end = kOperator.size();
  if (absl::StartsWith(text.substr(end), "()") || absl::StartsWith(text.substr(end), "[]")) {
    return end + 2;
  }
  while (end < text.size() && absl::string_view("<>=-!").find(text[end]) != text.npos) ++end;
  return end;
}

// The bytes of "(int) const" in "(int) const::{lambda()#1}::operator()", parameters of a function
// that the rest is in; 0: nothing is in it.
size_t ScopeBytes(absl::string_view parameters) {
  const size_t close = Closing(parameters, 0);
  if (close == absl::string_view::npos) return 0;
  absl::string_view behind = parameters.substr(close + 1);
  for (const absl::string_view qualifier : {" const", " volatile", " &&", " &", " noexcept"}) {
    absl::ConsumePrefix(&behind, qualifier);
  }
  return absl::StartsWith(behind, "::") ? parameters.size() - behind.size() : 0;
}

// Whether the name is within the bracket at `open`, before which a word ends at `begin`: in "int
// (&f(char)) [10]" and "void (*f(char))(int)", which return what is no plain type.
bool OpensDeclarator(absl::string_view demangled, size_t open, size_t begin) {
  return open == begin && open > 0 && !absl::EndsWith(demangled.substr(0, open), "decltype ");
}

}  // namespace

absl::string_view QualifiedName(absl::string_view demangled) {
  size_t begin = 0, end = demangled.size();
  bool in_declarator = false;
  for (size_t i = 0; i < demangled.size(); ++i) {
    const absl::string_view rest = demangled.substr(i);
    if (absl::StartsWith(rest, kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if ((i == 0 || !IsOfWord(demangled[i - 1])) && BeginsWithOperator(rest)) {
      i += OperatorBytes(rest);
      const size_t scope =
          i < demangled.size() && demangled[i] == '(' ? ScopeBytes(demangled.substr(i)) : 0;
      if (i == demangled.size() || (scope == 0 && demangled[i] == '(')) {
        end = i;
        break;
      }
      i += scope - 1;  // what is in it follows
      continue;
    }
    const char c = demangled[i];
    if (c == '(') {
      const absl::string_view before = demangled.substr(begin, i - begin);
      // In "decltype (x)", which is a return type, the blank was taken for the end of it. In D the
      // bracket may be that of a template's arguments: "main.leak!(int).leak(int)".
      if (before != "decltype" && i > begin && before.back() != '!') {
        const size_t scope = ScopeBytes(rest);
        if (scope == 0) {
          end = i;
          break;
        }
        i += scope - 1;
        continue;
      }
      if (OpensDeclarator(demangled, i, begin)) {
        in_declarator = true;
        begin = i + 1;
        continue;
      }
    }
    if (c == '<' || c == '{' || c == '(') {
      const size_t close = Closing(demangled, i);
      if (close == absl::string_view::npos) break;
      i = close;
    } else if (absl::StartsWith(rest, " [")) {
      end = i;  // "f [clone .cold]"
      break;
    } else if (c == ' ' || (in_declarator && (c == '*' || c == '&'))) {
      begin = i + 1;
    }
  }
  return demangled.substr(begin, end - begin);
}

std::string WithoutTemplates(absl::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size(); ++i) {
    if ((i == 0 || !IsOfWord(name[i - 1])) && absl::StartsWith(name.substr(i), kOperator)) {
      const size_t bytes = OperatorSymbolBytes(name.substr(i));
      absl::StrAppend(&out, name.substr(i, bytes));
      i += bytes - 1;
      continue;
    }
    if (name[i] != '<') {
      out += name[i];
      continue;
    }
    i = Closing(name, i);
    if (i == absl::string_view::npos) return std::string(name);
  }
  return out;
}

std::string ShortenedName(absl::string_view demangled) {
  const absl::string_view name = QualifiedName(demangled);
  std::string out;
  for (size_t i = 0; i < name.size();) {
    const absl::string_view rest = name.substr(i);
    size_t bytes = 1;
    if (absl::StartsWith(rest, kAnonymous)) {
      bytes = kAnonymous.size();
      absl::StrAppend(&out, kAnonymous);
    } else if ((i == 0 || !IsOfWord(name[i - 1])) && BeginsWithOperator(rest)) {
      bytes = OperatorSymbolBytes(rest);
      absl::StrAppend(&out, rest.substr(0, bytes));
    } else if (absl::string_view("<({").find(rest.front()) == absl::string_view::npos) {
      out += rest.front();
    } else {
      const size_t close = Closing(rest, 0);
      if (close == absl::string_view::npos) return std::string(name);
      bytes = close + 1;
      if (rest.front() == '<') {
        absl::StrAppend(&out, "<..>");
      } else if (rest.front() == '(') {
        bytes = std::max(bytes, ScopeBytes(rest));  // "(int) const" before "::"
        absl::StrAppend(&out, "(..)");
      } else {  // "{lambda(int)#1}"
        const absl::string_view braced = rest.substr(0, bytes);
        const size_t first = std::min(braced.find('('), bytes);
        const size_t last = braced.rfind(')');
        absl::StrAppend(&out, braced.substr(0, first),
                        last == absl::string_view::npos ? "" : braced.substr(last + 1));
      }
    }
    i += bytes;
  }
  return out;
}

absl::string_view LastName(absl::string_view qualified) {
  size_t begin = 0;
  for (size_t i = 0; i < qualified.size(); ++i) {
    const absl::string_view rest = qualified.substr(i);
    if (absl::StartsWith(rest, "::")) {
      begin = i + 2;
      ++i;
    } else if (i == begin && BeginsWithOperator(rest)) {
      i += OperatorBytes(rest) - 1;
    } else if (absl::string_view("<({[").find(rest.front()) != absl::string_view::npos) {
      i = Closing(qualified, i);
      if (i == absl::string_view::npos) break;
    }
  }
  return qualified.substr(begin);
}

}  // namespace memtrace::report::names
