#include "preload/leak_scan/heap_territory.h"

namespace memtrace {

constinit HeapTerritory g_heap_territory;

}  // namespace memtrace
