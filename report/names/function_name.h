// The parts of a demangled name of a function.
//
// Pure functions, any thread; any text.

#ifndef MEMTRACE_REPORT_NAMES_FUNCTION_NAME_H_
#define MEMTRACE_REPORT_NAMES_FUNCTION_NAME_H_

#include <string>

#include "absl/strings/string_view.h"

namespace memtrace::report::names {

// "std::vector<int>::push_back" of "void std::vector<int>::push_back(int const&)":
// the name without return type, parameters and what follows them. "main.(*T).Method" of Go is one.
absl::string_view QualifiedName(absl::string_view demangled);

// The name without each <...>, except where that is the name of an operator. If a bracket does not
// close, the name stays as it is.
std::string WithoutTemplates(absl::string_view name);

// "svc::Cache<..>::Put(..)::{lambda#1}::operator()" of "void svc::Cache<int>::Put(int) const::
// {lambda(int)#1}::operator()(int) const": the qualified name without what is in the brackets of
// template arguments and parameters. If a bracket does not close, the qualified name.
// web/src/short_name.ts does the same.
std::string ShortenedName(absl::string_view demangled);

// "get" of "ns::S<a::B>::get", as QualifiedName() has it: without the scopes.
absl::string_view LastName(absl::string_view qualified);

}  // namespace memtrace::report::names

#endif  // MEMTRACE_REPORT_NAMES_FUNCTION_NAME_H_
