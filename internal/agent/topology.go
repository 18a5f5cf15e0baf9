package agent

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/braggdev/bragg/internal/agent/wire"
)

// cpuFolder is where Linux describes CPUs, below its root.
const cpuFolder = "sys/devices/system/cpu"

// cpusOf reads how the CPUs of a machine are divided, as its system sees it. Nil where that is not known, or where cores differ. CPUs that
// are offline are not counted.
func cpusOf(root fs.FS) *wire.CPUs {
	found, _ := fs.Glob(root, cpuFolder+"/cpu[0-9]*/topology/core_id")
	sockets, cores := map[int]bool{}, map[string]int{}
	for _, file := range found {
		read := func(name string) int {
			text, err := fs.ReadFile(root, path.Join(path.Dir(file), name))
			n, wrong := strconv.Atoi(strings.TrimSpace(string(text)))
			if err != nil || wrong != nil {
				return -1
			}
			return n
		}
		socket, core := read("physical_package_id"), read("core_id")
		if socket < 0 || core < 0 { // as on some processors of ARM
			return nil
		}
		sockets[socket] = true
		cores[fmt.Sprint(socket, read("die_id"), core)]++
	}
	if len(cores) == 0 || len(cores)%len(sockets) != 0 || len(found)%len(cores) != 0 {
		return nil
	}
	c := &wire.CPUs{Sockets: len(sockets), Cores: len(cores) / len(sockets), Threads: len(found) / len(cores)}
	for _, threads := range cores {
		if threads != c.Threads {
			return nil
		}
	}
	return c
}
