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

// The bytes of "operator<<" in "operator<< <int>", and of "operator" in "operator bool".
// "operator<<int>" is operator< of int, or << without an argument list; all tools write it alike.
size_t OperatorSymbolBytes(absl::string_view text) {
  const absl::string_view symbol = text.substr(kOperator.size());
  for (const absl::string_view known : {"<=>", "->*", "<<=", ">>=", "->", "<<", ">>", "&&", "||",
                                        "++", "--", "()", "[]", "\"\" ", "\"\""}) {
    if (absl::StartsWith(symbol, known)) return kOperator.size() + known.size();
  }
  for (const absl::string_view word : {" new[]", " new", " delete[]", " delete", " co_await"}) {
    if (absl::StartsWith(symbol, word) &&
        (symbol.size() == word.size() || !IsOfWord(symbol[word.size()]))) {
      return kOperator.size() + word.size();
    }
  }
  constexpr absl::string_view kOfOne = "+-*/%^&|~!=<>,";
  if (symbol.empty() || kOfOne.find(symbol.front()) == kOfOne.npos) return kOperator.size();
  return kOperator.size() + (absl::StartsWith(symbol.substr(1), "=") ? 2 : 1);
}

bool IsConversion(absl::string_view text) {
  return BeginsWithOperator(text) && OperatorSymbolBytes(text) == kOperator.size() &&
         text[kOperator.size()] == ' ';
}

// Behind " const" and its like.
absl::string_view BehindQualifiers(absl::string_view text) {
  constexpr absl::string_view kQualifiers[] = {" const",    " volatile", " &&",    " &",
                                               " noexcept", " shared",   " inout", " immutable"};
  while (std::any_of(std::begin(kQualifiers), std::end(kQualifiers),
                     [&text](absl::string_view one) { return absl::ConsumePrefix(&text, one); })) {
  }
  return text;
}

// Whether the bracket behind it is of a type: "decltype(x)", and GCC's vectors.
bool IsTypeWithBracket(absl::string_view word) { return word == "decltype" || word == "__vector"; }

// The bytes of "operator int (*)(T)" in "operator int (*)(T)() const": the type, which may have
// brackets. Only one that the name of a declarator would be in has a blank before it; the
// parameters of a function that is pointed to are behind that.
size_t ConversionBytes(absl::string_view text) {
  size_t word = kOperator.size() + 1;
  for (size_t i = word; i < text.size(); ++i) {
    const absl::string_view rest = text.substr(i);
    const char c = text[i];
    if (absl::StartsWith(rest, kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if (absl::StartsWith(rest, " [clone ")) return i;
    if (c == ' ') word = i + 1;
    if (absl::string_view("<({[").find(c) == absl::string_view::npos) continue;
    const bool in_type = IsTypeWithBracket(text.substr(word, i - word)) ||
                         absl::EndsWith(text.substr(0, i), "decltype ");
    const bool is_declarator = !in_type && text[i - 1] == ' ' && text.substr(i + 1, 1) != ")";
    const size_t close = Closing(text, i);
    if (close == absl::string_view::npos) return i;
    if (c == '(' && !in_type && !is_declarator) return i;
    i = close;
    if (c != '(' || !is_declarator || !absl::StartsWith(text.substr(i + 1), "(")) continue;
    const size_t end = Closing(text, i + 1);
    if (end == absl::string_view::npos) return i + 1;
    i = text.size() - BehindQualifiers(text.substr(end + 1)).size() - 1;
  }
  return text.size();
}

// The bytes of "operator()", "operator<< " before "<int>", "operator std::string": it has brackets
// and blanks of its own.
size_t OperatorBytes(absl::string_view text) {
  if (IsConversion(text)) return ConversionBytes(text);
  const size_t symbol = OperatorSymbolBytes(text);
  return symbol + (absl::StartsWith(text.substr(symbol), " <") ? 1 : 0);
}

// Behind the parameters at `open` of a function that the rest is in: "(int) const" before
// "::{lambda()#1}", in D "(int)" before ".inner" and no clone's ".part.0". 0: nothing is in it.
size_t BehindScope(absl::string_view name, size_t open) {
  const size_t close = Closing(name, open);
  if (close == absl::string_view::npos) return 0;
  const absl::string_view behind = BehindQualifiers(name.substr(close + 1));
  const bool has_dots = name.substr(0, open).find('.') != absl::string_view::npos;
  const bool is_scope = absl::StartsWith(behind, "::") ||
                        (has_dots && behind.size() > 1 && behind[0] == '.' && IsOfWord(behind[1]));
  return is_scope ? name.size() - behind.size() : 0;
}

// Whether the bracket at `open` has the type of a method of Go: "main.(*T).Method".
bool IsReceiver(absl::string_view name, size_t open) {
  return name[open] == '(' && open > 0 && name[open - 1] == '.';
}

// Whether the bracket at `open` has the arguments of Go's generics: "main.Map[int]", and neither
// "-[NSString length]" nor "name[abi:cxx11]".
bool HasTypeArguments(absl::string_view name, size_t open) {
  return name[open] == '[' && open > 0 && IsOfWord(name[open - 1]) &&
         !absl::StartsWith(name.substr(open), "[abi:") &&
         Closing(name, open) != absl::string_view::npos;
}

// Whether ShortenedName() leaves out what is in the bracket at `open`.
bool IsLeftOut(absl::string_view name, size_t open, bool in_conversion) {
  switch (name[open]) {
    case '<': case '{': return true;
    case '(': return !in_conversion && !IsReceiver(name, open);
    case '[': return !in_conversion && HasTypeArguments(name, open);
    default: return false;
  }
}

// Whether the name is within the bracket at `open`, before which a word ends at `begin`: in "int
// (&f(char)) [10]" and "void (*f(char))(int)", which return what is no plain type.
bool OpensDeclarator(absl::string_view demangled, size_t open, size_t begin) {
  return open == begin && open > 0 && !absl::EndsWith(demangled.substr(0, open), "decltype ");
}

}  // namespace

absl::string_view QualifiedName(absl::string_view demangled) {
  size_t begin = 0, end = demangled.size(), operator_end = 0;
  bool in_declarator = false;
  for (size_t i = 0; i < demangled.size(); ++i) {
    const absl::string_view rest = demangled.substr(i);
    if (absl::StartsWith(rest, kAnonymous)) {
      i += kAnonymous.size() - 1;
      continue;
    }
    if ((i == 0 || !IsOfWord(demangled[i - 1])) && BeginsWithOperator(rest)) {
      operator_end = i + OperatorBytes(rest);
      i = operator_end - 1;
      continue;
    }
    const char c = demangled[i];
    if (c == '(' && !IsReceiver(demangled, i)) {
      const absl::string_view before = demangled.substr(begin, i - begin);
      // In "decltype (x)", which is a return type, the blank was taken for the end of it. In D the
      // bracket may be that of a template's arguments: "main.leak!(int).leak(int)".
      if (i > begin && !IsTypeWithBracket(before) && (before.back() != '!' || i == operator_end)) {
        const size_t inner = BehindScope(demangled, i);
        if (inner == 0) {
          end = i;
          break;
        }
        i = inner - 1;
        continue;
      }
      if (OpensDeclarator(demangled, i, begin)) {
        in_declarator = true;
        begin = i + 1;
        continue;
      }
    }
    if (c == '<' || c == '{' || c == '(' || c == '[') {
      const size_t close = Closing(demangled, i);
      if (close != absl::string_view::npos) {
        i = close;
      } else if (c != '[') {
        break;
      }
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
  size_t conversion_end = 0;
  for (size_t i = 0; i < name.size();) {
    const absl::string_view rest = name.substr(i);
    size_t bytes = 1;
    if (absl::StartsWith(rest, kAnonymous)) {
      bytes = kAnonymous.size();
      absl::StrAppend(&out, kAnonymous);
    } else if ((i == 0 || !IsOfWord(name[i - 1])) && BeginsWithOperator(rest)) {
      bytes = OperatorSymbolBytes(rest);
      if (IsConversion(rest)) conversion_end = i + OperatorBytes(rest);
      absl::StrAppend(&out, rest.substr(0, bytes));
    } else if (!IsLeftOut(name, i, /*in_conversion=*/i < conversion_end)) {
      out += rest.front();
    } else {
      const size_t close = Closing(rest, 0);
      if (close == absl::string_view::npos) return std::string(name);
      bytes = close + 1;
      if (rest.front() == '<') {
        absl::StrAppend(&out, "<..>");
      } else if (rest.front() == '[') {
        absl::StrAppend(&out, "[..]");
      } else if (rest.front() == '(') {
        bytes = std::max(i + bytes, BehindScope(name, i)) - i;  // "(int) const" before "::"
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
