#include "report/index/index_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/whole_io.h"
#include "format/checksum.h"
#include "report/base/errno_status.h"
#include "report/base/path.h"
#include "report/state/packed_values.h"
#include "symbolizer/own_build.h"

namespace memtrace::report::index {
namespace {

constexpr uint64_t kMostContentBytes = uint64_t{4} << 30;  // of a section
constexpr uint64_t kMostDirectoryBytes = 64 << 20;
constexpr int kZstdLevel = 3;

struct Header {
  char magic[8];
  uint64_t build;  // hash of the program's build-id
  uint64_t trace_id, trace_bytes;
  int64_t trace_modified_ns;
  uint64_t trace_sample_hash;
  uint64_t directory_offset, directory_bytes, directory_checksum;
  uint64_t checksum;  // of all before
};
static_assert(sizeof(Header) == 80);

uint64_t ChecksumOf(const Header& header) {
  return format::Checksum(&header, offsetof(Header, checksum));
}

// 0: not known.
uint64_t OwnBuild() {
  const std::string& id = symbolizer::OwnBuildId();
  return id.empty() ? 0 : format::Checksum(id.data(), id.size());
}

int OpenToRead(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

// Whether there is nothing at `path`, or an index of whatever trace and version.
bool MayReplace(const std::string& path) {
  struct stat st;
  // Where its directory is none, whoever makes it is told so.
  if (lstat(path.c_str(), &st) != 0) return errno == ENOENT || errno == ENOTDIR;
  return base::IsOfKind(path, kIndexKind);
}

}  // namespace

std::unique_ptr<IndexFile> IndexFile::Open(const std::string& path, const TraceIdentity& identity,
                                           uid_t trace_owner) {
  if (OwnBuild() == 0) return nullptr;
  const int fd = OpenToRead(path);
  if (fd < 0) return nullptr;
  std::unique_ptr<IndexFile> file(new IndexFile(path, fd));
  struct stat st;
  if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) ||
      (st.st_uid != geteuid() && st.st_uid != trace_owner)) {
    return nullptr;
  }
  file->end_ = static_cast<uint64_t>(st.st_size);
  return file->ReadDirectory(identity) ? std::move(file) : nullptr;
}

bool IndexFile::ReadDirectory(const TraceIdentity& identity) {
  Header header;
  if (!base::ReadAllAt(fd_, 0, &header, sizeof(header)) ||
      memcmp(header.magic, kIndexKind.magic.data(), sizeof(header.magic)) != 0 ||
      header.checksum != ChecksumOf(header) || header.build != OwnBuild() ||
      TraceIdentity{header.trace_id, header.trace_bytes, header.trace_modified_ns,
                    header.trace_sample_hash} != identity ||
      header.directory_bytes > kMostDirectoryBytes || header.directory_offset > end_ ||
      header.directory_bytes > end_ - header.directory_offset) {
    return false;
  }
  std::string bytes(header.directory_bytes, 0);
  if (!base::ReadAllAt(fd_, header.directory_offset, bytes.data(), bytes.size()) ||
      format::Checksum(bytes.data(), bytes.size()) != header.directory_checksum) {
    return false;
  }
  PackedSource source{PackedReader(bytes), 0};
  Directory directory;
  Get(directory, source);
  if (!source.in.ok() || source.in.left() != 0) return false;
  entries_ = std::move(directory.entries);
  series_ = directory.series;
  return true;
}

absl::StatusOr<std::unique_ptr<IndexFile>> IndexFile::Create(const std::string& path, mode_t mode) {
  if (OwnBuild() == 0) return absl::FailedPreconditionError("this program has no build-id");
  if (!MayReplace(path)) {
    return absl::AlreadyExistsError(absl::StrCat(path, " is there and is no index"));
  }
  std::string temporary;
  int fd = open(DirectoryOf(path).c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (fd < 0) {
    temporary = path + ".XXXXXX";
    fd = mkostemp(temporary.data(), O_CLOEXEC);
    if (fd < 0) return ErrnoStatus("cannot write", path, errno);
  }
  std::unique_ptr<IndexFile> file(new IndexFile(path, fd));
  file->temporary_ = std::move(temporary);
  fchmod(fd, (mode & 0666) | 0600);
  const Header none = {};
  if (!file->Write({reinterpret_cast<const char*>(&none), sizeof(none)})) {
    return ErrnoStatus("cannot write", path, file->error_);
  }
  return file;
}

IndexFile::~IndexFile() {
  if (!temporary_.empty()) unlink(temporary_.c_str());
  close(fd_);
}

bool IndexFile::Write(std::string_view bytes) {
  if (error_ == 0 && !base::WriteAllAt(fd_, bytes, &end_)) error_ = errno;
  return error_ == 0;
}

bool IndexFile::Append(std::string_view content, Section* section) {
  if (content.size() > kMostContentBytes) {
    error_ = EFBIG;
    return false;
  }
  std::string stored(ZSTD_compressBound(content.size()), 0);
  const size_t bytes = ZSTD_compress(stored.data(), stored.size(), content.data(), content.size(),
                                     kZstdLevel);
  if (ZSTD_isError(bytes)) {
    error_ = ENOMEM;
    return false;
  }
  stored.resize(bytes);
  *section = {end_, bytes, content.size(), format::Checksum(stored.data(), bytes)};
  return Write(stored);
}

bool IndexFile::Read(const Section& section, std::string* content) const {
  if (section.offset > end_ || section.stored_bytes > end_ - section.offset ||
      section.content_bytes > kMostContentBytes) {
    return false;
  }
  std::string stored(section.stored_bytes, 0);
  if (!base::ReadAllAt(fd_, section.offset, stored.data(), stored.size()) ||
      format::Checksum(stored.data(), stored.size()) != section.checksum ||
      ZSTD_getFrameContentSize(stored.data(), stored.size()) != section.content_bytes) {
    return false;
  }
  content->resize(section.content_bytes);
  return ZSTD_decompress(content->data(), content->size(), stored.data(), stored.size()) ==
         content->size();
}

bool IndexFile::Add(const PassPoint& point, const std::string& piece, const std::string& state) {
  Entry entry;
  entry.point = point;
  if (!Append(piece, &entry.piece) || !Append(state, &entry.state)) return false;
  entries_.push_back(entry);
  return true;
}

absl::Status IndexFile::Finish(const TraceIdentity& identity, const std::string& series) {
  PackedWriter out;
  if (Append(series, &series_)) {
    Put(Directory{entries_, series_}, out);
    Header header = {};
    memcpy(header.magic, kIndexKind.magic.data(), sizeof(header.magic));
    header.build = OwnBuild();
    header.trace_id = identity.trace_id;
    header.trace_bytes = identity.bytes;
    header.trace_modified_ns = identity.modified_ns;
    header.trace_sample_hash = identity.sample_hash;
    header.directory_offset = end_;
    header.directory_bytes = out.bytes().size();
    header.directory_checksum = format::Checksum(out.bytes().data(), out.bytes().size());
    header.checksum = ChecksumOf(header);
    uint64_t begin = 0;
    if (Write(out.bytes()) &&
        !base::WriteAllAt(fd_, {reinterpret_cast<const char*>(&header), sizeof(header)},
                          &begin)) {
      error_ = errno;
    }
  }
  return error_ == 0 ? absl::OkStatus() : ErrnoStatus("cannot write", path_, error_);
}

absl::Status IndexFile::Place() {
  if (temporary_.empty()) {
    // A name can be given, but not taken away from another file: so first one that is nobody's.
    const std::string own = absl::StrCat("/proc/self/fd/", fd_);
    for (unsigned i = 0; i < 100 && temporary_.empty(); ++i) {
      const std::string name = absl::StrCat(path_, ".", getpid(), ".", i);
      if (linkat(AT_FDCWD, own.c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) == 0) {
        temporary_ = name;
      } else if (errno != EEXIST) {
        break;
      }
    }
    if (temporary_.empty()) return ErrnoStatus("cannot write", path_, errno);
  }
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    return ErrnoStatus("cannot write", path_, errno);
  }
  temporary_.clear();
  return absl::OkStatus();
}

bool IndexFile::Find(uint64_t before_ns, uint64_t ticks, PassState* state) {
  size_t found = entries_.size();
  while (found > 0 && (entries_[found - 1].point.latest_ns >= before_ns ||
                       entries_[found - 1].point.latest_ticks > ticks)) {
    --found;
  }
  if (found == 0) return false;
  gave_ = true;
  state->pieces.resize(found);
  for (size_t i = 0; i < found; ++i) {
    if (Read(entries_[i].piece, &state->pieces[i])) continue;
    state->pieces.assign(1, "damaged");  // which whoever takes it up will see
    return true;
  }
  if (!Read(entries_[found - 1].state, &state->state)) state->state.clear();
  return true;
}

bool IndexFile::ReadSeries(std::string* series) { return Read(series_, series); }

}  // namespace memtrace::report::index
