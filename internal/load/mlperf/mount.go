package mlperf

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// mountOf describes the mount of a folder with its options, such as the nconnect of NFS; empty if unknown.
func mountOf(path string) string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return ""
	}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		path = real
	}
	return findMount(string(text), path)
}

const mountTextMax = 400

// findMount reads the format of proc_pid_mountinfo(5). Of two mounts on one point, the later one hides the other.
func findMount(mountinfo, path string) (text string) {
	longest := -1
	for line := range strings.Lines(mountinfo) {
		left, right, found := strings.Cut(strings.TrimSpace(line), " - ")
		fields, system := strings.Fields(left), strings.Fields(right)
		if !found || len(fields) < 6 || len(system) < 2 {
			continue
		}
		point := spaces.Replace(fields[4])
		if point != "/" && path != point && !strings.HasPrefix(path, point+"/") || len(point) < longest {
			continue
		}
		options := fields[5]
		if len(system) > 2 {
			options += "," + system[2]
		}
		longest, text = len(point), fmt.Sprintf("%s %s (%s)", system[0], spaces.Replace(system[1]), unique(options))
	}
	return text[:min(len(text), mountTextMax)]
}

// spaces decodes the kernel's escapes.
var spaces = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)

// unique removes options that the mount and its file system both list.
func unique(options string) string {
	var list []string
	seen := map[string]bool{}
	for _, o := range strings.Split(options, ",") {
		if !seen[o] {
			seen[o], list = true, append(list, o)
		}
	}
	return strings.Join(list, ",")
}
