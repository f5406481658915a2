#include "report/trace/pack.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "report/base/output_file.h"
#include "report/trace/block_scanner.h"
#include "report/trace/byte_source.h"
#include "report/trace/file_header.h"
#include "report/trace/packer.h"
#include "report/trace/trace_reader.h"

namespace memtrace::report {

std::string PackedName(const std::string& file) {
  return absl::StrCat(absl::StripSuffix(file, ".mtr"), ".packed.mtr");
}

absl::StatusOr<PackResult> RunPack(const PackOptions& options) {
  auto source = FileSource::Open(options.file);
  if (!source.ok()) return source.status();
  // Judged before the output is begun.
  auto header = ReadFileHeader(**source);
  if (!header.ok()) {
    return absl::Status(header.status().code(),
                        absl::StrCat(options.file, " ", header.status().message()));
  }
  BlockScanner scanner(source->get());
  auto first = scanner.Find(AlignToBlock(header->header_bytes));
  if (first.ok() && first->has_value() &&
      (*first)->header.kind == format::BlockKind::kStatus) {
    first = scanner.Find((*first)->end());
  }
  if (!first.ok()) return first.status();
  if (!first->has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat(options.file, " ", kNothingBehindTheHeader));
  }
  PackResult result;
  result.output = options.output.empty() ? PackedName(options.file) : options.output;
  auto output = OutputFile::Create(result.output, OutputFile::kPrivate);
  if (!output.ok()) return output.status();
  PackerOptions packer_options;
  packer_options.level = options.level;
  packer_options.seal = true;
  Packer packer(source->get(), (*output)->fd(), result.output, packer_options);
  absl::Status status = packer.Start();
  if (status.ok()) status = packer.Finish();
  // A trace that has lost its end, or a part, does not become whole by being packed.
  if (status.ok() && packer.damaged_blocks() == 0) {
    const auto reader = TraceReader::Open(options.file);
    if (!reader.ok()) return reader.status();
    result.incomplete = (*reader)->cut() || !(*reader)->damage().empty();
  }
  if (status.ok() && packer.damaged_blocks() == 0 && !result.incomplete) status = packer.Seal();
  if (status.ok()) status = (*output)->Commit();
  if (!status.ok()) return status;
  result.raw_bytes = (*source)->Size();
  result.packed_bytes = packer.bytes_written();
  result.damaged_blocks = packer.damaged_blocks();
  return result;
}

}  // namespace memtrace::report
