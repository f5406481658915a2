// The tree for programs: JSON in nodes, CSV in rows.

#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "report/render/json_parts.h"
#include "report/rings/rings_formats.h"
#include "report/words/escape.h"

namespace memtrace::report::rings {
namespace {

using render::Json;
using words::Sink;

// The same keys as in the JSON of a report.
constexpr std::pair<SiteMeasure, const char*> kKeys[] = {
    {SiteMeasure::kLive, "live_bytes"},
    {SiteMeasure::kBlocks, "live_blocks"},
    {SiteMeasure::kAllocated, "bytes_allocated"},
    {SiteMeasure::kAllocations, "allocations"},
    {SiteMeasure::kPeak, "bytes_at_peak"},
    {SiteMeasure::kPeakBlocks, "blocks_at_peak"},
    {SiteMeasure::kWasted, "wasted_bytes"},
    {SiteMeasure::kTemporary, "temporary"},
    {SiteMeasure::kResident, "resident_bytes"},
    {SiteMeasure::kPeakResident, "resident_bytes_at_peak"}};

const char* KindName(Node::Kind kind) {
  switch (kind) {
    case Node::Kind::kFolder: return "folder";
    case Node::Kind::kFile: return "file";
    case Node::Kind::kFunction: return "function";
  }
  return "folder";
}

void WriteNode(const Node& node, const std::string& name, const RingsOptions& options,
               const std::string& indent, Sink& out) {
  Json json = {{"name", name}, {"kind", KindName(node.kind)}};
  for (const auto& [measure, key] : kKeys) {
    if (node.sum.of(measure) != 0) json[key] = node.sum.of(measure);
  }
  const symbolizer::FootprintBytes& fixed = node.sum.fixed;
  if (fixed.text != 0) json["text_bytes"] = fixed.text;
  if (fixed.data != 0) json["data_bytes"] = fixed.data;
  if (fixed.bss != 0) json["bss_bytes"] = fixed.bss;
  std::string text = render::Dump(json);
  const std::vector<const Node*> children = SortedChildren(node, options.weight);
  if (children.empty()) {
    out.Write(text);
    return;
  }
  text.pop_back();
  out.Write(absl::StrCat(text, ", \"children\": ["));
  for (size_t i = 0; i < children.size() && !out.done(); ++i) {
    out.Write(absl::StrCat(i == 0 ? "\n" : ",\n", indent, " "));
    WriteNode(*children[i], children[i]->name, options, indent + " ", out);
  }
  out.Write("]}");
}

void WriteRows(const Node& node, const std::string& path, const RingsOptions& options, Sink& out) {
  std::string row = absl::StrCat(words::CsvField(path), ",", KindName(node.kind));
  for (const auto& [measure, key] : kKeys) absl::StrAppend(&row, ",", node.sum.of(measure));
  for (const uint64_t bytes : {node.sum.fixed.text, node.sum.fixed.data, node.sum.fixed.bss}) {
    absl::StrAppend(&row, ",", options.footprints ? absl::StrCat(bytes) : "");
  }
  row += "\r\n";
  out.Write(row);
  for (const Node* child : SortedChildren(node, options.weight)) {
    if (out.done()) return;
    const bool root = path == "/";
    WriteRows(*child,
              absl::StrCat(root ? (absl::StartsWith(child->name, "[") ? "" : "/") : path + "/",
                           child->name),
              options, out);
  }
}

}  // namespace

void RenderRingsJson(const SourceTree& tree, const Node& start, const std::string& trace,
                     const RingsOptions& options, Sink& out) {
  const std::string name = tree.PathOf(start);
  out.Write(absl::StrCat("{\"schema\": \"memtrace-rings/1\", \"trace\": ",
                         render::Dump(Json(trace)), ", \"measure\": \"", WeightName(options.weight),
                         "\", \"notes\": ", render::Dump(Json(options.notes)),
                         ", \"only\": ", render::Dump(Json(options.only)), ",\n \"tree\": "));
  WriteNode(start, name, options, " ", out);
  out.Write("}\n");
}

void RenderRingsCsv(const SourceTree& tree, const Node& start, const RingsOptions& options,
                    Sink& out) {
  std::string head = "path,kind";
  for (const auto& [measure, key] : kKeys) absl::StrAppend(&head, ",", key);
  out.Write(head + ",text_bytes,data_bytes,bss_bytes\r\n");
  WriteRows(start, tree.PathOf(start), options, out);
}

}  // namespace memtrace::report::rings
