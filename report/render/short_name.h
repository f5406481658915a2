// Names of functions where there is little room: what tells two long ones apart is at their end.
//
// Pure functions, any thread.

#ifndef MEMTRACE_REPORT_RENDER_SHORT_NAME_H_
#define MEMTRACE_REPORT_RENDER_SHORT_NAME_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"
#include "report/render/style.h"

namespace memtrace::report::render {

// The name in at most `width` columns, for a terminal: whole, else without what it returns and
// takes, else without arguments of templates and of the functions that it is in, else without
// scopes.
std::string ShortName(absl::string_view function, size_t width, const Style& style);

// Shortens a name whose template arguments are "<..>" to `width` columns, for a terminal: it loses
// its scopes, outer ones and the path of a package of Go first, and then its end.
std::string WithoutScopes(absl::string_view bare, size_t width, const Style& style);

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_SHORT_NAME_H_
