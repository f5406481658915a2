// TextTable: columns of a text report that fit a width. Numbers stand to the
// right, names to the left; the last column takes what is left of the line.

#ifndef MEMTRACE_REPORT_RENDER_TABLE_H_
#define MEMTRACE_REPORT_RENDER_TABLE_H_

#include <functional>
#include <string>
#include <vector>

#include "report/render/style.h"

namespace memtrace::report::render {

class TextTable {
 public:
  struct Column {
    std::string header;
    bool left = false;       // else to the right, as numbers are
    bool sorted_by = false;  // marked in the header
  };
  // Gives the text of the last cell when its width is known; the text may hold
  // colours, and is no wider than `width`.
  using LastCell = std::function<std::string(size_t width)>;
  // Gives lines that stand below a row, in the same way.
  using LinesBelow = std::function<std::vector<std::string>(size_t width)>;

  TextTable(std::vector<Column> columns, std::string last_header)
      : columns_(std::move(columns)), last_header_(std::move(last_header)) {}

  void AddRow(std::vector<std::string> cells, LastCell last, LinesBelow below = nullptr) {
    rows_.push_back({std::move(cells), std::move(last), std::move(below)});
  }
  bool empty() const { return rows_.empty(); }
  std::string Render(const Style& style, size_t indent) const;

 private:
  struct Row {
    std::vector<std::string> cells;
    LastCell last;
    LinesBelow below;
  };
  std::vector<Column> columns_;
  std::string last_header_;  // empty: no last column
  std::vector<Row> rows_;
};

}  // namespace memtrace::report::render

#endif  // MEMTRACE_REPORT_RENDER_TABLE_H_
