// --format pprof: profile.proto, gzip'ed, as `go tool pprof` and its relatives read it.
//
// The allocating function is a label of each sample and not a frame, and operator new is in
// drop_frames: so "flat" is who asked for the memory, as in the heap profiles pprof was made for.

#include "report/viewers/viewers.h"

#ifdef MEMTRACE_HAVE_PROTOZERO

#include <zlib.h>

#include <protozero/pbf_writer.hpp>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "report/trace/trace_metadata.h"
#include "report/words/escape.h"
#include "report/words/shell_words.h"

namespace memtrace::report::viewers {
namespace {

using protozero::pbf_writer;

// Field numbers of profile.proto.
struct ProfileField {
  enum { kSampleType = 1, kSample, kMapping, kLocation, kFunction, kString, kDropFrames,
         kTimeNanos = 9, kDurationNanos, kComment = 13, kDefaultSampleType };
};
struct ValueTypeField { enum { kType = 1, kUnit }; };
struct SampleField { enum { kLocation = 1, kValue, kLabel }; };
struct LabelField { enum { kKey = 1, kText }; };
struct MappingField {
  enum { kId = 1, kStart, kLimit, kFileName = 5, kBuildId, kHasFunctions, kHasFileNames, kHasLines,
         kHasInlineFrames };
};
struct LocationField { enum { kId = 1, kMapping, kAddress, kLine }; };
struct LineField { enum { kFunction = 1, kLine }; };
struct FunctionField { enum { kId = 1, kName, kSystemName, kFileName }; };

// The names that tcmalloc and Go gave these, where they have one: tools know them.
absl::string_view SampleTypeName(SiteMeasure measure) {
  switch (measure) {
    case SiteMeasure::kLive: return "inuse_space";
    case SiteMeasure::kBlocks: return "inuse_objects";
    case SiteMeasure::kAllocated: return "alloc_space";
    case SiteMeasure::kAllocations: return "alloc_objects";
    case SiteMeasure::kPeak: return "peak_space";
    case SiteMeasure::kPeakBlocks: return "peak_objects";
    case SiteMeasure::kWasted: return "wasted_space";
    case SiteMeasure::kTemporary: return "temporary_objects";
    case SiteMeasure::kResident: return "resident_space";
    case SiteMeasure::kPeakResident: return "peak_resident_space";
  }
  return "";
}

// A profile as its message grows. Strings, functions and mappings are numbered as they come.
class Profile {
 public:
  explicit Profile(const ReportView& view)
      : view_(view), measures_(render::MeasuresOf(view.analysis())), writer_(data_) {
    String("");
  }

  std::string Take(SiteMeasure measure) {
    WriteTypes(measure);
    for (const Site* site : view_.sites()) WriteSample(*site);
    const Analysis& analysis = view_.analysis();
    writer_.add_int64(ProfileField::kDropFrames, String(R"(operator new(\[\])?)"));
    writer_.add_int64(ProfileField::kTimeNanos, analysis.process.start_realtime_ns);
    writer_.add_int64(ProfileField::kDurationNanos,
                      static_cast<int64_t>(analysis.process.duration_ns));
    writer_.add_int64(ProfileField::kComment,
                      String(absl::StrCat("memtrace: ", analysis.file)));
    writer_.add_int64(ProfileField::kComment,
                      String(words::ShellCommand(analysis.process.command)));
    // A string of protobuf's must be UTF-8, and go tool pprof writes control
    // characters as they are.
    for (const std::string& text : strings_)
      writer_.add_string(ProfileField::kString, words::EscapeControls(text));
    return std::move(data_);
  }

 private:
  int64_t String(absl::string_view text) {
    const auto [at, is_new] =
        string_ids_.try_emplace(text, static_cast<int64_t>(strings_.size()));
    if (is_new) strings_.emplace_back(text);
    return at->second;
  }

  void WriteTypes(SiteMeasure measure) {
    for (const SiteMeasure one : measures_) {
      pbf_writer type(writer_, ProfileField::kSampleType);
      type.add_int64(ValueTypeField::kType, String(SampleTypeName(one)));
      type.add_int64(ValueTypeField::kUnit, String(IsBytes(one) ? "bytes" : "count"));
    }
    writer_.add_int64(ProfileField::kDefaultSampleType, String(SampleTypeName(measure)));
  }

  void WriteSample(const Site& site) {
    std::vector<uint64_t> locations;
    const std::vector<FrameId> frames = view_.symbols().Stack(site.stack);
    for (size_t i = 0; i < frames.size();) {  // inlined frames belong to the next that is not
      size_t end = i;
      while (end + 1 < frames.size() && view_.symbols().frame(frames[end]).inlined) ++end;
      locations.push_back(Location({frames.data() + i, end + 1 - i}));
      i = end + 1;
    }
    std::vector<int64_t> values;
    for (const SiteMeasure measure : measures_) {
      values.push_back(static_cast<int64_t>(ValueOf(view_, site, measure)));
    }
    // All strings first: a message that is open must be the last in the buffer.
    const int64_t key = String("allocator"), name = String(render::FunctionName(site.function));
    pbf_writer sample(writer_, ProfileField::kSample);
    sample.add_packed_uint64(SampleField::kLocation, locations.begin(), locations.end());
    sample.add_packed_int64(SampleField::kValue, values.begin(), values.end());
    pbf_writer label(sample, SampleField::kLabel);
    label.add_int64(LabelField::kKey, key);
    label.add_int64(LabelField::kText, name);
  }

  // The number of the location that has these frames, which are of one address.
  uint64_t Location(std::span<const FrameId> frames) {
    const auto [at, is_new] =
        locations_.try_emplace(frames.front().value, locations_.size() + 1);
    if (!is_new) return at->second;
    const uint64_t id = at->second;
    const Frame& outermost = view_.symbols().frame(frames.back());
    const auto [mapping, bias] = Mapping(outermost.module);
    std::vector<uint64_t> functions;
    for (const FrameId frame : frames) functions.push_back(Function(view_.symbols().frame(frame)));
    pbf_writer location(writer_, ProfileField::kLocation);
    location.add_uint64(LocationField::kId, id);
    if (mapping != 0) location.add_uint64(LocationField::kMapping, mapping);
    // Inside the call: offsets are of return addresses.
    if (outermost.offset != 0) {
      location.add_uint64(LocationField::kAddress, bias + outermost.offset - 1);
    }
    for (size_t i = 0; i < frames.size(); ++i) {
      pbf_writer line(location, LocationField::kLine);
      line.add_uint64(LineField::kFunction, functions[i]);
      line.add_int64(LineField::kLine, view_.symbols().frame(frames[i]).line);
    }
    return id;
  }

  // Number and bias; 0 of code outside of every file.
  std::pair<uint64_t, uint64_t> Mapping(const std::string& path) {
    if (path.empty()) return {0, 0};
    const auto known = mappings_.find(path);
    if (known != mappings_.end()) return known->second;
    for (const ModuleInfo& module : view_.analysis().modules) {
      if (module.path != path) continue;
      const uint64_t id = ++mapping_count_;
      const int64_t file = String(path), build_id = String(HexOf(module.build_id));
      pbf_writer mapping(writer_, ProfileField::kMapping);
      mapping.add_uint64(MappingField::kId, id);
      mapping.add_uint64(MappingField::kStart, module.start);
      mapping.add_uint64(MappingField::kLimit, module.end);
      mapping.add_int64(MappingField::kFileName, file);
      mapping.add_int64(MappingField::kBuildId, build_id);
      // The names are here: no reader needs to look for the file.
      for (const auto has : {MappingField::kHasFunctions, MappingField::kHasFileNames,
                             MappingField::kHasLines, MappingField::kHasInlineFrames}) {
        mapping.add_bool(has, true);
      }
      return mappings_.try_emplace(path, id, module.bias).first->second;
    }
    return mappings_.try_emplace(path, 0, 0).first->second;  // and it is not looked for again
  }

  uint64_t Function(const Frame& frame) {
    const std::string name = render::FrameName(frame);
    const auto key = std::tuple(String(name), String(frame.linkage_name), String(frame.file));
    const auto [at, is_new] = functions_.try_emplace(key, functions_.size() + 1);
    if (!is_new) return at->second;
    pbf_writer function(writer_, ProfileField::kFunction);
    function.add_uint64(FunctionField::kId, at->second);
    function.add_int64(FunctionField::kName, std::get<0>(key));
    // Empty where it is the same: a name that equals it pprof takes for one to be
    // demangled and shortened.
    function.add_int64(FunctionField::kSystemName, std::get<1>(key));
    function.add_int64(FunctionField::kFileName, std::get<2>(key));
    return at->second;
  }

  const ReportView& view_;
  const std::vector<SiteMeasure> measures_;
  std::string data_;
  pbf_writer writer_;
  std::vector<std::string> strings_;
  absl::flat_hash_map<std::string, int64_t> string_ids_;
  absl::flat_hash_map<std::tuple<int64_t, int64_t, int64_t>, uint64_t> functions_;
  absl::flat_hash_map<std::string, std::pair<uint64_t, uint64_t>> mappings_;
  uint64_t mapping_count_ = 0;
  absl::flat_hash_map<uint32_t, uint64_t> locations_;  // by the FrameId of its first frame
};

absl::Status Compress(absl::string_view data, Sink& out) {
  z_stream stream = {};
  constexpr int kGzip = 15 + 16;  // the largest window, and gzip's header
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzip, 8, Z_DEFAULT_STRATEGY) !=
      Z_OK) {
    return absl::ResourceExhaustedError("zlib has no memory");
  }
  std::vector<char> buffer(1 << 16);
  // zlib counts in 32 bits.
  constexpr size_t kPiece = 1 << 30;
  do {
    const absl::string_view piece = data.substr(0, kPiece);
    data.remove_prefix(piece.size());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
    stream.avail_in = static_cast<uInt>(piece.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
      stream.avail_out = static_cast<uInt>(buffer.size());
      deflate(&stream, data.empty() ? Z_FINISH : Z_NO_FLUSH);
      out.Write({buffer.data(), buffer.size() - stream.avail_out});
    } while (stream.avail_out == 0 && !out.done());
  } while (!data.empty() && !out.done());
  deflateEnd(&stream);
  return absl::OkStatus();
}

}  // namespace

bool HasPprof() { return true; }

absl::Status RenderPprof(const ReportView& view, SiteMeasure measure, Sink& out) {
  return Compress(Profile(view).Take(measure), out);
}

}  // namespace memtrace::report::viewers

#else  // MEMTRACE_HAVE_PROTOZERO

namespace memtrace::report::viewers {

bool HasPprof() { return false; }

absl::Status RenderPprof(const ReportView&, SiteMeasure, Sink&) {
  return absl::UnimplementedError(
      "--format pprof: this memtrace was built without it; install libprotozero-dev and build "
      "again");
}

}  // namespace memtrace::report::viewers

#endif
