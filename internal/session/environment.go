package session

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/braggdev/bragg/internal/unit"
)

// Environment describes the controller's machine and the file system of dir, for the report. Unknown values are
// omitted.
func Environment(dir string) map[string]string {
	env := map[string]string{}
	set := func(name, value string) {
		if value = strings.TrimSpace(value); value != "" {
			env[name] = value
		}
	}
	if name, err := os.Hostname(); err == nil {
		set("host", name)
	}
	set("cpus", strconv.Itoa(runtime.NumCPU()))
	model, virtual := cpuModel("/proc/cpuinfo")
	set("cpu model", model)
	if virtual {
		set("virtual machine", "yes")
	}
	if total := MemoryBytes(); total > 0 {
		set("memory", unit.FormatBytes(total))
	}
	set("cpu governor", firstLine("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
	set("clock source", firstLine("/sys/devices/system/clocksource/clocksource0/current_clocksource"))
	if m, err := MountOf(dir); err == nil {
		set("file system", m.Type)
		set("file system device", m.Source)
		set("mount options", m.Options)
	}
	return env
}

// Kernel returns the release of the running kernel: "6.1.0-18-amd64".
func Kernel() string {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return ""
	}
	return unix.ByteSliceToString(name.Release[:])
}

// MemoryBytes returns the machine's RAM, 0 if unknown.
func MemoryBytes() int64 { return meminfo("MemTotal") }

// MemoryAvailableBytes returns the available RAM, 0 if unknown.
func MemoryAvailableBytes() int64 { return meminfo("MemAvailable") }

func meminfo(key string) int64 {
	data, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(data)) {
		name, rest, _ := strings.Cut(line, ":")
		fields := strings.Fields(rest)
		if name == key && len(fields) > 0 {
			kib, err := strconv.ParseInt(fields[0], 10, 64)
			if err != nil {
				return 0
			}
			return kib * unit.KiB
		}
	}
	return 0
}

// cpuModel returns the name of the first processor and whether a hypervisor runs it.
func cpuModel(path string) (model string, virtual bool) {
	data, err := os.ReadFile(path)
	if err != nil {
		return "", false
	}
	for line := range strings.Lines(string(data)) {
		key, value, _ := strings.Cut(line, ":")
		switch strings.TrimSpace(key) {
		case "":
			return model, virtual // the first processor ends here
		case "model name", "Model":
			model = strings.Join(strings.Fields(value), " ")
		case "flags":
			virtual = strings.Contains(value+" ", " hypervisor ")
		}
	}
	return model, virtual
}

func firstLine(path string) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(string(data), "\n")
	return line
}

// Mount is the mounted file system that holds a path.
type Mount struct {
	Point   string
	Type    string // "ext4", "xfs", "tmpfs"
	Source  string // device, or the name that the file system reports
	Options string
}

// MountOf returns the mount that holds path or, when path does not exist yet, its nearest existing parent.
func MountOf(path string) (Mount, error) {
	path, err := existing(path)
	if err != nil {
		return Mount{}, err
	}
	f, err := os.Open("/proc/self/mountinfo")
	if err != nil {
		return Mount{}, fmt.Errorf("read mounts: %w", err)
	}
	defer f.Close()
	var best Mount
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		m, ok := parseMount(lines.Text())
		// A later mount covers an earlier one at the same point.
		if ok && under(path, m.Point) && len(m.Point) >= len(best.Point) {
			best = m
		}
	}
	if err := lines.Err(); err != nil {
		return Mount{}, fmt.Errorf("read mounts: %w", err)
	}
	if best.Point == "" {
		return Mount{}, fmt.Errorf("find the file system of %q: no mount holds it", path)
	}
	return best, nil
}

// parseMount reads one line of mountinfo: "36 35 98:0 /root /point options opt:1 - type source super".
func parseMount(line string) (Mount, bool) {
	left, right, ok := strings.Cut(line, " - ")
	fields, after := strings.Fields(left), strings.Fields(right)
	if !ok || len(fields) < 6 || len(after) < 2 {
		return Mount{}, false
	}
	return Mount{Point: unescape(fields[4]), Type: after[0], Source: unescape(after[1]), Options: fields[5]}, true
}

// unescape undoes the octal escapes that the kernel writes for blanks and backslashes.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

func under(path, point string) bool {
	return point == "/" || path == point || strings.HasPrefix(path, point+"/")
}

// existing returns the absolute real path of the nearest existing parent of path, or path itself.
func existing(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("resolve %q: %w", path, err)
	}
	for {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return real, nil
		}
		if parent := filepath.Dir(path); parent != path {
			path = parent
			continue
		}
		return "", fmt.Errorf("resolve %q: %w", path, err)
	}
}

// Space returns the free space for unprivileged users, and the size, of the file system of path or its nearest existing
// parent.
func Space(path string) (freeBytes, totalBytes int64, err error) {
	place, err := existing(path)
	if err != nil {
		return 0, 0, err
	}
	var fs unix.Statfs_t
	if err := unix.Statfs(place, &fs); err != nil {
		return 0, 0, fmt.Errorf("read the space of %q: %w", place, err)
	}
	// As df counts: space reserved for root is neither used nor free.
	return int64(fs.Bavail) * fs.Bsize, int64(fs.Blocks-fs.Bfree+fs.Bavail) * fs.Bsize, nil
}
