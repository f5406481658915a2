# Shared by the scripts of this directory, which source it: where the tree is,
# how they talk, and the Debian packages of scripts/packages.
# shellcheck shell=bash

MEMTRACE_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
SCRIPT_NAME=scripts/$(basename "$0")

# A terminal gets bold step lines; a pipe or a log gets plain ones.
if [[ -t 1 && -z ${NO_COLOR:-} ]]; then
  BOLD=$'\e[1m' PLAIN=$'\e[0m'
else
  BOLD='' PLAIN=''
fi

# usage: the head comment of the script, which is its help.
usage() { awk 'NR == 1 { next } !/^#/ { exit } { sub(/^# ?/, ""); print }' "$0"; }

say() { printf '%s==> %s%s\n' "$BOLD" "$*" "$PLAIN"; }

# fail CAUSE [CURE...]: the cause on the first line, the cures under it.
fail() {
  printf '%s: %s\n' "$SCRIPT_NAME" "$1" >&2
  shift
  if (($#)); then printf '  %s\n' "$@" >&2; fi
  exit 1
}

# package_sections: the sections of scripts/packages, in one line.
package_sections() {
  local sections
  mapfile -t sections < <(sed -n 's/^\([a-z]*\):.*/\1/p' "$MEMTRACE_ROOT/scripts/packages")
  echo "${sections[*]}"
}

# packages_of SECTION...: names, one a line.
packages_of() {
  awk -v wanted=" $* " '
    { sub(/#.*/, ""); gsub(/[ \t]/, "") }
    /:$/ { section = substr($0, 1, length($0) - 1); next }
    $0 != "" && index(wanted, " " section " ") { print }
  ' "$MEMTRACE_ROOT/scripts/packages"
}

# missing_packages NAME...: those that dpkg does not have installed.
missing_packages() {
  local installed name
  installed=$(dpkg-query -W -f '${db:Status-Status} ${Package}\n' "$@" 2>/dev/null || true)
  for name in "$@"; do
    # A nodejs that is not Debian's has npm inside and conflicts with the package.
    if [[ $name == npm ]] && command -v npm >/dev/null; then continue; fi
    grep -qxF "installed $name" <<<"$installed" || echo "$name"
  done
}

# as_root COMMAND...: by sudo where we are not root. Asks for a password only on a terminal.
as_root() {
  if ((EUID == 0)); then
    "$@"
  elif [[ -t 0 ]]; then
    sudo -- "$@"
  else
    sudo -n -- "$@"
  fi
}

# apt_get LOG ARGS...: what it says goes to LOG.
apt_get() {
  local log=$1
  shift
  as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=a \
    apt-get -o DPkg::Lock::Timeout=300 -q "$@" >"$log" 2>&1 </dev/null
}

# fetch_packages NAME...: says why when it fails. That the lists could not be
# read is told only then: a broken third-party source often does not matter.
fetch_packages() {
  local logs status=0 what='reading the package lists'
  logs=$(mktemp -d)
  if apt_get "$logs/update" update; then
    what='installing the packages'
    apt_get "$logs/install" install -y --no-install-recommends "$@" || status=$?
  else
    status=$?
  fi
  if ((status)); then
    {
      printf '%s: %s failed: apt-get: exit status %d. It said:\n' "$SCRIPT_NAME" "$what" "$status"
      cat "$logs/update" "$logs/install" 2>/dev/null | grep -E '^(W|E|Err)[: ]' | head -n 6 |
        sed 's/^/  /' || true
      tail -q -n 10 "$logs/install" 2>/dev/null | sed 's/^/  /' || true
    } >&2
  fi
  rm -rf "$logs"
  return "$status"
}

# install_packages SECTION...: what is missing, and nothing when nothing is.
install_packages() {
  local wanted missing
  mapfile -t wanted < <(packages_of "$@")
  ((${#wanted[@]})) || fail "no packages in section(s) '$*' of scripts/packages"
  if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    local system='this system'
    if [[ -r /etc/os-release ]]; then
      system=$(. /etc/os-release && printf '%s' "${PRETTY_NAME:-$system}")
    fi
    fail "$system has no apt-get: only Debian and its derivatives are set up automatically" \
      "install what scripts/packages lists by the means of your system, then build by hand:" \
      "cmake --preset release -DMEMTRACE_TESTS=OFF -DMEMTRACE_BENCHES=OFF && cmake --build --preset release"
  fi
  mapfile -t missing < <(missing_packages "${wanted[@]}")
  if ((${#missing[@]} == 0)); then
    say "Debian packages ($*): all ${#wanted[@]} are installed"
    return
  fi
  if ((EUID != 0)) && ! command -v sudo >/dev/null; then
    fail "Debian packages are missing, and this is neither root nor is there sudo" \
      "as root: apt-get install --no-install-recommends ${missing[*]}"
  fi
  if ((EUID != 0)) && [[ ! -t 0 ]] && ! sudo -n true 2>/dev/null; then
    fail "Debian packages are missing, and sudo wants a password but there is no terminal" \
      "as root: apt-get install --no-install-recommends ${missing[*]}"
  fi
  say "Debian packages ($*): installing ${#missing[@]} of ${#wanted[@]}: ${missing[*]}"
  fetch_packages "${missing[@]}" || exit 1
}

# As many compilers as there are processors, but not more than memory allows:
# a heavy C++ file takes about 1 GiB.
build_jobs() {
  local processors memory_kib jobs
  processors=$(nproc)
  memory_kib=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo 2>/dev/null || true)
  jobs=$((${memory_kib:-1048576} / 1048576))
  ((jobs < 1)) && jobs=1
  echo $((jobs < processors ? jobs : processors))
}

# A step whose output matters only when it fails.
quietly() {
  local what=$1 log status=0
  shift
  log=$(mktemp)
  "$@" >"$log" 2>&1 || status=$?
  if ((status)); then
    {
      printf '%s: %s failed: %s: exit status %d. Its last lines:\n' \
        "$SCRIPT_NAME" "$what" "$*" "$status"
      tail -n 40 "$log" | sed 's/^/  /'
    } >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}
