package blockdev

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// mount is one line of mountinfo: see proc_pid_mountinfo(5).
type mount struct {
	number Number
	point  string
	kind   string // of file system
	source string
}

func (s system) mounts() ([]mount, error) {
	text, err := os.ReadFile(filepath.Join(s.proc, "self", "mountinfo"))
	if err != nil {
		return nil, fmt.Errorf("read mounts: %w", err)
	}
	var all []mount
	for line := range strings.Lines(string(text)) {
		// Optional fields end with a single hyphen.
		left, right, ok := strings.Cut(strings.TrimSpace(line), " - ")
		fields, rest := strings.Fields(left), strings.Fields(right)
		if !ok || len(fields) < 6 || len(rest) < 2 {
			return nil, fmt.Errorf("read mounts: line %q has an unknown form", strings.TrimSpace(line))
		}
		m := mount{point: unescape(fields[4]), kind: rest[0], source: unescape(rest[1])}
		if _, err := fmt.Sscanf(fields[2], "%d:%d", &m.number.Major, &m.number.Minor); err != nil {
			return nil, fmt.Errorf("read mounts: device number %q: %w", fields[2], err)
		}
		all = append(all, m)
	}
	return all, nil
}

// swaps lists the paths of /proc/swaps. Without that file, the kernel does not support swap.
func (s system) swaps() ([]string, error) {
	text, err := os.ReadFile(filepath.Join(s.proc, "swaps"))
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read swaps: %w", err)
	}
	var paths []string
	header := true
	for line := range strings.Lines(string(text)) {
		if fields := strings.Fields(line); !header && len(fields) > 0 {
			paths = append(paths, unescape(fields[0]))
		}
		header = false
	}
	return paths, nil
}

// unescape decodes the kernel's octal escapes of blanks in paths.
func unescape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+3 < len(text) {
			if code, err := strconv.ParseUint(text[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(code))
				i += 3
				continue
			}
		}
		b.WriteByte(text[i])
	}
	return b.String()
}

// carrier finds the mount that holds a file: the longest mount point that contains it. Of two mounts on one point, the
// later hides the other.
func carrier(mounts []mount, path string) (mount, bool) {
	var best mount
	found := false
	for _, m := range mounts {
		above := m.point == "/" || path == m.point || strings.HasPrefix(path, m.point+"/")
		if above && (!found || len(m.point) >= len(best.point)) {
			best, found = m, true
		}
	}
	return best, found
}

// devicesOf names the devices of a mount. File systems that span devices (btrfs) have their own number, which no device
// has: btrfsMembers finds their devices.
func (s system) devicesOf(m mount) []string {
	var names []string
	if m.number.Major != 0 {
		if name := s.nameOfNumber(m.number); name != "" {
			names = append(names, name)
		}
		return names
	}
	if !strings.HasPrefix(m.source, "/") {
		return nil // a word, or a network location
	}
	name := s.nameOfPath(m.source)
	if name == "" {
		return nil
	}
	names = append(names, name)
	for _, members := range s.btrfsMembers() {
		for _, member := range members {
			if member == name {
				return members
			}
		}
	}
	return names
}

// btrfsMembers lists the devices of each mounted btrfs.
func (s system) btrfsMembers() [][]string {
	folder := filepath.Join(s.sys, "fs", "btrfs")
	var all [][]string
	for _, id := range folderNames(folder) {
		if members := folderNames(filepath.Join(folder, id, "devices")); len(members) > 0 {
			all = append(all, members)
		}
	}
	return all
}
