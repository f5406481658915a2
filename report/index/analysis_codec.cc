#include "report/index/analysis_codec.h"

#include <string>
#include <utility>
#include <vector>

#include "report/index/packed_bytes.h"
#include "report/index/packed_values.h"
#include "symbolizer/huge_pages.h"

namespace memtrace::report::index {

std::string EncodeTrace(const AnalyzedTrace& trace) {
  PackedWriter out;
  const StackTable& stacks = *trace.stacks;
  out.Number(stacks.size());
  for (uint32_t id = 1; id <= stacks.size(); ++id) {
    const StackNode& node = stacks.node({id});
    out.Number(id - node.parent.value);  // callers come first
    out.Number(node.pc);
    out.Number(node.instance);
  }
  Put(trace.analysis, out);
  return out.Take();
}

bool DecodeTrace(std::string_view bytes, AnalyzedTrace* trace) {
  PackedSource source{PackedReader(bytes)};
  const size_t count = source.in.Count();
  std::vector<StackNode> nodes(1);
  ReserveInHugePages(nodes, count + 1);
  for (uint32_t id = 1; id <= count; ++id) {
    const uint64_t up = source.in.Number();
    if (up == 0 || up > id) return false;
    StackNode node;
    node.parent = {id - static_cast<uint32_t>(up)};
    node.pc = source.in.Number();
    node.instance = static_cast<uint32_t>(source.in.Number());
    nodes.push_back(node);
  }
  trace->stacks = StackTable::FromNodes(std::move(nodes));
  source.stacks = count;
  Get(trace->analysis, source);
  return trace->stacks != nullptr && source.in.ok() && source.in.left() == 0;
}

}  // namespace memtrace::report::index
