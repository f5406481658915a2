// What a user may ask about the heap graph (docs/leaks.md), as typed.

#ifndef MEMTRACE_REPORT_RENDER_GRAPH_QUESTIONS_H_
#define MEMTRACE_REPORT_RENDER_GRAPH_QUESTIONS_H_

#include <string>

namespace memtrace::report::render {

// Empty: not asked.
struct GraphQuestions {
  bool summary = false;        // --graph
  std::string why;             // --why SITE
  std::string who_points_at;   // --who-points-at ADDRESS

  bool any() const { return summary || !why.empty() || !who_points_at.empty(); }
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_GRAPH_QUESTIONS_H_
